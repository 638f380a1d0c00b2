"""A second device for tests: wgpu-py, whose shader compiler is naga (Firefox's), on any adapter of the machine.

In CI the adapter is llvmpipe, a CPU. It is taken for a GPU or a CPU by the `Limits` that a test gives it, so the
kernels for GPUs, with subgroups, run there too. Only what the tests need of `device.base.Device` is here.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import wgpu
from wgpu.backends.wgpu_native.extras import set_instance_extras

from tensorgrad.backend import WebGPU
from tensorgrad.device.base import Copy, Dispatch, Feed, Limits, Recording, Slice
from tensorgrad.plan import KernelSpec
from tensorgrad.wgsl.unroll import unrolled

USAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
WANTED = {"subgroup": "subgroups", "shader-f16": "shader-f16"}
"""Features by wgpu-py's names, and WebGPU's."""

NAMES = {
    "storage_buffers": "max-storage-buffers-per-shader-stage",
    "invocations": "max-compute-invocations-per-workgroup",
    "workgroup_storage": "max-compute-workgroup-storage-size",
    "binding_size": "max-storage-buffer-binding-size",
    "buffer_size": "max-buffer-size",
}
SIZES = tuple(f"max-compute-workgroup-size-{axis}" for axis in "xyz")

LANES = """@group(0) @binding(0) var<storage, read_write> lanes: u32;
@compute @workgroup_size(64) fn main(@builtin(subgroup_size) size: u32) { lanes = size; }
"""


@functools.cache
def native() -> Native:
    """The machine's first adapter; the device is shared by all tests.

    Raises:
        RuntimeError: there is no adapter.
    """
    set_instance_extras(backends=["Vulkan", "Metal", "DX12"])  # not OpenGL, which complains of a missing display
    adapters = wgpu.gpu.enumerate_adapters_sync()
    if not adapters:
        raise RuntimeError(
            "wgpu finds no adapter. On Debian `apt-get install mesa-vulkan-drivers` brings one that needs no GPU"
        )
    return Native(adapters[0])


def backend(**limits: Any) -> WebGPU:
    """What `tg.compile` takes as device: the native device taken for one with these limits."""
    found = WebGPU(native())
    found.limits = found.limits._replace(**limits)
    return found


class Native:
    """An adapter and its buffers; see `device.base.Device`."""

    lost: str | None = None

    def __init__(self, adapter: Any) -> None:
        features = [name for name in WANTED if name in adapter.features]
        names = (*NAMES.values(), *SIZES)
        self.device = adapter.request_device_sync(
            required_features=features, required_limits={name: adapter.limits[name] for name in names}
        )
        self.buffers: dict[int, Any] = {}
        self._ids = itertools.count(1)
        self._pipelines: dict[tuple[str, str], Any] = {}
        self.limits = Limits(
            **{field: adapter.limits[name] for field, name in NAMES.items()},
            workgroup_size=tuple(adapter.limits[name] for name in SIZES),
            features=frozenset(WANTED[name] for name in features),
            adapter=adapter.summary,
            software=adapter.info["adapter_type"] == "CPU",
        )
        if "subgroup" in features:
            self.limits = self.limits._replace(subgroup_size=self._lanes())

    def _lanes(self) -> int:
        buffer = self.device.create_buffer(size=4, usage=USAGE)
        self._submit([(self.pipeline(LANES, "w"), self._group(LANES, "w", [(buffer, 0, 4)]), (1, 1))])
        return int.from_bytes(self.device.queue.read_buffer(buffer), "little")

    # -- shaders ----------------------------------------------------------------------------

    def module(self, source: str) -> Any:
        """A shader module: naga has parsed and validated the source.

        Raises:
            wgpu.GPUValidationError: with the line that naga refuses.
        """
        # naga has the operations, but not yet the directive (gfx-rs/wgpu, issue 5555)
        return self.device.create_shader_module(code=source.replace("enable subgroups;\n", ""))

    def pipeline(self, source: str, access: str) -> Any:
        """The pipeline of a source; naga has translated it for the driver, and the driver accepts it.

        Args:
            access: for each binding `w` where it is written, else `r`.
        """
        key = source, access
        if key not in self._pipelines:
            layout = self.device.create_pipeline_layout(bind_group_layouts=[self._layout(access)])
            stage = {"module": self.module(source), "entry_point": "main"}
            self._pipelines[key] = self.device.create_compute_pipeline(layout=layout, compute=stage)
        return self._pipelines[key]

    @functools.cache  # noqa: B019  (the device lives as long as the process)
    def _layout(self, access: str) -> Any:
        kinds = {"r": "read-only-storage", "w": "storage"}
        return self.device.create_bind_group_layout(
            entries=[
                {"binding": i, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": kinds[letter]}}
                for i, letter in enumerate(access)
            ]
        )

    def _group(self, source: str, access: str, ranges: Sequence[tuple[Any, int, int]]) -> Any:
        return self.device.create_bind_group(
            layout=self._layout(access),
            entries=[
                {"binding": i, "resource": {"buffer": buffer, "offset": offset, "size": size}}
                for i, (buffer, offset, size) in enumerate(ranges)
            ],
        )

    def prepared(self, dispatch: Dispatch) -> tuple[Any, Any, tuple[int, int]]:
        """A dispatch's pipeline, bind group and workgroups."""
        access = "".join("w" if bound.write else "r" for bound in dispatch.bindings)
        ranges = [(self.buffers[b.range.buffer], b.range.offset, b.range.nbytes) for b in dispatch.bindings]
        source = unrolled(dispatch.source) or dispatch.source  # what runs in the end
        return self.pipeline(source, access), self._group(source, access, ranges), dispatch.workgroups

    def _submit(self, work: Sequence[tuple[Any, Any, tuple[int, int]]], copies: Sequence[Any] = ()) -> None:
        encoder = self.device.create_command_encoder()
        run = encoder.begin_compute_pass()
        for pipeline, group, (x, y) in work:
            run.set_pipeline(pipeline)
            run.set_bind_group(0, group)
            run.dispatch_workgroups(x, y)
        run.end()
        for source, target in copies:
            buffers = (self.buffers[source.buffer], source.offset, self.buffers[target.buffer], target.offset)
            encoder.copy_buffer_to_buffer(*buffers, source.nbytes)
        self.device.queue.submit([encoder.finish()])

    # -- memory -----------------------------------------------------------------------------

    async def alloc(self, buffers: Sequence[tuple[str, int]]) -> list[int]:
        ids = list(itertools.islice(self._ids, len(buffers)))
        for i, (label, nbytes) in zip(ids, buffers, strict=True):
            self.buffers[i] = self.device.create_buffer(label=label, size=nbytes, usage=USAGE)
        return ids

    def free(self, buffers: Collection[int]) -> None:
        for i in buffers:
            self.buffers.pop(i).destroy()

    def write(self, target: Slice, data: np.ndarray) -> None:
        self.device.queue.write_buffer(self.buffers[target.buffer], target.offset, data.reshape(-1).view(np.uint8))

    async def read(self, ranges: Sequence[Slice]) -> list[np.ndarray]:
        read = self.device.queue.read_buffer
        return [np.frombuffer(bytearray(read(self.buffers[r.buffer], r.offset, r.nbytes)), np.uint8) for r in ranges]

    def begin(self, kernel: KernelSpec) -> None:
        pass

    async def compile(self, recording: Recording) -> NativeProgram:
        return NativeProgram(self, recording)

    def close(self) -> None:
        """The device is shared: it stays."""


class NativeProgram:
    """A recording, ready to run; see `device.base.Program`."""

    def __init__(self, device: Native, recording: Recording) -> None:
        self._device, self._recording = device, recording
        self._work = [device.prepared(dispatch) for dispatch in recording.dispatches]

    def feed(self, arrays: Sequence[np.ndarray]) -> None:
        for (target, _, storage), array in zip(self._recording.uploads, arrays, strict=True):
            data = np.zeros(target.nbytes, np.uint8)
            data[: array.size * storage.itemsize] = array.astype(storage).reshape(-1).view(np.uint8)
            self._device.write(target, data)

    async def ready(self) -> None:
        pass

    async def submit(self) -> None:
        self._device._submit(self._work, self._recording.copies)

    async def step(self) -> int:
        assert self._recording.loss
        (data,) = await self.run((self._recording.loss,))
        return int.from_bytes(data.tobytes(), "little")

    async def run(self, reads: tuple[Slice, ...], *, with_loss: bool = False) -> list[np.ndarray]:
        await self.submit()
        return await self._device.read(reads)

    async def run_many(self, feeds: Sequence[Feed], first: int, count: int) -> np.ndarray:
        loss, found = self._recording.loss, []
        assert loss
        for step in range(count):
            for target, buffers, each, turn in feeds:
                at = (first + step) % turn if turn else step
                source = Slice(buffers[at // each], at % each * target.nbytes, target.nbytes)
                self._device._submit([], [Copy(source, target)])
            self._device._submit(self._work, self._recording.copies)
            found += await self._device.read((loss,))
        return np.concatenate(found).view(np.uint32)

    def close(self) -> None:
        """Its buffers are the runtime's."""
