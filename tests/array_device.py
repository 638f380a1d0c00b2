"""A device of NumPy arrays, whose kernels are Python functions: the runtime and its stores without a browser."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence

import numpy as np

from tensorgrad.device import base
from tensorgrad.device.base import Feed, Limits, Recording, Slice
from tensorgrad.errors import OutOfMemoryError, TensorgradError
from tensorgrad.plan import KernelSpec

Kernel = Callable[..., None]


class ArrayDevice:
    """Memory in NumPy arrays; a dispatch's source is a key of `kernels`, called with its bytes as f32."""

    def __init__(self, kernels: dict[str, Kernel] | None = None, room: int = 10**6) -> None:
        self.limits = Limits()
        self.lost: str | None = None
        self.kernels = {} if kernels is None else kernels
        self.room = room
        self.memory: dict[int, np.ndarray] = {}
        self.labels: dict[int, str] = {}
        self.log: list[str] = []
        self.closed = 0
        self._next = 0

    async def alloc(self, buffers: Sequence[tuple[str, int]]) -> list[int]:
        await asyncio.sleep(0)
        for label, nbytes in buffers:
            if nbytes > self.room:
                raise OutOfMemoryError(f"no room for {label!r}")
        ids = []
        for label, nbytes in buffers:
            self._next += 1
            self.memory[self._next] = np.zeros(nbytes, np.uint8)
            self.labels[self._next] = label
            ids.append(self._next)
        return ids

    def free(self, buffers: Collection[int]) -> None:
        for handle in buffers:
            del self.memory[handle]

    def view(self, where: Slice) -> np.ndarray:
        return self.memory[where.buffer][where.offset : where.offset + where.nbytes]

    def write(self, target: Slice, data: np.ndarray) -> None:
        self.log.append(f"write {self.labels[target.buffer]}")
        self.view(target)[:] = data.reshape(-1)

    async def read(self, ranges: Sequence[Slice]) -> list[np.ndarray]:
        await asyncio.sleep(0)
        return [self.view(r).copy() for r in ranges]

    def begin(self, kernel: KernelSpec) -> None:
        pass

    async def compile(self, recording: Recording) -> ArrayProgram:
        await asyncio.sleep(0)
        if missing := [d.label for d in recording.dispatches if d.source not in self.kernels]:
            raise TensorgradError(f"no kernel {missing}")
        return ArrayProgram(self, recording)

    def close(self) -> None:
        self.closed += 1


class ArrayProgram:
    def __init__(self, device: ArrayDevice, recording: Recording) -> None:
        self.device, self.recording = device, recording
        self.fed: list[np.ndarray] = []
        self.unread: list[int] = []
        self.running = 0
        self.closed = 0

    def feed(self, arrays: Sequence[np.ndarray]) -> None:
        self.fed = list(arrays)

    async def submit(self) -> None:
        self.running += 1
        assert self.running == 1, "steps overlap"
        for (target, shape, storage), array in zip(self.recording.uploads, self.fed, strict=True):
            assert array.shape == shape
            self.device.view(target)[: array.size * storage.itemsize] = array.astype(storage).reshape(-1).view(np.uint8)
        await self._replay()
        self.running -= 1

    async def _replay(self) -> None:
        await asyncio.sleep(0)
        for d in self.recording.dispatches:
            self.device.log.append(d.label)
            self.device.kernels[d.source](*(self.device.view(b.range).view(np.float32) for b in d.bindings))
        for source, target in self.recording.copies:
            assert source.buffer != target.buffer, "WebGPU copies nothing within one buffer"
            self.device.view(target)[:] = self.device.view(source)
        if self.recording.loss is not None:
            self.unread.append(int(self.device.view(self.recording.loss).view(np.uint32)[0]))

    async def step(self) -> int:
        await self.submit()
        return self.unread.pop()

    async def run(self, reads: tuple[Slice, ...], *, with_loss: bool = False) -> list[np.ndarray]:
        await self.submit()
        if with_loss:
            self.unread.pop()
        return [self.device.view(r).copy() for r in reads]

    async def run_many(self, feeds: Sequence[Feed], first: int, count: int) -> np.ndarray:
        for step in range(count):
            for target, buffers, each, turn in feeds:
                at = (first + step) % turn if turn else step
                held = self.device.memory[buffers[at // each]]
                self.device.view(target)[:] = held[at % each * target.nbytes :][: target.nbytes]
            await self._replay()
        found, self.unread = self.unread[-count:], self.unread[:-count]
        return np.array(found, np.uint32)

    async def losses(self) -> np.ndarray:
        result = np.array(self.unread[-base.LOSS_RING :], np.uint32)
        self.unread.clear()
        return result

    async def ready(self) -> None:
        pass

    async def profile(self, times: Sequence[int] = ()) -> list[float]:
        await self.submit()
        return [float(i) for i in range(len(self.recording.dispatches))]

    def close(self) -> None:
        self.closed += 1


class Idle(dict[str, Kernel]):
    """Kernels of any source, which do nothing: for what depends on places alone."""

    def __contains__(self, source: object) -> bool:
        return True

    def __missing__(self, source: str) -> Kernel:
        return lambda *buffers: None
