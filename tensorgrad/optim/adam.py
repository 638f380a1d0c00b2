"""Adam and its kin: steps of a size that running averages of the gradient set."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tensorgrad import ops
from tensorgrad.optim.optimizer import LearningRate, Optimizer, Rule, decayed, keep
from tensorgrad.tensor import Tensor


@dataclass(eq=False, repr=False)
class Adam(Optimizer):
    """Steps of a size that running averages of the gradient and its square set; PyTorch's arguments and formulas.

    Args:
        lr: the learning rate, a number or a schedule.
        betas: how much of the two averages stays from step to step.
        eps: added to the root of the second average, after its bias was corrected.
        weight_decay: this times the parameter is added to its gradient.
        amsgrad: divide by the largest second average so far.
        maximize, groups, params, clip_norm, clip_value, accumulate, ema_decay: see `Optimizer`.

    Source: Kingma and Ba, Adam: a method for stochastic optimization (2014); Reddi, Kale and
    Kumar, On the convergence of Adam and beyond (2018), for amsgrad.

    >>> from tensorgrad import optim
    >>> {name: round(number, 4) for name, number in optim.Adam(1e-3).scalars(1).items()}
    {'optim.step_size': 0.01, 'optim.root': 31.6228}
    """

    lr: LearningRate = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    amsgrad: bool = False

    decoupled = False
    """Whether weight decay shrinks the parameter itself, by its learning rate, instead of joining the gradient."""

    def state(self, param: Tensor, hyper: Mapping[str, Any]) -> Mapping[str, float]:
        names = ("exp_avg", "exp_avg_sq", *(("max_exp_avg_sq",) if hyper["amsgrad"] else ()))
        return dict.fromkeys(names, 0.0)

    def host(self, step: int, lr: float, hyper: Mapping[str, Any]) -> dict[str, float]:
        beta1, beta2 = hyper["betas"]
        numbers = {"step_size": lr / corrected(beta1, step), "root": 1 / math.sqrt(corrected(beta2, step))}
        return numbers | (keep(lr, hyper) if self.decoupled else {})

    def rule(
        self, param: Tensor, grad: Tensor, state: Mapping[str, Tensor], at: Rule
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        param, grad = decayed(param, grad, at)
        new = averaged(grad, state, at.hyper["betas"])
        top = new["exp_avg_sq"]
        if at.hyper["amsgrad"]:
            top = new["max_exp_avg_sq"] = ops.maximum(state["max_exp_avg_sq"], top)
        scale = ops.sqrt(top) * at.scalars["root"] + at.hyper["eps"]
        return param - new["exp_avg"] / scale * at.scalars["step_size"], new


@dataclass(eq=False, repr=False)
class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters themselves, by `lr * weight_decay` a step.

    Args:
        lr, betas, eps, amsgrad: as `Adam`.
        weight_decay: 0.01 by default.
        maximize, groups, params, clip_norm, clip_value, accumulate, ema_decay: see `Optimizer`.

    Source: Loshchilov and Hutter, Decoupled weight decay regularization (2019).

    >>> from tensorgrad import optim
    >>> optim.AdamW(1e-3)
    AdamW(lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0.01, amsgrad=False, maximize=False)
    """

    weight_decay: float = 1e-2

    decoupled = True


@dataclass(eq=False, repr=False)
class Adamax(Optimizer):
    """Adam with the largest gradient, which decays, in the place of the averaged square; as PyTorch's.

    Args:
        lr: the learning rate, a number or a schedule.
        betas: how much of the average and of the largest gradient stays from step to step.
        eps: added to the size of the gradient.
        weight_decay: this times the parameter is added to its gradient.
        maximize, groups, params, clip_norm, clip_value, accumulate, ema_decay: see `Optimizer`.

    Source: Kingma and Ba, Adam: a method for stochastic optimization (2014), section 7.1.

    >>> from tensorgrad import optim
    >>> optim.Adamax()
    Adamax(lr=0.002, betas=(0.9, 0.999), eps=1e-08, weight_decay=0.0, maximize=False)
    """

    lr: LearningRate = 2e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0

    def state(self, param: Tensor, hyper: Mapping[str, Any]) -> Mapping[str, float]:
        return {"exp_avg": 0.0, "exp_inf": 0.0}

    def host(self, step: int, lr: float, hyper: Mapping[str, Any]) -> dict[str, float]:
        return {"step_size": lr / corrected(hyper["betas"][0], step)}

    def rule(
        self, param: Tensor, grad: Tensor, state: Mapping[str, Tensor], at: Rule
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        param, grad = decayed(param, grad, at)
        beta1, beta2 = at.hyper["betas"]
        mean = state["exp_avg"] + (grad - state["exp_avg"]) * (1 - beta1)
        top = ops.maximum(state["exp_inf"] * beta2, ops.abs(grad) + at.hyper["eps"])
        return param - mean / top * at.scalars["step_size"], {"exp_avg": mean, "exp_inf": top}


@dataclass(eq=False, repr=False)
class NAdam(Optimizer):
    """Adam that looks ahead as Nesterov's momentum does; PyTorch's arguments and formulas.

    Args:
        lr: the learning rate, a number or a schedule.
        betas: how much of the two averages stays from step to step.
        eps: added to the root of the second average, after its bias was corrected.
        weight_decay: this times the parameter is added to its gradient.
        momentum_decay: how fast the momentum goes from half of `betas[0]` to the whole of it.
        decoupled_weight_decay: weight decay shrinks the parameter itself, as in `AdamW`.
        maximize, groups, params, clip_norm, clip_value, accumulate, ema_decay: see `Optimizer`.

    Source: Dozat, Incorporating Nesterov momentum into Adam (2016).

    >>> from tensorgrad import optim
    >>> {name: round(number, 5) for name, number in optim.NAdam(1e-3).scalars(1).items()}
    {'optim.root': 31.62278, 'optim.grad_size': 0.001, 'optim.mean_size': 0.00056}
    """

    lr: LearningRate = 2e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    momentum_decay: float = 4e-3
    decoupled_weight_decay: bool = False

    def state(self, param: Tensor, hyper: Mapping[str, Any]) -> Mapping[str, float]:
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def host(self, step: int, lr: float, hyper: Mapping[str, Any]) -> dict[str, float]:
        (beta1, beta2), decay = hyper["betas"], hyper["momentum_decay"]
        now, ahead = (beta1 * (1 - 0.5 * 0.96 ** (s * decay)) for s in (step, step + 1))
        product = _momentum_product(beta1, decay, step)
        numbers = {
            "root": 1 / math.sqrt(corrected(beta2, step)),
            "grad_size": lr * (1 - now) / (1 - product),
            "mean_size": lr * ahead / (1 - product * ahead),
        }
        return numbers | (keep(lr, hyper) if hyper["decoupled_weight_decay"] else {})

    def rule(
        self, param: Tensor, grad: Tensor, state: Mapping[str, Tensor], at: Rule
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        numbers = at.scalars
        param, grad = decayed(param, grad, at)
        new = averaged(grad, state, at.hyper["betas"])
        scale = ops.sqrt(new["exp_avg_sq"]) * numbers["root"] + at.hyper["eps"]
        step = grad * numbers["grad_size"] + new["exp_avg"] * numbers["mean_size"]
        return param - step / scale, new


def averaged(grad: Tensor, state: Mapping[str, Tensor], betas: tuple[float, float]) -> dict[str, Tensor]:
    """The next running averages of a gradient and of its square."""
    mean, square = state["exp_avg"], state["exp_avg_sq"]
    return {
        "exp_avg": mean + (grad - mean) * (1 - betas[0]),
        "exp_avg_sq": square * betas[1] + grad * grad * (1 - betas[1]),
    }


def corrected(beta: float, step: int) -> float:
    """`1 - beta**step` without the cancellation: what an average that started at zero is too small by."""
    return -math.expm1(step * math.log(beta)) if beta else 1.0


def _momentum_product(beta: float, decay: float, steps: int) -> float:
    """The product of `beta * (1 - 0.5 * r**i)` over the steps i, r being `0.96**decay`, at once.

    The logarithm of each factor is a series in `0.5 * r**i`, of which each power sums over the steps by itself.
    """
    if not beta:
        return 0.0
    rate = decay * math.log(0.96)
    total = steps * math.log(beta)
    for k in range(1, 54):  # 0.5**53 no longer counts
        powers = math.exp(k * rate) * math.expm1(steps * k * rate) / math.expm1(k * rate) if rate else steps
        total -= 0.5**k / k * powers
    return math.exp(total)
