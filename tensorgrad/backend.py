"""Where a graph runs: one small class a device, each of which makes an executor of a graph."""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tensorgrad import cache
from tensorgrad.callsite import call_site, warn
from tensorgrad.compiled import Built, Compiled, Made
from tensorgrad.debug import debug, note, report, stage
from tensorgrad.device.base import Executor, Limits
from tensorgrad.device.convert import from_bytes, to_bytes
from tensorgrad.device.peaks import Peaks, measure_peaks
from tensorgrad.dtypes import f16
from tensorgrad.errors import InputError, NoDeviceError, OutOfMemoryError, UnsupportedError
from tensorgrad.graph import Graph
from tensorgrad.lower.lowering import Lowered, lower
from tensorgrad.plan import KernelSpec
from tensorgrad.program import Program, Recipe, Tuning, interface_of
from tensorgrad.tuning import choices_of, tune, untuned
from tensorgrad.wgsl.generate import generate

if TYPE_CHECKING:
    import numpy.typing as npt  # only annotations name it, and it takes 2 ms to import


class Backend(Protocol):
    """A device as the user's side sees it."""

    name: str
    limits: Limits

    def store(self) -> Any:
        """A new store for parameters and states."""
        ...

    @property
    def lost(self) -> str | None:
        """Why the device is gone, or None while it works."""
        ...

    async def read(self, store: Any, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Copies of parameters and states of a store."""
        ...

    def write(self, store: Any, arrays: Mapping[str, npt.ArrayLike]) -> None:
        """Overwrites parameters and states of a store with arrays of their exact shapes and dtypes."""
        ...

    async def peaks(self) -> Peaks | None:
        """The fastest that it copies and multiplies, or None where nobody can tell; measured once."""
        ...

    async def compile(self, recipe: Recipe) -> Compiled:
        """A recipe compiled for the device; nothing is put there yet."""
        ...

    async def build(self, compiled: Compiled, store: Any, values: Mapping[str, npt.ArrayLike]) -> Built:
        """An executor for what `compile` gave.

        Args:
            store: of its parameters and states; what it lacks is added.
            values: what some of those that it lacks start with.
        """
        ...


class WebGPU:
    """The kernels, on the browser's GPU."""

    name = "webgpu"

    def __init__(self, device: Any) -> None:
        self.device = device
        self.limits: Limits = device.limits
        self._peaks: Peaks | None = None

    def store(self) -> Any:
        from tensorgrad.device.store import Store

        return Store(self.device)

    @property
    def lost(self) -> str | None:
        return self.device.lost

    async def read(self, store: Any, names: Sequence[str]) -> dict[str, np.ndarray]:
        held = [store.tensors[name] for name in names]
        data = await self.device.read([h.range for h in held]) if held else []
        return {n: from_bytes(d, h.shape, h.dtype) for n, d, h in zip(names, data, held, strict=True)}

    def write(self, store: Any, arrays: Mapping[str, npt.ArrayLike]) -> None:
        for name, array in arrays.items():
            held = store.tensors[name]
            self.device.write(held.range, to_bytes(array, held.dtype, held.range.nbytes))

    async def peaks(self) -> Peaks | None:
        if self._peaks is None:
            try:
                self._peaks = await measure_peaks(self.device)
            except (OutOfMemoryError, UnsupportedError) as error:
                note(f"the device's peaks are not known: {error}")
        return self._peaks

    async def compile(self, recipe: Recipe) -> Compiled:
        with stage("cache", waits=True):
            key, program = await cache.find(recipe, self.name, self.limits)
        made = None
        if program is None:
            made = self._make(recipe)
            if recipe.tune:
                with stage("tune", waits=True):
                    made = await self._tuned(made, recipe.tune)
        return Compiled(lambda tuning: self._make(recipe, tuning), program, key, made)

    def _make(self, recipe: Recipe, tuning: Tuning | None = None) -> Made:
        graph = recipe.graph(self.limits)
        _check_half(graph, self.limits)
        outputs = recipe.outputs(graph)
        with stage("lower"):
            limits = self.limits
            lowered = lower(graph, outputs, max_buffers=limits.storage_buffers, totals=not limits.software)
        with stage("wgsl"):
            program = Program(interface_of(graph, outputs), lowered.memory.plan, self._kernels(lowered, tuning), tuning)
        return Made(graph, outputs, lowered, program)

    def _kernels(self, lowered: Lowered, tuning: Tuning | None) -> tuple[KernelSpec, ...]:
        return tuple(generate(lowered, self.limits, choices_of(tuning), self.device.begin))

    async def _tuned(self, made: Made, seconds: float) -> Made:
        """The program with the variants that are the fastest on this device."""
        from tensorgrad.device.timer import Timer

        assert made.lowered is not None
        assert made.program is not None
        lowered, plan = made.lowered, made.program.plan
        if "timestamp-query" not in self.limits.features:
            untuned("the device has no timestamp queries (the WebGPU feature 'timestamp-query')")
            return made
        known = await cache.find_choices(self.limits)
        try:
            tuning = await tune(lowered, self.limits, lambda specs: Timer(self.device, plan, specs), seconds, known)
        except OutOfMemoryError as error:
            untuned(str(error))
            return made
        await cache.save_choices(self.limits, {**known, **{choice.key: choice for choice in tuning.choices}})
        return made._replace(program=made.program._replace(kernels=self._kernels(lowered, tuning), tuning=tuning))

    async def build(self, compiled: Compiled, store: Any, values: Mapping[str, npt.ArrayLike]) -> Built:
        from tensorgrad.runtime import create_runtime

        program = compiled.program
        assert program is not None
        saving = None if compiled.cached else asyncio.ensure_future(cache.save(compiled.key, program))
        with stage("device", waits=True):
            runtime = await create_runtime(
                program.plan,
                program.kernels,
                device=self.device,
                store=store,
                values=values,
                debug_groups=debug() > 0,
            )
            if saving:
                await saving
        return report(Built(runtime, compiled), self.name)


class Numpy:
    """The graph, node by node, with the reference rules."""

    name = "numpy"
    lost: str | None = None

    def __init__(self) -> None:
        from tensorgrad.device.numpy import NumpyRuntime

        self.limits = NumpyRuntime.limits

    def store(self) -> dict[str, np.ndarray]:
        return {}

    async def read(self, store: Any, names: Sequence[str]) -> dict[str, np.ndarray]:
        return {name: store[name].copy() for name in names}

    def write(self, store: Any, arrays: Mapping[str, npt.ArrayLike]) -> None:
        store.update({name: np.array(array) for name, array in arrays.items()})

    async def peaks(self) -> Peaks | None:
        return None

    async def compile(self, recipe: Recipe) -> Compiled:
        if recipe.tune:
            untuned(f"the {self.name} device runs no kernels")
        return Compiled(lambda _: self._make(recipe))

    def _make(self, recipe: Recipe) -> Made:
        graph = recipe.graph(self.limits)
        return Made(graph, recipe.outputs(graph))

    async def build(self, compiled: Compiled, store: Any, values: Mapping[str, npt.ArrayLike]) -> Built:
        executor = self._executor(compiled.made, store)
        self.write(store, values)
        return report(Built(executor, compiled), self.name)

    def _executor(self, made: Made, store: dict[str, np.ndarray]) -> Executor:
        from tensorgrad.device.numpy import NumpyRuntime

        return NumpyRuntime(made.graph, outputs=made.outputs, store=store)


class Interpret(Numpy):
    """The kernels' expressions on index grids: slow, and independent of the reference rules."""

    name = "interpret"

    def _make(self, recipe: Recipe) -> Made:
        made = super()._make(recipe)
        with stage("lower"):
            lowered = lower(made.graph, made.outputs, max_buffers=self.limits.storage_buffers)
        return made._replace(lowered=lowered)

    def _executor(self, made: Made, store: dict[str, np.ndarray]) -> Executor:
        from tensorgrad.device.interpret import InterpretRuntime

        assert made.lowered is not None
        return InterpretRuntime(made.lowered, outputs=made.outputs, store=store)


def _check_half(graph: Graph, limits: Limits) -> None:
    """Raises UnsupportedError for a graph with f16 on a device without."""
    half = next((node for node in graph.nodes if any(t.dtype is f16 for t in node.types)), None)
    if half is not None and "shader-f16" not in limits.features:
        raise UnsupportedError(
            f"f16 needs the WebGPU feature 'shader-f16', which this GPU does not offer ({limits.adapter}); use f32",
            half.site,
        )


_default: Backend | None = None


async def open_backend(device: Any = None) -> Backend:
    """The backend for what the user gave as `device`.

    Args:
        device: `"webgpu"`, `"numpy"` or `"interpret"`; a JavaScript GPUDevice, or a device of this
            library; None is WebGPU where there is an adapter, else numpy, with a warning that says why.

    Raises:
        NoDeviceError: WebGPU was asked for by name and there is none.
        InputError: this is no device.
    """
    global _default
    if device is None:
        if _default is None or _default.lost is not None:
            _default = await _open_default()
        return _default
    if isinstance(device, Numpy | WebGPU):
        return device
    if device in ("numpy", "interpret"):
        return _host(device)
    from tensorgrad.device.webgpu import WebGPUDevice, request_device

    if device == "webgpu":
        if isinstance(_default, WebGPU) and _default.lost is None:
            return _default
        _default = WebGPU(await request_device())
        return _default
    if isinstance(device, WebGPUDevice):
        return WebGPU(device)
    if not hasattr(device, "createComputePipelineAsync"):
        raise InputError(
            f"the device must be 'webgpu', 'numpy', 'interpret', a GPUDevice or None, got {device!r}", call_site()
        )
    return WebGPU(WebGPUDevice(device))


@functools.cache
def _host(name: str) -> Backend:
    return Numpy() if name == "numpy" else Interpret()


async def _open_default() -> Backend:
    from tensorgrad.device.webgpu import request_device

    try:
        if sys.platform != "emscripten":
            raise NoDeviceError("this Python is not in a browser")
        return WebGPU(await request_device())
    except NoDeviceError as error:
        reason = error.message.rstrip(".")
        warn(f"running on the numpy device, without a GPU: {reason}")
        return Numpy()
