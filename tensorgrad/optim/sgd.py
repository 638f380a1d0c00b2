"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tensorgrad.optim.optimizer import Groups, LearningRate, Optimizer, Rule, Which
from tensorgrad.tensor import Tensor


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum if asked for; PyTorch's arguments and formulas.

    Args:
        lr: the learning rate, a number or a schedule.
        momentum: how much of the last direction stays.
        dampening: how much less of the gradient enters the momentum, from the second step on.
        weight_decay: this times the parameter is added to its gradient.
        nesterov: look ahead by the momentum; wants a momentum and no dampening.
        maximize: ascend.
        groups, params, clip_norm, clip_value: see `Optimizer`.

    Source: Sutskever et al., On the importance of initialization and momentum in deep learning (2013).

    >>> SGD(0.1, momentum=0.9)
    SGD(lr=0.1, momentum=0.9, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False)
    """

    def __init__(
        self,
        lr: LearningRate = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        groups: Groups = (),
        params: Which | None = None,
        clip_norm: float | None = None,
        clip_value: float | None = None,
    ) -> None:
        super().__init__(
            lr,
            groups=groups,
            params=params,
            clip_norm=clip_norm,
            clip_value=clip_value,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
            maximize=maximize,
        )

    def check(self, hyper: Mapping[str, Any]) -> None:
        super().check(hyper)
        for name in ("momentum", "weight_decay"):
            self._require(name, hyper[name], hyper[name] >= 0, "0 or more")
        fits = not hyper["nesterov"] or (hyper["momentum"] > 0 and hyper["dampening"] == 0)
        self._require("nesterov", hyper["nesterov"], fits, "False without momentum, or with dampening")

    def state(self, hyper: Mapping[str, Any]) -> Sequence[str]:
        return ("momentum_buffer",) if hyper["momentum"] else ()

    def host(self, step: int, lr: float, hyper: Mapping[str, Any]) -> dict[str, float]:
        if hyper["momentum"] and hyper["dampening"]:
            # the first gradient becomes the momentum whole
            return {"lr": lr, "share": 1.0 if step == 1 else 1.0 - hyper["dampening"]}
        return {"lr": lr}

    def rule(
        self, param: Tensor, grad: Tensor, state: Mapping[str, Tensor], at: Rule
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        hyper, lr = at.hyper, at.scalars["lr"]
        grad = -grad if hyper["maximize"] else grad
        if hyper["weight_decay"]:
            grad = grad + param * hyper["weight_decay"]
        if not hyper["momentum"]:
            return param - grad * lr, {}
        share = grad * at.scalars["share"] if "share" in at.scalars else grad
        buffer = state["momentum_buffer"] * hyper["momentum"] + share
        direction = grad + buffer * hyper["momentum"] if hyper["nesterov"] else buffer
        return param - direction * lr, {"momentum_buffer": buffer}
