"""The timer of kernels and the device's peaks, on a device whose kernels take what a table says."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad.device import peaks
from tensorgrad.device.base import Bound, Limits, Recording, Slice
from tensorgrad.device.timer import Timer
from tensorgrad.errors import ShaderError
from tensorgrad.plan import Binding, BufferPlan, BufferSpec, KernelSpec


class Clockwork:
    """A device whose kernels (by their source) take so many nanoseconds, read from a clock that ticks every 0.1 ms."""

    def __init__(self, costs: dict[str, float], software: bool = True) -> None:
        self.limits, self.costs = Limits(software=software), costs
        self.held: dict[int, int] = {}
        self.written: list[Slice] = []
        self.copied: list[Slice] = []
        self.bound: list[Bound] = []
        self.open = self.runs = self.refused = self.profiles = 0
        self.working = False

    async def alloc(self, buffers: Sequence[tuple[str, int]]) -> list[int]:
        ids = [len(self.held) + 100 + i for i in range(len(buffers))]
        self.held.update(zip(ids, (nbytes for _, nbytes in buffers), strict=True))
        return ids

    def free(self, buffers: Sequence[int]) -> None:
        for handle in buffers:
            del self.held[handle]

    def write(self, target: Slice, data: np.ndarray) -> None:
        assert data.nbytes == target.nbytes
        self.written.append(target)

    def raise_lost(self) -> None:
        pass

    async def compile(self, recording: Recording) -> Any:
        if any(d.source not in self.costs for d in recording.dispatches):
            self.refused += 1
            raise ShaderError("1 shader did not compile")
        for copy in recording.copies:
            assert copy.target.offset + copy.target.nbytes <= self.held[copy.target.buffer]
            self.copied.append(copy.target)
        self.bound += [b for d in recording.dispatches for b in d.bindings]
        self.open += 1

        async def submit() -> None:
            pass

        async def profile(times: Sequence[int]) -> list[float]:
            assert len(times) == len(recording.dispatches)
            assert not self.working, "the GPU was given other work meanwhile"
            self.working = True
            await asyncio.sleep(0)
            self.working = False
            self.runs += sum(times)
            self.profiles += 1
            return [self.costs[d.source] * n // 1e5 * 1e5 for d, n in zip(recording.dispatches, times, strict=True)]

        async def ready() -> None:
            pass

        def close() -> None:
            self.open -= 1

        return SimpleNamespace(submit=submit, ready=ready, profile=profile, close=close)


def timed(device: Clockwork, sources: Sequence[str], *, rivals: bool = True) -> list[float]:
    sizes = (4 << 20, 40, (2 << 20) + 4)
    buffers = tuple(BufferSpec(i, "temp", f"t{i}", (n // 4,), tg.f32, n) for i, n in enumerate(sizes))
    bindings = (Binding(1), Binding(2), Binding(0, True))
    kernels = [KernelSpec(source, 0, source, bindings, 64) for source in sources]

    async def run() -> list[float]:
        async with Timer(device, BufferPlan(buffers), kernels) as timer:
            assert sorted(device.held.values(), reverse=True) == sorted(sizes, reverse=True)
            return await (await timer.prepare(kernels)).measure(rivals=rivals)

    found = asyncio.run(run())
    assert (device.held, device.open) == ({}, 0)
    return found


def test_kernels_are_timed_more_finely_than_the_clock_ticks() -> None:
    costs = {"a": 40_000.0, "b": 36_000.0, "c": 5_000.0, "d": 3_000_000.0}
    found = timed(Clockwork(costs), [*costs], rivals=False)
    # in 2 ms a tick is 5 %, in the most runs of the shortest too
    np.testing.assert_allclose(found, [*costs.values()], rtol=0.05)


def test_rivals_that_are_far_behind_are_not_run_often() -> None:
    costs = {"a": 500_000.0, "b": 50_000_000.0}
    device = Clockwork(costs)
    found = timed(device, ["a", "b"])
    assert found[0] == pytest.approx(costs["a"])
    assert found[1] == costs["b"]
    assert device.runs == 2 * 2 + 3 * 4  # all of them twice, then the one as often as takes 2 ms


def test_kernels_that_do_not_compile_take_for_ever() -> None:
    device = Clockwork({"a": 1e5, "c": 2e5})
    assert timed(device, ["a", "b", "c"]) == [1e5, float("inf"), 2e5]
    assert device.refused == 2  # together, and then the one
    assert timed(device, ["b"]) == [float("inf")]


def test_the_buffers_are_filled_and_bound_by_size() -> None:
    device = Clockwork({"a": 1e6})
    timed(device, ["a"])
    filled = {}
    for target in device.copied:
        filled[target.buffer] = filled.get(target.buffer, 0) + target.nbytes
    assert sorted(filled.values()) == [40, (2 << 20) + 4, 4 << 20]
    assert [b.range.nbytes for b in device.bound] == [40, (2 << 20) + 4, 4 << 20]
    assert [b.write for b in device.bound] == [False, False, True]


async def test_a_gpu_is_kept_at_work_while_nothing_is_measured() -> None:
    device = Clockwork({"a": 1e5}, software=False)
    buffers = (BufferSpec(0, "temp", "t", (16,), tg.f32, 64),)
    kernel = KernelSpec("a", 0, "a", (Binding(0, True),), 64)
    async with Timer(device, BufferPlan(buffers), [kernel]) as timer:
        for _ in range(40):
            await asyncio.sleep(0)  # as a compiler would be waited for
        assert device.profiles > 5
        assert device.runs > 50
        # which is not in the measurement's way
        assert await (await timer.prepare([kernel])).measure() == [1e5]
    before = device.profiles
    for _ in range(10):
        await asyncio.sleep(0)
    assert (device.profiles, device.open, device.held) == (before, 0, {})


async def test_peaks_are_what_moves_and_multiplies_in_the_time_it_takes() -> None:
    device = Clockwork({peaks._COPY: 1e6, peaks._MULTIPLY: 2e6}, software=False)
    found = await peaks.measure_peaks(device)
    assert found.gbps == pytest.approx(2 * (128 << 20) / 1e6)
    assert found.gflops == pytest.approx((1 << 20) * 512 * 8 * 8 / 2e6)
    assert found.share(found.gbps / 2, found.gflops / 4) == (0.5, "memory")
    assert found.share(found.gbps / 4, found.gflops / 2) == (0.5, "compute")
