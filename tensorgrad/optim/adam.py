"""Adam and AdamW."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tensorgrad import ops
from tensorgrad.optim.optimizer import Groups, LearningRate, Optimizer, Rule, Which
from tensorgrad.tensor import Tensor


class Adam(Optimizer):
    """Steps of a size that running averages of the gradient and its square set; PyTorch's arguments and formulas.

    Args:
        lr: the learning rate, a number or a schedule.
        betas: how much of the two averages stays from step to step.
        eps: added to the root of the second average, after its bias was corrected.
        weight_decay: this times the parameter is added to its gradient.
        amsgrad: divide by the largest second average so far.
        maximize: ascend.
        groups, params, clip_norm, clip_value: see `Optimizer`.

    Source: Kingma and Ba, Adam: a method for stochastic optimization (2014); Reddi, Kale and
    Kumar, On the convergence of Adam and beyond (2018), for amsgrad.

    >>> {name: round(number, 4) for name, number in Adam(1e-3).scalars(1).items()}
    {'optim.step_size': 0.01, 'optim.root': 31.6228}
    """

    decoupled = False
    """Whether weight decay shrinks the parameter itself, by its learning rate, instead of joining the gradient."""

    def __init__(
        self,
        lr: LearningRate = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
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
            betas=tuple(betas),
            eps=eps,
            weight_decay=weight_decay,
            amsgrad=amsgrad,
            maximize=maximize,
        )

    def check(self, hyper: Mapping[str, Any]) -> None:
        super().check(hyper)
        for name in ("eps", "weight_decay"):
            self._require(name, hyper[name], hyper[name] >= 0, "0 or more")
        betas = hyper["betas"]
        self._require("betas", betas, len(betas) == 2 and all(0 <= b < 1 for b in betas), "two numbers, 0 <= beta < 1")

    def state(self, hyper: Mapping[str, Any]) -> Sequence[str]:
        return ("exp_avg", "exp_avg_sq", *(("max_exp_avg_sq",) if hyper["amsgrad"] else ()))

    def host(self, step: int, lr: float, hyper: Mapping[str, Any]) -> dict[str, float]:
        beta1, beta2 = hyper["betas"]
        # 1 - beta**step without the cancellation
        first = -math.expm1(step * math.log(beta1)) if beta1 else 1.0
        second = -math.expm1(step * math.log(beta2)) if beta2 else 1.0
        numbers = {"step_size": lr / first, "root": 1 / math.sqrt(second)}
        if self.decoupled and hyper["weight_decay"]:
            numbers["keep"] = 1 - lr * hyper["weight_decay"]
        return numbers

    def rule(
        self, param: Tensor, grad: Tensor, state: Mapping[str, Tensor], at: Rule
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        hyper, numbers = at.hyper, at.scalars
        beta1, beta2 = hyper["betas"]
        grad = -grad if hyper["maximize"] else grad
        if "keep" in numbers:
            param = param * numbers["keep"]
        elif hyper["weight_decay"]:
            grad = grad + param * hyper["weight_decay"]
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        new = {
            "exp_avg": mean + (grad - mean) * (1 - beta1),
            "exp_avg_sq": square * beta2 + grad * grad * (1 - beta2),
        }
        top = new["exp_avg_sq"]
        if hyper["amsgrad"]:
            top = new["max_exp_avg_sq"] = ops.maximum(state["max_exp_avg_sq"], top)
        scale = ops.sqrt(top) * numbers["root"] + hyper["eps"]
        return param - new["exp_avg"] / scale * numbers["step_size"], new


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters themselves, by `lr * weight_decay` a step.

    Args:
        lr, betas, eps, amsgrad, maximize, groups, params, clip_norm, clip_value: as `Adam`.
        weight_decay: 0.01 by default.

    Source: Loshchilov and Hutter, Decoupled weight decay regularization (2019).

    >>> AdamW(1e-3)
    AdamW(lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0.01, amsgrad=False, maximize=False)
    """

    decoupled = True

    def __init__(
        self,
        lr: LearningRate = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        groups: Groups = (),
        params: Which | None = None,
        clip_norm: float | None = None,
        clip_value: float | None = None,
    ) -> None:
        super().__init__(
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            maximize=maximize,
            groups=groups,
            params=params,
            clip_norm=clip_norm,
            clip_value=clip_value,
        )
