"""What a device is to the runtime: memory by handle, and programs that replay.

`Device` is the small interface through which `runtime.Runtime` drives a GPU:
allocate, write, read, compile, close. A `Program` is a recorded list of dispatches and
copies: everything that can be made beforehand is made by `Device.compile`, so that a
step is one call. Both deal in bytes only. Names, shapes and dtypes are the runtime's.

`Executor` is what the user's side needs of anything that runs a plan, GPU or not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from tensorgrad.plan import KernelSpec

LOSS_RING = 1_024
"""Losses that the device keeps for `losses()`; beyond them the oldest are forgotten."""


class Limits(NamedTuple):
    """What a device allows; the defaults are those that WebGPU guarantees everywhere.

    Attributes:
        storage_buffers: storage buffers that one kernel may bind.
        invocations: invocations of one workgroup.
        workgroup_size: the largest workgroup along x, y and z.
        workgroup_storage: bytes of workgroup memory.
        binding_size: bytes that one binding may cover.
        buffer_size: bytes of one buffer.
        subgroup_size: lanes of a subgroup where the device has subgroup operations and
            a single size, else None.
        features: WebGPU features that are switched on, `shader-f16` for example.
        adapter: which adapter it is, for people to read.
        matrices: subgroups of 32 multiply 16x16 matrices of f16, added up in f32.
        software: the adapter is a CPU (SwiftShader, llvmpipe), where barriers are
            expensive and subgroups are small.
    """

    storage_buffers: int = 8
    invocations: int = 256
    workgroup_size: tuple[int, int, int] = (256, 256, 64)
    workgroup_storage: int = 16_384
    binding_size: int = 134_217_728
    buffer_size: int = 268_435_456
    subgroup_size: int | None = None
    features: frozenset[str] = frozenset()
    adapter: str = "WebGPU's guaranteed limits"
    matrices: bool = False
    software: bool = False


class Slice(NamedTuple):
    """A range of a device buffer; `buffer` is a handle that `Device.alloc` returned."""

    buffer: int
    offset: int
    nbytes: int


class Upload(NamedTuple):
    """Before the kernels: an input's value, an array of this shape as `storage` has it, to `target`."""

    target: Slice
    shape: tuple[int, ...]
    storage: np.dtype


class Copy(NamedTuple):
    """After the kernels: device bytes from `source` to `target`, of one size."""

    source: Slice
    target: Slice


class Feed(NamedTuple):
    """Where an input of many steps is on the device.

    Attributes:
        target: the input.
        buffers: handles of what holds its values, one after the other, each of `target.nbytes`.
        each: how many of them a buffer holds.
        turn: after how many steps the first comes again; 0 where each step of a call has its own.
    """

    target: Slice
    buffers: tuple[int, ...]
    each: int
    turn: int


class Bound(NamedTuple):
    """A range as a kernel binds it."""

    range: Slice
    write: bool


class Dispatch(NamedTuple):
    """One kernel with its buffers and its workgroups in x and y; `label` names the operation."""

    label: str
    source: str
    bindings: tuple[Bound, ...]
    workgroups: tuple[int, int]


class Recording(NamedTuple):
    """A step as a device is given it.

    Attributes:
        label: names the step in the browser's GPU tools.
        uploads: the inputs.
        dispatches: the kernels, in order.
        copies: what moves after them, in order.
        loss: 4 bytes that are kept for every step, if the program has a loss.
        chunk: most dispatches in one submission; 0 puts all into one. Only for kernels so
            long that a browser's watchdog would end a single submission.
        groups: whether each operation's label is a debug group around its dispatches.
    """

    label: str
    uploads: tuple[Upload, ...]
    dispatches: tuple[Dispatch, ...]
    copies: tuple[Copy, ...] = ()
    loss: Slice | None = None
    chunk: int = 0
    groups: bool = True


class Program(Protocol):
    """A recording on a device, ready to run."""

    def feed(self, arrays: Sequence[np.ndarray]) -> None:
        """What the next step uploads, in the order of the recording; they stay as they are until it is queued."""
        ...

    async def submit(self) -> None:
        """Queue one step; waits only while enough to keep the device busy is under way."""
        ...

    async def step(self) -> int:
        """Run one step and return the loss's 4 bytes as an unsigned integer."""
        ...

    async def run(self, reads: tuple[Slice, ...], *, with_loss: bool = False) -> list[np.ndarray]:
        """Run one step and return the bytes of `reads`; `with_loss` says that the loss is among them."""
        ...

    async def run_many(self, feeds: Sequence[Feed], first: int, count: int) -> np.ndarray:
        """Run `count` steps on inputs that are on the device, from the `first` value on.

        Returns:
            Each loss's 4 bytes (uint32).
        """
        ...

    async def losses(self) -> np.ndarray:
        """Each unread loss's 4 bytes (uint32), oldest first; reading them forgets them."""
        ...

    async def ready(self) -> None:
        """Wait until steps are as fast as they get: first ones may run kernels that compile sooner."""
        ...

    async def profile(self, times: Sequence[int] = ()) -> list[float]:
        """Run one step with every dispatch timed, when it is `ready`: nanoseconds on the device, in order.

        Args:
            times: how often each dispatch is made, one time after the other; once by default.
        """
        ...

    def close(self) -> None:
        """Free what the program owns; safe twice."""
        ...


class Device(Protocol):
    """Memory and programs on one GPU. Every method raises DeviceLostError once it is lost."""

    @property
    def limits(self) -> Limits: ...

    @property
    def lost(self) -> str | None:
        """Why the device is gone, or None while it works."""
        ...

    async def alloc(self, buffers: Sequence[tuple[str, int]]) -> list[int]:
        """Allocate (label, bytes) zeroed buffers, all or none.

        Raises:
            OutOfMemoryError: naming the first that did not fit and the total.
        """
        ...

    def free(self, buffers: Collection[int]) -> None:
        """Destroy buffers of `alloc`; work that was queued before still finishes."""
        ...

    def write(self, target: Slice, data: np.ndarray) -> None:
        """Queue a write of `data` (C-contiguous, `target.nbytes` bytes)."""
        ...

    async def read(self, ranges: Sequence[Slice]) -> list[np.ndarray]:
        """The bytes (uint8) of some ranges, all in one readback where the limits allow."""
        ...

    def begin(self, kernel: KernelSpec) -> None:
        """Start to compile a kernel that a recording to come will have; what is wrong with it shows there."""
        ...

    async def compile(self, recording: Recording) -> Program:
        """Make a recording's shaders, pipelines and bind groups.

        Raises:
            ShaderError: with all kernels that the shader compiler refused.
        """
        ...

    def close(self) -> None:
        """Give the device back if it is our own; safe twice."""
        ...


class KernelTime(NamedTuple):
    """Time that one kernel took on the device."""

    name: str
    op_index: int
    nanoseconds: float


class Executor(Protocol):
    """What runs a compiled plan: `runtime.Runtime` on a GPU, or a reference without one."""

    async def step(self, inputs: Mapping[str, Any]) -> float:
        """Run one step and return its loss."""
        ...

    async def run(self, inputs: Mapping[str, Any], read: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Run one step and return outputs (all, or those of `read`) by name."""
        ...

    async def submit(self, inputs: Mapping[str, Any]) -> None:
        """Queue one step without reading anything."""
        ...

    @property
    def at_once(self) -> int:
        """Most steps of one `run_steps`, which no interrupt divides."""
        ...

    async def upload_batches(self, arrays: Mapping[str, np.ndarray], count: int) -> Any:
        """Put `count` values of some inputs on the device: `batches.Batches`."""
        ...

    async def run_steps(self, batches: Any, first: int, count: int, own: Mapping[str, np.ndarray]) -> np.ndarray:
        """Run some steps from the batch `first` on and return their losses; `own` are inputs by step."""
        ...

    async def losses(self) -> np.ndarray:
        """Losses that were not read yet, oldest first."""
        ...

    async def profile(self, inputs: Mapping[str, Any]) -> list[KernelTime]:
        """Run one step, which counts as any other, and return what each part of it took."""
        ...

    def upload(self, values: Mapping[str, Any], *, strict: bool = False) -> None:
        """Overwrite parameters and states by name."""
        ...

    async def download(self, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Parameters and states by name; all of them for None."""
        ...

    def upload_params(self, params: Mapping[str, Any], strict: bool = True) -> None: ...

    async def download_params(self) -> dict[str, np.ndarray]: ...

    async def download_param_grads(self) -> dict[str, np.ndarray]: ...

    def destroy(self) -> None:
        """Free what it owns; safe twice. Later calls raise."""
        ...
