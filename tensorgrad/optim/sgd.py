"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tensorgrad.checks import require_number
from tensorgrad.optim.optimizer import LearningRate, Optimizer, Rule, decayed
from tensorgrad.tensor import Tensor


@dataclass(eq=False, repr=False)
class SGD(Optimizer):
    """Stochastic gradient descent, with momentum if asked for; PyTorch's arguments and formulas.

    Args:
        lr: the learning rate, a number or a schedule.
        momentum: how much of the last direction stays.
        dampening: how much less of the gradient enters the momentum, from the second step on.
        weight_decay: this times the parameter is added to its gradient.
        nesterov: look ahead by the momentum; wants a momentum and no dampening.
        maximize, groups, params, clip_norm, clip_value, accumulate, ema_decay: see `Optimizer`.

    Source: Sutskever et al., On the importance of initialization and momentum in deep learning (2013).

    >>> from tensorgrad import optim
    >>> optim.SGD(0.1, momentum=0.9)
    SGD(lr=0.1, momentum=0.9, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False)
    """

    lr: LearningRate = 1e-3
    momentum: float = 0.0
    dampening: float = 0.0
    weight_decay: float = 0.0
    nesterov: bool = False

    def check(self, hyper: Mapping[str, Any]) -> None:
        super().check(hyper)
        require_number("SGD", "dampening", hyper["dampening"])
        fits = not hyper["nesterov"] or (hyper["momentum"] > 0 and hyper["dampening"] == 0)
        self._require("nesterov", hyper["nesterov"], fits, "False without momentum, or with dampening")

    def state(self, param: Tensor, hyper: Mapping[str, Any]) -> Mapping[str, float]:
        return {"momentum_buffer": 0.0} if hyper["momentum"] else {}

    def host(self, step: int, lr: float, hyper: Mapping[str, Any]) -> dict[str, float]:
        if hyper["momentum"] and hyper["dampening"]:
            # the first gradient becomes the momentum whole
            return {"lr": lr, "share": 1.0 if step == 1 else 1.0 - hyper["dampening"]}
        return {"lr": lr}

    def rule(
        self, param: Tensor, grad: Tensor, state: Mapping[str, Tensor], at: Rule
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        hyper, lr = at.hyper, at.scalars["lr"]
        param, grad = decayed(param, grad, at)
        if not hyper["momentum"]:
            return param - grad * lr, {}
        share = grad * at.scalars["share"] if "share" in at.scalars else grad
        buffer = state["momentum_buffer"] * hyper["momentum"] + share
        direction = grad + buffer * hyper["momentum"] if hyper["nesterov"] else buffer
        return param - direction * lr, {"momentum_buffer": buffer}
