"""Where a graph runs: one small class a device, each of which makes an executor of a graph."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tensorgrad.callsite import call_site
from tensorgrad.debug import debug, report, stage
from tensorgrad.device.base import Executor, Limits
from tensorgrad.device.convert import from_bytes, to_bytes
from tensorgrad.errors import InputError, NoDeviceError
from tensorgrad.graph import Graph, Value
from tensorgrad.lower.lowering import Lowered, lower
from tensorgrad.plan import KernelSpec
from tensorgrad.wgsl.generate import generate


@dataclass(slots=True)
class Built:
    """A graph ready to run.

    Attributes:
        executor: runs it.
        graph: the optimized graph.
        lowered: its kernels and buffer plan, where there are any.
        kernels: as the device was given them.
    """

    executor: Executor
    graph: Graph
    lowered: Lowered | None = None
    kernels: tuple[KernelSpec, ...] = ()


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

    def write(self, store: Any, arrays: Mapping[str, np.ndarray]) -> None:
        """Overwrites parameters and states of a store with arrays of their exact shapes and dtypes."""
        ...

    async def build(self, graph: Graph, outputs: Mapping[str, Value], store: Any) -> Built:
        """An executor for an optimized graph."""
        ...


class WebGPU:
    """The kernels, on the browser's GPU."""

    name = "webgpu"

    def __init__(self, device: Any) -> None:
        self.device = device
        self.limits: Limits = device.limits

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

    def write(self, store: Any, arrays: Mapping[str, np.ndarray]) -> None:
        for name, array in arrays.items():
            held = store.tensors[name]
            self.device.write(held.range, to_bytes(array, held.dtype, held.range.nbytes))

    async def build(self, graph: Graph, outputs: Mapping[str, Value], store: Any) -> Built:
        from tensorgrad.runtime import create_runtime

        with stage("lower"):
            lowered = lower(graph, outputs, max_buffers=self.limits.storage_buffers)
        with stage("wgsl"):
            kernels = tuple(generate(lowered, self.limits))
        with stage("device"):
            runtime = await create_runtime(
                lowered.memory.plan, kernels, device=self.device, store=store, debug_groups=debug() > 0
            )
        return report(Built(runtime, graph, lowered, kernels), self.name)


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

    def write(self, store: Any, arrays: Mapping[str, np.ndarray]) -> None:
        store.update({name: array.copy() for name, array in arrays.items()})

    async def build(self, graph: Graph, outputs: Mapping[str, Value], store: Any) -> Built:
        from tensorgrad.device.numpy import NumpyRuntime

        return report(Built(NumpyRuntime(graph, outputs=outputs, store=store), graph), self.name)


class Interpret(Numpy):
    """The kernels' expressions on index grids: slow, and independent of the reference rules."""

    name = "interpret"

    async def build(self, graph: Graph, outputs: Mapping[str, Value], store: Any) -> Built:
        from tensorgrad.device.interpret import InterpretRuntime

        with stage("lower"):
            lowered = lower(graph, outputs, max_buffers=self.limits.storage_buffers)
        return report(Built(InterpretRuntime(lowered, outputs=outputs, store=store), graph, lowered), self.name)


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
        reason = str(error).rstrip(".")
        warnings.warn(f"running on the numpy device, without a GPU: {reason}", RuntimeWarning, stacklevel=5)
        return Numpy()
