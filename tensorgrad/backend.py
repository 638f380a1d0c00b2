"""Where a graph runs: one small class a device, each of which makes an executor of a graph."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tensorgrad import debug
from tensorgrad.device.base import Executor, Limits
from tensorgrad.errors import NoDeviceError
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

    async def build(self, graph: Graph, outputs: Mapping[str, Value], store: Any) -> Built:
        from tensorgrad.runtime import create_runtime

        with debug.stage("lower"):
            lowered = lower(graph, outputs, max_buffers=self.limits.storage_buffers)
        with debug.stage("wgsl"):
            kernels = tuple(generate(lowered, self.limits))
        with debug.stage("device"):
            runtime = await create_runtime(lowered.memory.plan, kernels, device=self.device, store=store)
        return debug.built(Built(runtime, graph, lowered, kernels), self.name)


class Numpy:
    """The graph, node by node, with the reference rules."""

    name = "numpy"

    def __init__(self) -> None:
        from tensorgrad.device.numpy import NumpyRuntime

        self.limits = NumpyRuntime.limits

    def store(self) -> dict[str, np.ndarray]:
        return {}

    async def build(self, graph: Graph, outputs: Mapping[str, Value], store: Any) -> Built:
        from tensorgrad.device.numpy import NumpyRuntime

        return debug.built(Built(NumpyRuntime(graph, outputs=outputs, store=store), graph), self.name)


class Interpret(Numpy):
    """The kernels' expressions on index grids: slow, and independent of the reference rules."""

    name = "interpret"

    async def build(self, graph: Graph, outputs: Mapping[str, Value], store: Any) -> Built:
        from tensorgrad.device.interpret import InterpretRuntime

        with debug.stage("lower"):
            lowered = lower(graph, outputs, max_buffers=self.limits.storage_buffers)
        return debug.built(Built(InterpretRuntime(lowered, outputs=outputs, store=store), graph, lowered), self.name)


_default: Backend | None = None


async def open_backend(device: Any = None) -> Backend:
    """The backend for what the user gave as `device`.

    Args:
        device: `"webgpu"`, `"numpy"` or `"interpret"`; a JavaScript GPUDevice, or a device of this
            library; None is WebGPU where there is an adapter, else numpy, with a warning that says why.

    Raises:
        NoDeviceError: WebGPU was asked for by name and there is none.
    """
    global _default
    if device is None:
        if _default is None or (isinstance(_default, WebGPU) and _default.device.lost is not None):
            _default = await _open_default()
        return _default
    if isinstance(device, Numpy | WebGPU):
        return device
    if device == "numpy":
        return Numpy()
    if device == "interpret":
        return Interpret()
    from tensorgrad.device.webgpu import WebGPUDevice, request_device

    if device == "webgpu":
        if isinstance(_default, WebGPU) and _default.device.lost is None:
            return _default
        _default = WebGPU(await request_device())
        return _default
    return WebGPU(device if isinstance(device, WebGPUDevice) else WebGPUDevice(device))


async def _open_default() -> Backend:
    from tensorgrad.device.webgpu import request_device

    try:
        if sys.platform != "emscripten":
            raise NoDeviceError("this Python is not in a browser")
        return WebGPU(await request_device())
    except NoDeviceError as error:
        reason = str(error).rstrip(".")
        warnings.warn(f"running on the numpy device, without a GPU: {reason}", RuntimeWarning, stacklevel=4)
        return Numpy()
