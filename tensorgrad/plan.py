"""What a runtime is given: buffers, kernels and what moves between host and device.

The compiler's last stage writes these; `runtime.create_runtime` and the devices read
them. They are plain data, so a plan can be printed, compared, checked and cached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from tensorgrad.dtypes import DType, Shape

BufferKind = Literal["param", "state", "input", "const", "output", "grad", "temp"]

MAX_WORKGROUPS = 65_535
"""WebGPU's limit of one dispatch dimension. A kernel finds its linear workgroup
index as `workgroup_id.x + workgroup_id.y * 65535`."""


class BufferSpec(NamedTuple):
    """A tensor's place on the device.

    Attributes:
        id: its index in `BufferPlan.buffers`.
        kind: param and state outlive a step; input is written before a step; const once;
            grad and output may be read after it; temp belongs to the pool.
        name: its label, unique within the plan. For param, state and input the leaf's name.
        shape, dtype: of the tensor; `nbytes` is what it occupies, a multiple of 16 and not 0.
        initial: const: the data; state: the fill value.
        arena: name of the shared allocation that it is a slice of, with `offset` (a multiple of 256) in it.
    """

    id: int
    kind: BufferKind
    name: str
    shape: Shape
    dtype: DType
    nbytes: int
    initial: float | int | np.ndarray | None = None
    arena: str | None = None
    offset: int = 0


class Writeback(NamedTuple):
    """After all kernels: copy `nbytes` of buffer `source` over buffer `dest`."""

    source: int
    dest: int
    nbytes: int


class BufferPlan(NamedTuple):
    """All buffers of a program.

    Attributes:
        buffers: by id.
        arenas: name -> bytes of each shared allocation.
        inputs, params, states, grads, outputs: name -> buffer id. The loss is the output `loss`.
        writebacks: copies after the kernels.
    """

    buffers: tuple[BufferSpec, ...]
    arenas: Mapping[str, int] = {}
    inputs: Mapping[str, int] = {}
    params: Mapping[str, int] = {}
    states: Mapping[str, int] = {}
    grads: Mapping[str, int] = {}
    outputs: Mapping[str, int] = {}
    writebacks: tuple[Writeback, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes of device memory that the plan allocates."""
        return sum(self.arenas.values()) + sum(b.nbytes for b in self.buffers if b.arena is None)


class Binding(NamedTuple):
    """A buffer as a kernel binds it, in the order of `@binding(i)`."""

    buffer: int
    write: bool = False


def access_of(bindings: Iterable[Any]) -> str:
    """A letter for each of what has an attribute `write`: `w` where it is written, else `r`."""
    return "".join("w" if binding.write else "r" for binding in bindings)


class KernelSpec(NamedTuple):
    """A kernel that a device can run.

    Attributes:
        name: the operation's label, as errors and profilers show it.
        op_index: the node that it computes.
        wgsl: the source; entry point `main`, bindings in group 0. Empty: nothing to run.
        bindings: the buffers, in binding order.
        threads: invocations in all; 0: nothing to run.
        workgroup_size: invocations of one workgroup.
    """

    name: str
    op_index: int
    wgsl: str
    bindings: tuple[Binding, ...]
    threads: int
    workgroup_size: int = 64

    @property
    def access(self) -> str:
        """A letter for each binding: `w` where it is written, else `r`."""
        return access_of(self.bindings)

    @property
    def runs(self) -> bool:
        return bool(self.wgsl) and self.threads > 0

    @property
    def workgroups(self) -> tuple[int, int]:
        """The dispatch's x and y, split where one dimension would pass WebGPU's limit."""
        count = -(-self.threads // self.workgroup_size)
        return min(count, MAX_WORKGROUPS), -(-count // MAX_WORKGROUPS)
