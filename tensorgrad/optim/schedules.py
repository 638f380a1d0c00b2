"""Learning-rate schedules: pure functions of the step, to be given as an optimizer's `lr`.

PyTorch's names and arguments, with the learning rate in the place of the optimizer. A
schedule is called with the number of steps that were made before: 0 at the first. Any
function of an int does as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Literal

from tensorgrad.callsite import call_site
from tensorgrad.checks import ANY, NOT_NEGATIVE, POSITIVE, SHARE, is_number, require, require_number
from tensorgrad.errors import InputError, UnsupportedError


@dataclass(frozen=True)
class Schedule:
    """The base: a frozen record that prints, compares and pickles."""

    def __post_init__(self) -> None:
        who = type(self).__name__
        for name, kind in ((f.name, f.type) for f in fields(self)):
            value = getattr(self, name)
            if kind in ("float", "int", float, int):
                require_number(who, name, value, NOT_NEGATIVE if name in ("lr", "max_lr") else ANY)
            elif kind == "Sequence[int]":
                numbers = isinstance(value, list | tuple) and all(map(is_number, value))
                require(who, name, value, numbers, "a list of numbers of steps")
            elif kind == "Callable[[int], float]":
                require(who, name, value, callable(value), "a function of the step")
            elif kind == "Sequence[Callable[[int], float]]":
                functions = isinstance(value, list | tuple) and all(map(callable, value))
                require(who, name, value, functions, "a list of schedules")

    def __call__(self, step: int) -> float:
        """The learning rate after `step` steps."""
        raise UnsupportedError(f"{type(self).__name__} defines no __call__", call_site())

    def describe(self) -> dict[str, Any]:
        """Its kind and arguments, as plain data.

        >>> from tensorgrad import optim
        >>> optim.StepLR(0.1, 10).describe()
        {'kind': 'StepLR', 'lr': 0.1, 'step_size': 10, 'gamma': 0.1}
        """
        return {"kind": type(self).__name__, **{f.name: _plain(getattr(self, f.name)) for f in fields(self)}}


def _plain(value: Any) -> Any:
    if isinstance(value, Schedule):
        return value.describe()
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


def _positive(schedule: Schedule, **counts: float) -> None:
    for name, count in counts.items():
        require_number(type(schedule).__name__, name, count, POSITIVE)


@dataclass(frozen=True)
class ConstantLR(Schedule):
    """`lr * factor` for `total_iters` steps, then `lr`.

    Source: torch.optim.lr_scheduler.ConstantLR.

    >>> from tensorgrad import optim
    >>> [optim.ConstantLR(1.0, factor=0.5, total_iters=2)(step) for step in range(4)]
    [0.5, 0.5, 1.0, 1.0]
    """

    lr: float
    factor: float = 1 / 3
    total_iters: int = 5

    def __call__(self, step: int) -> float:
        return self.lr * (self.factor if step < self.total_iters else 1.0)


@dataclass(frozen=True)
class LinearLR(Schedule):
    """A straight line from `lr * start_factor` to `lr * end_factor` in `total_iters` steps, then level.

    Source: torch.optim.lr_scheduler.LinearLR.

    >>> from tensorgrad import optim
    >>> [optim.LinearLR(1.0, 0.5, 1.0, total_iters=2)(step) for step in range(4)]
    [0.5, 0.75, 1.0, 1.0]
    """

    lr: float
    start_factor: float = 1 / 3
    end_factor: float = 1.0
    total_iters: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        _positive(self, total_iters=self.total_iters)

    def __call__(self, step: int) -> float:
        way = min(step, self.total_iters) / self.total_iters
        return self.lr * (self.start_factor + (self.end_factor - self.start_factor) * way)


@dataclass(frozen=True)
class StepLR(Schedule):
    """`lr`, times `gamma` after every `step_size` steps.

    Source: torch.optim.lr_scheduler.StepLR.

    >>> from tensorgrad import optim
    >>> [optim.StepLR(1.0, 2, gamma=0.5)(step) for step in range(5)]
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    lr: float
    step_size: int
    gamma: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        _positive(self, step_size=self.step_size)

    def __call__(self, step: int) -> float:
        return self.lr * self.gamma ** (step // self.step_size)


@dataclass(frozen=True)
class MultiStepLR(Schedule):
    """`lr`, times `gamma` at each of the steps `milestones`.

    Source: torch.optim.lr_scheduler.MultiStepLR.

    >>> from tensorgrad import optim
    >>> [optim.MultiStepLR(1.0, (1, 3), gamma=0.5)(step) for step in range(4)]
    [1.0, 0.5, 0.5, 0.25]
    """

    lr: float
    milestones: Sequence[int]
    gamma: float = 0.1

    def __call__(self, step: int) -> float:
        return self.lr * self.gamma ** sum(step >= at for at in self.milestones)


@dataclass(frozen=True)
class ExponentialLR(Schedule):
    """`lr * gamma**step`.

    Source: torch.optim.lr_scheduler.ExponentialLR.

    >>> from tensorgrad import optim
    >>> [optim.ExponentialLR(1.0, 0.5)(step) for step in range(3)]
    [1.0, 0.5, 0.25]
    """

    lr: float
    gamma: float

    def __call__(self, step: int) -> float:
        return self.lr * self.gamma**step


@dataclass(frozen=True)
class CosineAnnealingLR(Schedule):
    """Half a cosine wave from `lr` down to `eta_min` in `T_max` steps.

    It stays at `eta_min` from there on (PyTorch's goes up again).

    Source: Loshchilov and Hutter, SGDR: stochastic gradient descent with warm restarts (2017),
    equation 5; torch.optim.lr_scheduler.CosineAnnealingLR.

    >>> from tensorgrad import optim
    >>> [round(optim.CosineAnnealingLR(1.0, 4)(step), 3) for step in range(6)]
    [1.0, 0.854, 0.5, 0.146, 0.0, 0.0]
    """

    lr: float
    T_max: int
    eta_min: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _positive(self, T_max=self.T_max)

    def __call__(self, step: int) -> float:
        return _cosine(self.lr, self.eta_min, min(step / self.T_max, 1.0))


@dataclass(frozen=True)
class WarmupCosineLR(Schedule):
    """A straight line up to `lr` in `warmup` steps, then half a cosine wave down to `eta_min` at `total_steps`.

    Step k of the warm-up (from 0) has `lr * (k + 1) / warmup`, so the first step moves already.

    Source: Loshchilov and Hutter (2017) for the wave; Goyal et al., Accurate, large minibatch SGD
    (2017), for the warm-up.

    >>> from tensorgrad import optim
    >>> [round(optim.WarmupCosineLR(1.0, 2, 6)(step), 3) for step in range(7)]
    [0.5, 1.0, 1.0, 0.854, 0.5, 0.146, 0.0]
    """

    lr: float
    warmup: int
    total_steps: int
    eta_min: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _positive(self, total_steps=self.total_steps)
        if not 0 <= self.warmup < self.total_steps:
            raise InputError(f"WarmupCosineLR: warmup must be from 0 to total_steps - 1, got {self.warmup}")

    def __call__(self, step: int) -> float:
        if step < self.warmup:
            return self.lr * (step + 1) / self.warmup
        way = (step - self.warmup) / (self.total_steps - self.warmup)
        return _cosine(self.lr, self.eta_min, min(way, 1.0))


@dataclass(frozen=True)
class OneCycleLR(Schedule):
    """Up from `max_lr / div_factor` to `max_lr`, then down to a fraction of the start.

    Args:
        max_lr: the top.
        total_steps: of the whole cycle; afterwards it stays at the end's rate.
        pct_start: the part of the cycle that goes up.
        anneal_strategy: `cos` or `linear`.
        div_factor: how many times smaller the start is than the top.
        final_div_factor: how many times smaller the end is than the start.

    Source: Smith and Topin, Super-convergence (2018); torch.optim.lr_scheduler.OneCycleLR.

    >>> from tensorgrad import optim
    >>> [round(optim.OneCycleLR(1.0, 5, pct_start=0.4)(step), 3) for step in range(5)]
    [0.04, 1.0, 0.75, 0.25, 0.0]
    """

    max_lr: float
    total_steps: int
    pct_start: float = 0.3
    anneal_strategy: Literal["cos", "linear"] = "cos"
    div_factor: float = 25.0
    final_div_factor: float = 1e4

    def __post_init__(self) -> None:
        super().__post_init__()
        _positive(
            self, total_steps=self.total_steps, div_factor=self.div_factor, final_div_factor=self.final_div_factor
        )
        require_number("OneCycleLR", "pct_start", self.pct_start, SHARE)
        known = self.anneal_strategy in ("cos", "linear")
        require("OneCycleLR", "anneal_strategy", self.anneal_strategy, known, "'cos' or 'linear'")

    def __call__(self, step: int) -> float:
        last = self.total_steps - 1
        top = self.pct_start * self.total_steps - 1
        first = self.max_lr / self.div_factor
        step = min(step, last)
        if step <= top:
            return self._between(first, self.max_lr, step / top if top else 1.0)
        way = (step - top) / (last - top) if last > top else 1.0
        return self._between(self.max_lr, first / self.final_div_factor, way)

    def _between(self, start: float, end: float, way: float) -> float:
        return _cosine(start, end, way) if self.anneal_strategy == "cos" else start + (end - start) * way


@dataclass(frozen=True)
class PolynomialLR(Schedule):
    """From `lr` down to 0 in `total_iters` steps, as `(1 - step / total_iters) ** power`.

    Source: torch.optim.lr_scheduler.PolynomialLR.

    >>> from tensorgrad import optim
    >>> [optim.PolynomialLR(1.0, 4, power=2.0)(step) for step in range(6)]
    [1.0, 0.5625, 0.25, 0.0625, 0.0, 0.0]
    """

    lr: float
    total_iters: int = 5
    power: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _positive(self, total_iters=self.total_iters)

    def __call__(self, step: int) -> float:
        return self.lr * (1 - min(step, self.total_iters) / self.total_iters) ** self.power


@dataclass(frozen=True)
class CosineAnnealingWarmRestarts(Schedule):
    """Half cosine waves from `lr` down to `eta_min`, one after the other.

    Args:
        lr: where each wave starts.
        T_0: steps of the first wave.
        T_mult: how many times longer each wave is than the one before.
        eta_min: where each wave ends.

    Source: Loshchilov and Hutter, SGDR: stochastic gradient descent with warm restarts (2017);
    torch.optim.lr_scheduler.CosineAnnealingWarmRestarts.

    >>> from tensorgrad import optim
    >>> [round(optim.CosineAnnealingWarmRestarts(1.0, 2, 2)(step), 3) for step in range(7)]
    [1.0, 0.5, 1.0, 0.854, 0.5, 0.146, 1.0]
    """

    lr: float
    T_0: int
    T_mult: int = 1
    eta_min: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _positive(self, T_0=self.T_0, T_mult=self.T_mult)
        if self.T_mult < 1:
            raise InputError(f"CosineAnnealingWarmRestarts: T_mult must be 1 or more, got {self.T_mult}")

    def __call__(self, step: int) -> float:
        length = self.T_0
        if self.T_mult == 1:
            step %= length
        while step >= length:
            step, length = step - length, length * self.T_mult
        return _cosine(self.lr, self.eta_min, step / length)


@dataclass(frozen=True)
class LambdaLR(Schedule):
    """`lr` times a function of the step.

    Source: torch.optim.lr_scheduler.LambdaLR.

    >>> from tensorgrad import optim
    >>> [optim.LambdaLR(1.0, lambda step: 0.5**step)(step) for step in range(3)]
    [1.0, 0.5, 0.25]
    """

    lr: float
    lr_lambda: Callable[[int], float]

    def __call__(self, step: int) -> float:
        return self.lr * self.lr_lambda(step)


@dataclass(frozen=True)
class SequentialLR(Schedule):
    """Schedules one after the other, each counting its own steps from 0.

    Args:
        schedulers: schedules, or other functions of the step.
        milestones: the steps at which the second, the third and so on begin.

    Source: torch.optim.lr_scheduler.SequentialLR.

    >>> from tensorgrad import optim
    >>> warmup, rest = optim.LinearLR(1.0, 0.5, total_iters=2), optim.StepLR(1.0, 1, gamma=0.5)
    >>> [optim.SequentialLR([warmup, rest], milestones=[2])(step) for step in range(5)]
    [0.5, 0.75, 1.0, 0.5, 0.25]
    """

    schedulers: Sequence[Callable[[int], float]]
    milestones: Sequence[int]

    def __post_init__(self) -> None:
        super().__post_init__()
        bounds = [0, *self.milestones]
        if len(bounds) != len(self.schedulers):
            raise InputError(
                f"SequentialLR: {len(self.schedulers)} schedules want one milestone less, got {list(self.milestones)}"
            )
        if any(b <= a for a, b in pairwise(bounds)):
            raise InputError(f"SequentialLR: milestones must be positive and rise, got {list(self.milestones)}")

    def __call__(self, step: int) -> float:
        at = sum(step >= milestone for milestone in self.milestones)
        return self.schedulers[at](step - (self.milestones[at - 1] if at else 0))


def _cosine(start: float, end: float, way: float) -> float:
    """Half a cosine wave; `way` is 0 at the start and 1 at the end."""
    return end + (start - end) * (1 + math.cos(math.pi * way)) / 2
