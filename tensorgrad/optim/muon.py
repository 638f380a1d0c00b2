"""Muon: matrices move by orthogonal matrices, everything else by AdamW."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tensorgrad import ops
from tensorgrad.checks import require_numbers, require_whole
from tensorgrad.dtypes import f32
from tensorgrad.optim.adam import AdamW
from tensorgrad.optim.optimizer import LearningRate, Optimizer, Rule, decayed
from tensorgrad.tensor import Tensor

_ADAMW = AdamW()


@dataclass(eq=False, repr=False)
class Muon(Optimizer):
    """Momentum made (nearly) orthogonal for weights with two axes; AdamW for all other parameters.

    PyTorch's arguments and formulas, for matrices alone; in f32 where PyTorch computes in bf16. Embeddings and
    the last layer are better off with AdamW too: `groups=[("embedding.*", {"adamw": True})]`.

    Args:
        lr: the learning rate, a number or a schedule.
        weight_decay: shrinks the parameters themselves, by `lr * weight_decay` a step.
        momentum: how much of the averaged gradient stays from step to step.
        nesterov: look ahead by the momentum.
        ns_coefficients: a, b and c of the iteration `X <- aX + b(XX')X + c(XX')(XX')X`.
        eps: the least norm that a matrix is divided by before.
        ns_steps: how many iterations, at most 99.
        adjust_lr_fn: how a matrix [rows, columns] scales the learning rate. None and "original": by
            `sqrt(max(1, rows / columns))`; "match_rms_adamw": by `0.2 * sqrt(max(rows, columns))`, so that
            AdamW's learning rate and weight decay do.
        adamw: use AdamW, for a group.
        adamw_betas, adamw_eps: as `AdamW`'s.
        maximize, groups, params, clip_norm, clip_value, accumulate, ema_decay: see `Optimizer`.

    Source: Jordan et al., Muon: an optimizer for hidden layers in neural networks (2024); Liu et al., Muon is
    scalable for LLM training (2025), for "match_rms_adamw".

    >>> from tensorgrad import optim
    >>> {name: round(number, 4) for name, number in optim.Muon(0.02).scalars(1).items()}
    {'optim.lr': 0.02, 'optim.step_size': 0.2, 'optim.root': 31.6228, 'optim.keep': 0.998}
    """

    lr: LearningRate = 1e-3
    weight_decay: float = 0.1
    momentum: float = 0.95
    nesterov: bool = True
    ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315)
    eps: float = 1e-7
    ns_steps: int = 5
    adjust_lr_fn: Literal["original", "match_rms_adamw"] | None = None
    adamw: bool = field(default=False, kw_only=True)
    adamw_betas: tuple[float, float] = field(default=(0.9, 0.999), kw_only=True)
    adamw_eps: float = field(default=1e-8, kw_only=True)

    def check(self, hyper: Mapping[str, Any]) -> None:
        super().check(hyper)
        _ADAMW.check(_for_adamw(hyper))
        require_whole("Muon", "ns_steps", hyper["ns_steps"])
        self._require("ns_steps", hyper["ns_steps"], hyper["ns_steps"] < 100, "from 0 to 99")
        require_numbers("Muon", "ns_coefficients", hyper["ns_coefficients"], 3)
        known = hyper["adjust_lr_fn"] in (None, "original", "match_rms_adamw")
        self._require("adjust_lr_fn", hyper["adjust_lr_fn"], known, "None, 'original' or 'match_rms_adamw'")

    def elementwise(self, param: Tensor, hyper: Mapping[str, Any]) -> bool:
        return param.ndim != 2 or hyper["adamw"]

    def state(self, param: Tensor, hyper: Mapping[str, Any]) -> Mapping[str, float]:
        if self.elementwise(param, hyper):
            return _ADAMW.state(param, _for_adamw(hyper))
        return {"momentum_buffer": 0.0}

    def host(self, step: int, lr: float, hyper: Mapping[str, Any]) -> dict[str, float]:
        return {"lr": lr, **_ADAMW.host(step, lr, _for_adamw(hyper))}

    def rule(
        self, param: Tensor, grad: Tensor, state: Mapping[str, Tensor], at: Rule
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        hyper, lr = at.hyper, at.scalars["lr"]
        if self.elementwise(param, hyper):
            return _ADAMW.rule(param, grad, state, Rule(_for_adamw(hyper), at.scalars))
        param, grad = decayed(param, grad, at)
        mean = state["momentum_buffer"] + (grad - state["momentum_buffer"]) * (1 - hyper["momentum"])
        direction = grad + (mean - grad) * hyper["momentum"] if hyper["nesterov"] else mean
        step = orthogonal(direction, hyper["ns_coefficients"], hyper["ns_steps"], hyper["eps"])
        return param - step * (lr * _adjustment(hyper["adjust_lr_fn"], *param.shape)), {"momentum_buffer": mean}


def _for_adamw(hyper: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**hyper, "betas": hyper["adamw_betas"], "eps": hyper["adamw_eps"], "amsgrad": False}


def _adjustment(how: str | None, rows: int, columns: int) -> float:
    if how == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1.0, rows / max(columns, 1)))


def orthogonal(
    matrix: Tensor,
    coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
    steps: int = 5,
    eps: float = 1e-7,
) -> Tensor:
    """A matrix with its singular values moved near 1 (0.5 to 1.5), by Newton-Schulz iterations of fifth degree.

    Args:
        matrix: `[rows, columns]`; computed in f32.
        coefficients: a, b and c of `X <- aX + b(XX')X + c(XX')(XX')X`.
        steps: how many iterations.
        eps: the least norm that it is divided by first.
    """
    a, b, c = coefficients
    x = ops.cast(matrix, f32)
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    x = x / ops.maximum(ops.sqrt(ops.sum(ops.square(x))), eps)
    for _ in range(steps):
        gram = x @ x.T
        x = x * a + (gram * b + (gram @ gram) * c) @ x
    return x.T if tall else x
