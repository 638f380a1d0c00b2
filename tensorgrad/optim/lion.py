"""Lion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tensorgrad import ops
from tensorgrad.optim.optimizer import LearningRate, Optimizer, Rule, decayed, keep
from tensorgrad.tensor import Tensor


@dataclass(eq=False, repr=False)
class Lion(Optimizer):
    """Steps of one size: the sign of a running average of the gradient. One array of state a parameter.

    It wants a learning rate 3 to 10 times smaller than AdamW's, and a weight decay that much larger.

    Args:
        lr: the learning rate, a number or a schedule.
        betas: how much of the average stays, in what gives the sign and in what is kept.
        weight_decay: shrinks the parameters themselves, by `lr * weight_decay` a step.
        maximize, groups, params, clip_norm, clip_value, accumulate, ema_decay: see `Optimizer`.

    Source: Chen et al., Symbolic discovery of optimization algorithms (2023), algorithm 2.

    >>> from tensorgrad import optim
    >>> optim.Lion()
    Lion(lr=0.0001, betas=(0.9, 0.99), weight_decay=0.0, maximize=False)
    """

    lr: LearningRate = 1e-4
    betas: tuple[float, float] = (0.9, 0.99)
    weight_decay: float = 0.0

    def state(self, param: Tensor, hyper: Mapping[str, Any]) -> Mapping[str, float]:
        return {"exp_avg": 0.0}

    def host(self, step: int, lr: float, hyper: Mapping[str, Any]) -> dict[str, float]:
        return {"lr": lr, **keep(lr, hyper)}

    def rule(
        self, param: Tensor, grad: Tensor, state: Mapping[str, Tensor], at: Rule
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        param, grad = decayed(param, grad, at)
        now, kept = (state["exp_avg"] * beta + grad * (1 - beta) for beta in at.hyper["betas"])
        return param - ops.sign(now) * at.scalars["lr"], {"exp_avg": kept}
