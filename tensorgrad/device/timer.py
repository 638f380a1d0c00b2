"""Times kernels on the device, on buffers of its own with made-up numbers in them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np

from tensorgrad.device.base import Bound, Copy, Dispatch, Program, Recording, Slice
from tensorgrad.errors import TensorgradError
from tensorgrad.plan import BufferPlan, KernelSpec

EFFORT = 2e6
"""Nanoseconds of one measurement: a kernel is run as often as that takes. Browsers may round times to 0.1 ms."""

ROUNDS = 3
"""Measurements of each kernel, by turns; the fastest counts."""

HOPELESS = 1.5
"""How many times as long as the fastest a rival takes at first to be measured no further."""

MOST_RUNS = 400
"""Most runs of a kernel in one measurement."""

TICK = 1e5
"""Nanoseconds to which a browser may round."""

WORK = 5e6
"""Nanoseconds of each piece of work for a GPU that would wait: an idle one slows its clock, to a fourth at times."""

SEED_NBYTES = 1 << 20
"""Random bytes that are uploaded; the rest of the buffers is filled with copies of them."""


class Timer:
    """Times kernels of a plan.

    Args:
        device: a `base.Device` that has timestamp queries.
        plan: says how large the kernels' buffers are.
        kernels: those that will be timed; others that bind the same buffers may be timed too.

    To be used in `async with`, which allocates the buffers and frees them: one for each binding, as large as
    the largest that a kernel binds there.

    Raises:
        OutOfMemoryError: on entering.
    """

    def __init__(self, device: Any, plan: BufferPlan, kernels: Sequence[KernelSpec]) -> None:
        self._device, self._plan = device, plan
        sizes = [sorted((plan.buffers[b.buffer].nbytes for b in k.bindings), reverse=True) for k in kernels]
        most = max(map(len, sizes), default=0)
        self._sizes = [max(s[i] for s in sizes if len(s) > i) for i in range(most)]
        self._kernels = kernels
        self._buffers: list[int] = []
        self._over = False
        self._load: asyncio.Task[None] | None = None
        self.turn = asyncio.Lock()

    async def __aenter__(self) -> Self:
        self._buffers = await self._device.alloc([(f"scratch {i}", n) for i, n in enumerate(self._sizes)])
        try:
            await self._fill()
        except BaseException:
            self._device.free(self._buffers)
            raise
        if self._kernels and not self._device.limits.software:
            self._load = asyncio.ensure_future(self._work(self._kernels[0]))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._over = True
        if self._load is not None:
            await self._load
        self._device.free(self._buffers)

    async def _fill(self) -> None:
        """Numbers from -1 to 1: zeros would be multiplied with less power, and so faster."""
        numbers = np.random.default_rng(0).uniform(-1, 1, SEED_NBYTES // 4).astype(np.float32)
        (seed,) = await self._device.alloc([("scratch seed", SEED_NBYTES)])
        try:
            self._device.write(Slice(seed, 0, SEED_NBYTES), numbers)
            copies = []
            for buffer, size in zip(self._buffers, self._sizes, strict=True):
                for start in range(0, size, SEED_NBYTES):
                    count = min(SEED_NBYTES, size - start)
                    copies.append(Copy(Slice(seed, 0, count), Slice(buffer, start, count)))
            program = await self._device.compile(Recording("tensorgrad scratch", (), (), tuple(copies)))
            await program.submit()
            program.close()
        finally:
            self._device.free([seed])

    async def prepare(self, kernels: Sequence[KernelSpec]) -> Prepared:
        """Compiles kernels; those that the device refuses are left out of what is measured."""
        found: list[int] = []
        program = await self._compile(kernels)
        if program is not None:
            found = list(range(len(kernels)))
        else:
            for i, kernel in enumerate(kernels):
                one = await self._compile([kernel])
                if one is not None:
                    one.close()
                    found.append(i)
            program = await self._compile([kernels[i] for i in found]) if found else None
        return Prepared(self, program, found, len(kernels))

    async def _work(self, kernel: KernelSpec) -> None:
        """Keeps the GPU at work until the end, but while something is measured, so that its clock stays up."""
        program = await self._compile([kernel])
        if program is None:
            return
        runs = 1
        try:
            while not self._over:
                async with self.turn:
                    (ns,) = await program.profile([runs])
                if ns < WORK and runs < MOST_RUNS:
                    runs *= 2
        except TensorgradError:
            return  # the device was lost, which others notice too
        finally:
            program.close()

    async def _compile(self, kernels: Sequence[KernelSpec]) -> Program | None:
        dispatches = tuple(Dispatch(k.name, k.wgsl, self._bind(k), k.workgroups) for k in kernels)
        try:
            program = await self._device.compile(Recording("tensorgrad tuning", (), dispatches, groups=False))
            await program.ready()
        except TensorgradError:
            self._device.raise_lost()
            return None
        return program

    def _bind(self, kernel: KernelSpec) -> tuple[Bound, ...]:
        sizes = [self._plan.buffers[b.buffer].nbytes for b in kernel.bindings]
        order = sorted(range(len(sizes)), key=lambda i: -sizes[i])
        place = dict(zip(order, self._buffers, strict=False))
        return tuple(Bound(Slice(place[i], 0, sizes[i]), b.write) for i, b in enumerate(kernel.bindings))


class Prepared:
    """Kernels that are ready to be timed. Made by `Timer.prepare`."""

    def __init__(self, timer: Timer, program: Program | None, places: list[int], count: int) -> None:
        self._timer, self._program, self._places, self._count = timer, program, places, count

    async def measure(self, *, rivals: bool = True) -> list[float]:
        """Nanoseconds of one run of each, infinity for what cannot run; then they are given up.

        Args:
            rivals: they are ways to do the same, and those that are far behind need no exact time.
        """
        found = np.full(self._count, np.inf)
        if self._program is None:
            return found.tolist()
        try:
            async with self._timer.turn:
                found[self._places] = await self._measured(self._program, rivals)
        finally:
            self.close()
        return found.tolist()

    async def _measured(self, program: Program, rivals: bool) -> np.ndarray:
        once = [1] * len(self._places)
        # the first run is slower than others: some drivers compile then
        about = np.minimum(*[np.array(await program.profile(once)) for _ in range(2)])
        exact = np.full(len(about), np.inf)
        for _ in range(ROUNDS):
            worth = np.ones(len(about), bool)
            if rivals:
                worth = about <= HOPELESS * max(about.min(), TICK)
            runs = np.where(worth, np.clip(EFFORT / np.maximum(about, 1), 1, MOST_RUNS), 0).astype(int)
            times = np.array(await program.profile(runs.tolist()))
            exact[worth] = np.minimum(exact[worth], times[worth] / runs[worth])
            about[worth] = exact[worth]
        return about

    def close(self) -> None:
        if self._program is not None:
            self._program.close()
