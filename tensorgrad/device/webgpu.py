"""The browser's GPU, through Pyodide's JavaScript bridge and `replay.js` beside this file.

`await request_device()` asks the browser for a device; `WebGPUDevice(device)` uses one that
the page already has and never destroys it. Everything crosses the border as numbers, JSON or
bytes, so that a step creates no object that would have to be freed. The module imports
anywhere; without a browser only asking for a device fails.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np

from tensorgrad.device.adapter import load_helper, read_limits, request_js_device
from tensorgrad.device.base import Feed, Recording, Slice
from tensorgrad.device.reports import compile_error, out_of_memory, show_size
from tensorgrad.device.staging import Staging
from tensorgrad.errors import DeviceLostError, TensorgradError, UnsupportedError
from tensorgrad.plan import KernelSpec, access_of
from tensorgrad.wgsl.unroll import unrolled

OK, LOST, FAILED, AGAIN = range(4)  # as in program.js

READ_AT_ONCE = 256 * 2**20
"""Most bytes of one readback by `WebGPUDevice.read`; more is read in turns."""


async def request_device(*, power_preference: str = "high-performance", features: Iterable[str] = ()) -> WebGPUDevice:
    """Ask the browser for a GPU device with the highest limits its adapter has.

    Args:
        power_preference: `high-performance` or `low-power`.
        features: WebGPU features to switch on, where the adapter has them, besides
            `timestamp-query`, `subgroups` and `shader-f16`.

    Raises:
        NoDeviceError: there is no WebGPU here, or WebGPU has no adapter.
    """
    device, info = await request_js_device(power_preference, features)
    return WebGPUDevice(device, own=True, info=info)


class WebGPUDevice:
    """A JavaScript GPUDevice as the runtime sees it.

    Args:
        js_device: the GPUDevice. Several of these on one share its pipelines.
        own: `close` destroys it; for a device that somebody else made, leave it False.
        info: the adapter's GPUAdapterInfo, where the device does not carry it.
    """

    def __init__(self, js_device: Any, *, own: bool = False, info: Any = None) -> None:
        self.js_device = js_device
        self.limits = read_limits(js_device, info)
        self._own = own
        self._engine = load_helper().engineOf(js_device)
        if self.limits.software:
            self._engine.patience = 2

    @property
    def lost(self) -> str | None:
        """Why the device is gone, or None while it works."""
        reason = self._engine.lost
        return reason if isinstance(reason, str) else None

    @property
    def buffer_count(self) -> int:
        """GPU buffers that exist on the device through this library."""
        return self._engine.buffers.size

    def raise_lost(self) -> None:
        """Raise DeviceLostError if the device is lost."""
        if (reason := self.lost) is not None:
            raise DeviceLostError(
                f"the GPU device was lost: {reason}. What was on it is gone; "
                "compile again to get a new device, and restore the last snapshot or checkpoint"
            )

    async def _settle(self, promise: Awaitable[Any]) -> Any:
        """Await a JavaScript promise; its rejection becomes one of our errors."""
        from pyodide.ffi import JsException

        try:
            return await promise
        except JsException as error:
            self.raise_lost()
            raise TensorgradError(f"the browser's GPU reported an error: {error}") from error

    async def alloc(self, buffers: Sequence[tuple[str, int]]) -> list[int]:
        """Allocate zeroed buffers, all or none; see `base.Device.alloc`."""
        self.raise_lost()
        if not buffers:
            return []
        largest = max(buffers, key=lambda buffer: buffer[1])
        if largest[1] > self.limits.buffer_size:
            most = show_size(self.limits.buffer_size)
            raise out_of_memory(*largest, buffers, f"one buffer here holds at most {most}")
        answer = await self._alloc(buffers)
        if "ids" in answer:
            return answer["ids"]
        ids: list[int] = []
        try:
            for buffer in buffers:  # the browser does not say which one failed: ask again, one by one
                one = await self._alloc([buffer])
                if "ids" not in one:
                    raise out_of_memory(*buffer, buffers, one["message"])
                ids += one["ids"]
        except BaseException:
            self.free(ids)
            raise
        return ids

    async def _alloc(self, buffers: Sequence[tuple[str, int]]) -> dict[str, Any]:
        return json.loads(await self._settle(self._engine.alloc(json.dumps(buffers))))

    def free(self, buffers: Collection[int]) -> None:
        """Destroy buffers."""
        self._engine.free(_array(list(buffers)))

    def write(self, target: Slice, data: np.ndarray) -> None:
        """Queue a write of `data`, exactly `target.nbytes` bytes, into a range."""
        self.raise_lost()
        self._engine.write(target.buffer, target.offset, data.reshape(-1).view(np.uint8))

    async def read(self, ranges: Sequence[Slice]) -> list[np.ndarray]:
        """The bytes of some ranges: one readback, or several where they are too large for one."""
        self.raise_lost()
        results: list[np.ndarray] = []
        for group in _groups(ranges, min(READ_AT_ONCE, self.limits.buffer_size)):
            data = await self._settle(self._engine.read(json.dumps(group)))
            results += _split(_take(data), group)
        return results

    def begin(self, kernel: KernelSpec) -> None:
        """Start to compile a kernel; see `base.Device.begin`."""
        self._engine.begin(kernel.name, kernel.access, kernel.wgsl)

    async def compile(self, recording: Recording) -> WebGPUProgram:
        """Make a recording's pipelines and bind groups; see `base.Device.compile`."""
        self.raise_lost()
        from pyodide.ffi import create_proxy

        staging = Staging(recording.uploads)
        waiting: dict[int, _Answer] = {}
        proxies = [create_proxy(staging.memory), create_proxy(_waker(waiting))]
        program = None
        try:
            spec = _describe(recording)
            compiling = self._engine.compile(json.dumps(spec), *proxies)
            faster = {i: text for i, source in enumerate(spec["sources"]) if (text := unrolled(source))}
            program = await self._settle(compiling)
            if isinstance(program, str):
                raise compile_error(recording, json.loads(program))
            program.faster = json.dumps(faster)
            return WebGPUProgram(self, program, staging, waiting, proxies, recording)
        except BaseException:
            for proxy in proxies:
                proxy.destroy()
            raise

    def close(self) -> None:
        """Destroy the device if it is our own."""
        if self._own:
            self.js_device.destroy()
            self._engine.lose("destroyed by tensorgrad")

    def __repr__(self) -> str:
        return f"WebGPUDevice({self.limits.adapter}{', lost' if self.lost else ''})"


class WebGPUProgram:
    """A recording with everything made; see `base.Program`. Made by `WebGPUDevice.compile`."""

    def __init__(
        self,
        device: WebGPUDevice,
        js_program: Any,
        staging: Staging,
        waiting: dict[int, _Answer],
        proxies: list[Any],
        recording: Recording,
    ) -> None:
        self.feed = staging.feed
        self._device = device
        self._js = js_program
        self._replay = js_program.replay  # looked up once: a step makes no JavaScript object
        self._waiting = waiting
        self._tickets = itertools.count(1)
        self._proxies = proxies
        self._has_loss = recording.loss is not None
        self._reads: dict[tuple[Slice, ...], int] = {}
        self._full = 0

    async def submit(self) -> None:
        """Queue one step; waits only while enough to keep the device busy is under way."""
        if self._full:
            await self._answer(self._js.drain)
        self._full = self._replay(0, -1, False)
        if self._full < 0:
            self._device.raise_lost()

    async def step(self) -> int:
        """Run one step and return the loss's bits."""
        return await self._answer(self._replay, 0, True)

    async def run_many(self, feeds: Sequence[Feed], first: int, count: int) -> np.ndarray:
        """Run `count` steps on inputs that are on the device and return the bits of their losses."""
        bits = await self._answer(self._js.replayMany, json.dumps(feeds), first, count)
        return _take(self._js.fetch(4 * count)).view(np.uint32) if count > 1 else np.array([bits], np.uint32)

    async def run(self, reads: tuple[Slice, ...], *, with_loss: bool = False) -> list[np.ndarray]:
        """Run one step and return the bytes of some ranges."""
        if not reads:
            await self.submit()
            return []
        if sum(item.nbytes for item in reads) > min(READ_AT_ONCE, self._device.limits.buffer_size):
            return await self._run_large(reads, with_loss)
        index = self._reads.get(reads)
        if index is None:
            index = self._reads[reads] = self._js.prepareRead(_array(reads))
        bits = await self._answer(self._replay, index, with_loss)
        if sum(r.nbytes for r in reads) <= 4:
            return [np.array([bits], np.uint32).view(np.uint8)]
        return _split(_take(self._js.fetch(sum(r.nbytes for r in reads))), reads)

    async def _run_large(self, reads: tuple[Slice, ...], with_loss: bool) -> list[np.ndarray]:
        """A step whose results do not fit into one readback: they are read after it."""
        await self.submit()
        data = await self._device.read(reads)
        if with_loss:
            self._js.unread.delete(self._js.steps - 1)
        return data

    async def _answer(self, call: Callable[..., Any], *args: Any) -> int:
        """Call into JavaScript with a ticket and wait until `wake` is called with it."""
        ticket = next(self._tickets)
        answer = self._waiting[ticket] = _Answer()
        try:
            if call(ticket, *args) == -1:
                self._device.raise_lost()
            status, value = await answer
        finally:
            del self._waiting[ticket]
        if status == OK:
            return value
        if status == AGAIN:
            raise KeyboardInterrupt
        self._device.raise_lost()
        raise TensorgradError("the browser's GPU could not give the step's results back")

    async def losses(self) -> np.ndarray:
        """The bits of the losses that nobody has read, oldest first."""
        await self._answer(self._js.losses)
        return _take(self._js.takeLosses()).view(np.uint32)

    async def ready(self) -> None:
        """Wait for the fastest texts of the kernels; see `base.Program.ready`."""
        await self._device._settle(self._js.improvement())

    async def profile(self, times: Sequence[int] = ()) -> list[float]:
        """Run one step with every dispatch timed; see `base.Program.profile`."""
        self._device.raise_lost()
        if "timestamp-query" not in self._device.limits.features:
            raise UnsupportedError(
                "this device has no timestamp queries (the WebGPU feature 'timestamp-query'), so kernels "
                "cannot be timed on the GPU; Chromium has them with --enable-unsafe-webgpu on most adapters"
            )
        await self.ready()
        data = await self._device._settle(self._js.profile(_array(times)))
        return _take(data).view(np.float64).tolist()

    def close(self) -> None:
        """Free the program's own buffers and the proxies; safe twice."""
        self._js.close()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(TensorgradError("this runtime was destroyed while the step ran"))
        for proxy in self._proxies:
            proxy.destroy()
        self._proxies = []


class _Answer(asyncio.Future[tuple[int, int]]):
    """What a ticket's caller awaits: (status, value).

    The event loop would wake the waiting task by way of the browser's, once or twice around; `deliver`
    runs it on the spot. Cancellation and errors take the usual way.
    """

    _wakeup: tuple[Callable[[Any], object], Any] | None = None
    _delivered = False

    def add_done_callback(self, fn: Callable[[Any], object], *, context: Any = None) -> None:
        """Keep the waiting task's wake-up: a future that is not awaited in a coroutine has no other."""
        self._wakeup = fn, context
        super().add_done_callback(fn, context=context)

    def deliver(self, status: int, value: int) -> bool:
        """Set the result and go on with the waiting task; called again, do what an interrupt prevented.

        Returns:
            False if it was cancelled, or ended by an error, and the event loop does the rest.
        """
        assert self._wakeup is not None
        fn, context = self._wakeup
        if not self.done():
            self._delivered = True
            self.remove_done_callback(fn)
            self.set_result((status, value))
        elif not self._delivered:
            return False
        context.run(fn, self)
        return True


def _waker(waiting: dict[int, _Answer]) -> Callable[[int, int, int], bool]:
    """The function that JavaScript reports a ticket's outcome to; false where nobody waits for it any more."""

    def wake(ticket: int, status: int, value: int) -> bool:
        answer = waiting.get(ticket)
        return answer is not None and answer.deliver(status, value)

    return wake


def _describe(recording: Recording) -> dict[str, Any]:
    """A recording as replay.js reads it; each distinct source appears once."""
    sources: dict[str, int] = {}
    dispatches = [
        {
            "label": d.label,
            "source": sources.setdefault(d.source, len(sources)),
            "access": access_of(d.bindings),
            "bindings": [b.range for b in d.bindings],
            "x": d.workgroups[0],
            "y": d.workgroups[1],
        }
        for d in recording.dispatches
    ]
    return {
        "label": recording.label,
        "sources": list(sources),
        "dispatches": dispatches,
        "uploads": [upload.target for upload in recording.uploads],
        "copies": recording.copies,
        "loss": recording.loss,
        "chunk": recording.chunk,
        "groups": recording.groups,
    }


def _array(values: Sequence[Any]) -> Any:
    """A sequence as a JavaScript array, to any depth."""
    from pyodide.ffi import to_js

    return to_js(values)


def _groups(ranges: Sequence[Slice], most: int) -> list[list[Slice]]:
    """Ranges in order, in groups of at most `most` bytes (a larger one alone)."""
    groups: list[list[Slice]] = []
    room = -1
    for item in ranges:
        if item.nbytes > room:
            groups.append([])
            room = most
        groups[-1].append(item)
        room -= item.nbytes
    return groups


def _take(data: Any) -> np.ndarray:
    """A JavaScript buffer's bytes as a new array."""
    array = np.empty(data.byteLength, np.uint8)
    if array.size:
        data.assign_to(array)
    return array


def _split(data: np.ndarray, ranges: Sequence[Slice]) -> list[np.ndarray]:
    """The parts of `data` that belong to each of the ranges it was read from."""
    ends = list(itertools.accumulate(item.nbytes for item in ranges))
    return [data[end - item.nbytes : end] for item, end in zip(ranges, ends, strict=True)]
