"""Optimizers that divide each gradient by a size of its past ones: Adagrad, RMSprop, Adadelta."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tensorgrad import ops
from tensorgrad.checks import SHARE, require_number
from tensorgrad.optim.optimizer import LearningRate, Optimizer, Rule, decayed
from tensorgrad.tensor import Tensor


@dataclass(eq=False, repr=False)
class Adagrad(Optimizer):
    """Divides by the root of the sum of all squares so far; PyTorch's arguments and formulas.

    Args:
        lr: the learning rate, a number or a schedule.
        lr_decay: the rate of step k (from 0) is divided by `1 + k * lr_decay`.
        weight_decay: this times the parameter is added to its gradient.
        initial_accumulator_value: what the sums start as.
        eps: added to the root.
        maximize, groups, params, clip_norm, clip_value, accumulate, ema_decay: see `Optimizer`.

    Source: Duchi, Hazan and Singer, Adaptive subgradient methods for online learning (2011).

    >>> from tensorgrad import optim
    >>> optim.Adagrad(0.1, lr_decay=0.5).scalars(3)
    {'optim.lr': 0.05}
    """

    lr: LearningRate = 1e-2
    lr_decay: float = 0.0
    weight_decay: float = 0.0
    initial_accumulator_value: float = 0.0
    eps: float = 1e-10

    def state(self, param: Tensor, hyper: Mapping[str, Any]) -> Mapping[str, float]:
        return {"sum": hyper["initial_accumulator_value"]}

    def host(self, step: int, lr: float, hyper: Mapping[str, Any]) -> dict[str, float]:
        return {"lr": lr / (1 + (step - 1) * hyper["lr_decay"])}

    def rule(
        self, param: Tensor, grad: Tensor, state: Mapping[str, Tensor], at: Rule
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        param, grad = decayed(param, grad, at)
        total = state["sum"] + grad * grad
        return param - grad / (ops.sqrt(total) + at.hyper["eps"]) * at.scalars["lr"], {"sum": total}


@dataclass(eq=False, repr=False)
class RMSprop(Optimizer):
    """Divides by the root of a running average of squares; PyTorch's arguments and formulas.

    Args:
        lr: the learning rate, a number or a schedule.
        alpha: how much of the average stays from step to step.
        eps: added to the root.
        weight_decay: this times the parameter is added to its gradient.
        momentum: how much of the last direction stays.
        centered: divide by the standard deviation, the average of the gradients taken off. Where rounding
            makes the variance negative it is 0 (PyTorch's step is NaN).
        maximize, groups, params, clip_norm, clip_value, accumulate, ema_decay: see `Optimizer`.

    Source: Hinton, Neural networks for machine learning, lecture 6e (2012); Graves, Generating sequences
    with recurrent neural networks (2013), equation 38, for the centered form.

    >>> from tensorgrad import optim
    >>> optim.RMSprop()
    RMSprop(lr=0.01, alpha=0.99, eps=1e-08, weight_decay=0.0, momentum=0.0, centered=False, maximize=False)
    """

    lr: LearningRate = 1e-2
    alpha: float = 0.99
    eps: float = 1e-8
    weight_decay: float = 0.0
    momentum: float = 0.0
    centered: bool = False

    def state(self, param: Tensor, hyper: Mapping[str, Any]) -> Mapping[str, float]:
        optional = {"momentum_buffer": hyper["momentum"], "grad_avg": hyper["centered"]}
        return dict.fromkeys(("square_avg", *(name for name, used in optional.items() if used)), 0.0)

    def rule(
        self, param: Tensor, grad: Tensor, state: Mapping[str, Tensor], at: Rule
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        hyper = at.hyper
        param, grad = decayed(param, grad, at)
        rest = 1 - hyper["alpha"]
        spread = state["square_avg"] * hyper["alpha"] + grad * grad * rest
        new = {"square_avg": spread}
        if hyper["centered"]:
            mean = new["grad_avg"] = state["grad_avg"] + (grad - state["grad_avg"]) * rest
            spread = ops.maximum(spread - mean * mean, 0.0)
        step = grad / (ops.sqrt(spread) + hyper["eps"])
        if hyper["momentum"]:
            step = new["momentum_buffer"] = state["momentum_buffer"] * hyper["momentum"] + step
        return param - step * at.scalars["lr"], new


@dataclass(eq=False, repr=False)
class Adadelta(Optimizer):
    """Steps of the size of past steps, by running averages of squares; PyTorch's arguments and formulas.

    Args:
        lr: the learning rate, a number or a schedule; 1 is the method as it was published.
        rho: how much of the averages stays from step to step.
        eps: added to both averages under the root.
        weight_decay: this times the parameter is added to its gradient.
        maximize, groups, params, clip_norm, clip_value, accumulate, ema_decay: see `Optimizer`.

    Source: Zeiler, ADADELTA: an adaptive learning rate method (2012).

    >>> from tensorgrad import optim
    >>> optim.Adadelta()
    Adadelta(lr=1.0, rho=0.9, eps=1e-06, weight_decay=0.0, maximize=False)
    """

    lr: LearningRate = 1.0
    rho: float = 0.9
    eps: float = 1e-6
    weight_decay: float = 0.0

    def check(self, hyper: Mapping[str, Any]) -> None:
        super().check(hyper)
        require_number("Adadelta", "rho", hyper["rho"], SHARE)

    def state(self, param: Tensor, hyper: Mapping[str, Any]) -> Mapping[str, float]:
        return {"square_avg": 0.0, "acc_delta": 0.0}

    def rule(
        self, param: Tensor, grad: Tensor, state: Mapping[str, Tensor], at: Rule
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        rho, eps = at.hyper["rho"], at.hyper["eps"]
        param, grad = decayed(param, grad, at)
        square = state["square_avg"] * rho + grad * grad * (1 - rho)
        step = ops.sqrt(state["acc_delta"] + eps) / ops.sqrt(square + eps) * grad
        moved = state["acc_delta"] * rho + step * step * (1 - rho)
        return param - step * at.scalars["lr"], {"square_avg": square, "acc_delta": moved}
