"""`tg.compile(..., tune=True)`: the variants of the expensive kernels are measured on the device, and the fastest run.

Kernels of equal text are measured once, the most expensive first, on buffers of their own: nothing of the model
is touched. What was chosen is part of the program, and kept with it in the plan cache.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from tensorgrad.callsite import call_site, warn
from tensorgrad.device.base import Limits
from tensorgrad.errors import InputError
from tensorgrad.lower.kernel import Kernel
from tensorgrad.lower.lowering import Lowered
from tensorgrad.plan import KernelSpec
from tensorgrad.program import Choice, Tuning
from tensorgrad.wgsl.generate import Writer, key_of
from tensorgrad.wgsl.variants import variants

SECONDS = 10.0
"""The budget of `tune=True`."""

CLEAR = 0.97
"""A variant has to take less than this part of the default's time: differences that small come and go."""

WORTH = 0.002
"""Kernels that take less than this part of all kernels' time are left as they are."""

AHEAD = 4
"""Kernels whose variants compile at the same time; where the GPU is a CPU, one."""

NOTHING: Mapping[str, Choice] = {}


def seconds_of(tune: bool | float) -> float:
    """The budget that the `tune` of `tg.compile` gives; 0 is none."""
    if isinstance(tune, bool):
        return SECONDS if tune else 0.0
    if not isinstance(tune, int | float) or not 0 <= tune < math.inf:
        raise InputError(f"tune is True, False or a number of seconds, got {tune!r}", call_site())
    return float(tune)


class Timing(Protocol):
    """Kernels ready to be timed; see `device.timer.Prepared`."""

    async def measure(self, *, rivals: bool = True) -> list[float]: ...

    def close(self) -> None: ...


class Timers(Protocol):
    """What times kernels; see `device.timer.Timer`."""

    async def prepare(self, kernels: Sequence[KernelSpec]) -> Timing: ...


async def tune(
    lowered: Lowered,
    limits: Limits,
    open_timer: Callable[[Sequence[KernelSpec]], AbstractAsyncContextManager[Timers]],
    budget: float = SECONDS,
    known: Mapping[str, Choice] = NOTHING,
    clock: Callable[[], float] = time.perf_counter,
) -> Tuning:
    """Measures the variants of a program's kernels.

    Args:
        open_timer: what times these kernels and their variants.
        budget: seconds after which no further kernel is begun.
        known: choices of earlier times, by key; these kernels are not measured again.
        clock: seconds that pass.

    Raises:
        OutOfMemoryError: the device has no room for the buffers to measure on.
    """
    begun = clock()
    writer = Writer(lowered, limits)
    specs = [(kernel, writer.write(kernel)) for kernel in lowered.kernels]
    counts = Counter(key_of(spec) for _, spec in specs if spec.runs)
    texts = {key_of(spec): (kernel, spec) for kernel, spec in specs if spec.runs and len(variants(kernel, limits)) > 1}
    choices = [known[key]._replace(repeats=counts[key]) for key in texts if key in known]
    todo = {key: text for key, text in texts.items() if key not in known}
    left = 0
    if todo:
        async with open_timer([spec for _, spec in todo.values()]) as timer:
            times = await (await timer.prepare([spec for _, spec in todo.values()])).measure(rivals=False)
            costs = {key: counts[key] * ns for key, ns in zip(todo, times, strict=True)}
            least = WORTH * (sum(costs.values()) + sum(c.repeats * c.before for c in choices))
            order = [key for key in sorted(costs, key=lambda key: -costs[key]) if costs[key] >= least]
            chooser = _Chooser(writer, timer, 1 if limits.software else AHEAD, clock, begun + budget)
            found = await chooser.run([(key, todo[key][0]) for key in order])
            choices += [choice._replace(repeats=counts[choice.key]) for choice in found]
            left = len(order) - chooser.done
    choices.sort(key=lambda choice: -choice.repeats * choice.before)
    return Tuning(tuple(choices), budget, clock() - begun, left)


class _Chooser:
    """Compiles the variants of some kernels, then measures them, and so on.

    Attributes:
        done: kernels that were measured.
    """

    def __init__(self, writer: Writer, timer: Timers, ahead: int, clock: Callable[[], float], end: float) -> None:
        self._writer, self._timer, self._ahead, self._clock, self._end = writer, timer, ahead, clock, end
        self.done = 0

    async def run(self, kernels: Sequence[tuple[str, Kernel]]) -> list[Choice]:
        """A choice for each kernel (key and kernel), as long as there is time."""
        found: list[Choice] = []
        coming = deque(kernels)
        while coming and self._clock() < self._end:
            for key, specs, timing in await self._compile(coming):
                if self._clock() < self._end or not self.done:
                    found += _choice(key, specs, await timing.measure())
                    self.done += 1
                else:
                    timing.close()
        return found

    async def _compile(self, coming: deque[tuple[str, Kernel]]) -> list[tuple[str, dict[str, KernelSpec], Timing]]:
        """The variants of the next kernels, as many as compile in half of the time that is left."""
        half = (self._clock() + self._end) / 2
        begun: list[tuple[str, dict[str, KernelSpec], asyncio.Task[Timing]]] = []
        while coming and (not begun or self._clock() < half):
            key, kernel = coming.popleft()
            specs = self._writer.alternatives(kernel)
            begun.append((key, specs, asyncio.ensure_future(self._timer.prepare([*specs.values()]))))
            if len(begun) >= self._ahead:
                await asyncio.wait([begun[-self._ahead][-1]])
        return [(key, specs, await task) for key, specs, task in begun]


def _choice(key: str, specs: Mapping[str, KernelSpec], times: Sequence[float]) -> list[Choice]:
    """The fastest variant, or the default (the first) where that is about as fast; none where nothing ran."""
    named = dict(zip(specs, times, strict=True))
    (default, before), best = next(iter(named.items())), min(named, key=lambda name: named[name])
    if not math.isfinite(before):
        return []
    name = best if named[best] < CLEAR * before else default
    tried = sum(map(math.isfinite, times))
    return [Choice(key, name, specs[default].name, 1, before, named[name], tried)]


def choices_of(tuning: Tuning | None) -> dict[str, str]:
    """Key -> variant, as `wgsl.generate` takes it."""
    return {choice.key: choice.variant for choice in tuning.choices} if tuning else {}


def untuned(why: str) -> None:
    """Warns that `tune` has no effect; the program runs all the same."""
    warn(f"tune has no effect: {why}. The templates' own choices run")
