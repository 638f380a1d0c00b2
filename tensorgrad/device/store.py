"""Where a plan's buffers are: placing them on a device, and the store of what outlives a step."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tensorgrad.device.base import Bound, Copy, Dispatch, Recording, Slice, Upload
from tensorgrad.device.convert import to_bytes
from tensorgrad.dtypes import DType, Shape
from tensorgrad.errors import InputError, OutOfMemoryError, TensorgradError
from tensorgrad.plan import Binding, BufferPlan, BufferSpec, KernelSpec

PERSISTENT = ("param", "state")


class Stored(NamedTuple):
    """A parameter or state in a store."""

    range: Slice
    shape: Shape
    dtype: DType
    kind: str


class Store:
    """Parameters and states on one device, by name.

    Attributes:
        device: where they are; every runtime that shares the store uses it.
        tensors: name -> `Stored`.
        arenas: name -> the whole range of each shared allocation.
    """

    def __init__(self, device: Any) -> None:
        self.device = device
        self.tensors: dict[str, Stored] = {}
        self.arenas: dict[str, Slice] = {}
        self.buffers: list[int] = []
        self.lock = asyncio.Lock()  # one runtime at a time finds out what is missing
        self._finalizer = weakref.finalize(self, _free, device, self.buffers)
        self._finalizer.atexit = False

    @property
    def nbytes(self) -> int:
        """Bytes of device memory that it holds."""
        shared = {arena.buffer for arena in self.arenas.values()}
        single = sum(t.range.nbytes for t in self.tensors.values() if t.range.buffer not in shared)
        return single + sum(arena.nbytes for arena in self.arenas.values())

    def destroy(self) -> None:
        """Free every tensor in it; runtimes that share it raise from then on. Safe twice."""
        self._finalizer()

    def check_alive(self) -> None:
        """Raise if it was destroyed."""
        if not self._finalizer.alive:
            raise TensorgradError("the store of these parameters was destroyed; create a new one")

    def __contains__(self, name: str) -> bool:
        return name in self.tensors

    def __repr__(self) -> str:
        return f"Store({len(self.tensors)} tensors, {self.nbytes:,} bytes)"


def _free(device: Any, buffers: list[int]) -> None:
    device.free(buffers)


@dataclass
class Placement:
    """Where each buffer of a plan is.

    Attributes:
        slices: by buffer id.
        owned: handles that belong to the runtime.
        added: handles that go to the store, with what they hold, once all has succeeded.
        staging: buffer id -> where an input starts in the staging memory.
        scratch: a spare buffer for copies within one arena, or None.
    """

    slices: list[Slice]
    owned: list[int] = field(default_factory=list)
    added: list[int] = field(default_factory=list)
    tensors: dict[str, Stored] = field(default_factory=dict)
    arenas: dict[str, Slice] = field(default_factory=dict)
    staging: dict[int, int] = field(default_factory=dict)
    staging_nbytes: int = 0
    scratch: int | None = None

    def commit(self, store: Store) -> None:
        """Hand the new parameters and states to the store."""
        store.buffers += self.added
        store.tensors.update(self.tensors)
        store.arenas.update(self.arenas)
        self.added = []

    def undo(self, device: Any) -> None:
        """Free what was allocated, after a failure."""
        device.free(self.owned + self.added)
        self.owned, self.added = [], []


async def place(plan: BufferPlan, device: Any, store: Store) -> Placement:
    """Find or allocate every buffer of a plan and fill in constants and initial states."""
    persistent = {b.arena for b in plan.buffers if b.arena and b.kind in PERSISTENT}
    _check_store(plan, store, persistent)
    found: dict[int, Slice] = {}
    wanted: dict[str, int] = {}  # label -> bytes, of what has to be allocated
    for name, nbytes in plan.arenas.items():
        if name not in store.arenas or name not in persistent:
            wanted[f"arena {name}"] = nbytes
    for spec in plan.buffers:
        if spec.kind in PERSISTENT and spec.name in store.tensors:
            found[spec.id] = store.tensors[spec.name].range
        elif spec.arena is None:
            wanted[spec.name] = spec.nbytes
    scratch = max((w.nbytes for w in plan.writebacks if _same_arena(plan, w.source, w.dest)), default=0)
    if scratch:
        wanted["writeback scratch"] = scratch
    handles = dict(zip(wanted, await _alloc(plan, device, wanted), strict=True))

    placement = Placement([Slice(0, 0, 0)] * len(plan.buffers), scratch=handles.get("writeback scratch"))
    for label, handle in handles.items():
        kept = any(label == f"arena {name}" for name in persistent)
        (placement.added if kept else placement.owned).append(handle)
    for spec in plan.buffers:
        placement.slices[spec.id] = found.get(spec.id) or _locate(spec, handles, store)
        if spec.kind in PERSISTENT and spec.id not in found:
            _keep(placement, spec, plan, spec.arena is None)
    try:
        _fill(plan, device, placement, found)
    except BaseException:
        placement.undo(device)
        raise
    for index in plan.inputs.values():
        placement.staging[index] = placement.staging_nbytes
        placement.staging_nbytes += -(-plan.buffers[index].nbytes // 16) * 16
    return placement


def _keep(placement: Placement, spec: BufferSpec, plan: BufferPlan, single: bool) -> None:
    """Note a new parameter or state for the store."""
    where = placement.slices[spec.id]
    placement.tensors[spec.name] = Stored(where, spec.shape, spec.dtype, spec.kind)
    if single:
        placement.owned.remove(where.buffer)
        placement.added.append(where.buffer)
    elif spec.arena is not None:
        placement.arenas[spec.arena] = Slice(where.buffer, 0, plan.arenas[spec.arena])


def _locate(spec: BufferSpec, handles: dict[str, int], store: Store) -> Slice:
    if spec.arena is None:
        return Slice(handles[spec.name], 0, spec.nbytes)
    handle = handles.get(f"arena {spec.arena}")
    return Slice(store.arenas[spec.arena].buffer if handle is None else handle, spec.offset, spec.nbytes)


def _same_arena(plan: BufferPlan, a: int, b: int) -> bool:
    return plan.buffers[a].arena is not None and plan.buffers[a].arena == plan.buffers[b].arena


def _check_store(plan: BufferPlan, store: Store, persistent: set[str]) -> None:
    """Refuse a store whose tensors do not fit the plan, before anything is allocated."""
    for name in persistent & store.arenas.keys():
        if store.arenas[name].nbytes != plan.arenas[name]:
            held, wanted = store.arenas[name].nbytes, plan.arenas[name]
            raise InputError(f"the store's arena {name!r} has {held:,} bytes, the plan's {wanted:,}")
    for spec in plan.buffers:
        held = store.tensors.get(spec.name) if spec.kind in PERSISTENT else None
        if held is None:
            if spec.kind in PERSISTENT and spec.arena in store.arenas:
                raise InputError(f"the store's arena {spec.arena!r} has no {spec.kind} {spec.name!r}")
            continue
        if (held.shape, held.dtype) != (spec.shape, spec.dtype):
            raise InputError(
                f"the store holds {spec.name!r} as {held.dtype}{list(held.shape)}, "
                f"the plan wants {spec.dtype}{list(spec.shape)}"
            )
        if spec.arena is not None:
            arena = store.arenas.get(spec.arena)
            if arena is None or (arena.buffer, spec.offset) != held.range[:2]:
                raise InputError(
                    f"the store holds {spec.name!r} elsewhere than the plan's arena {spec.arena!r} does; "
                    "plans that share a store lay their arenas out alike"
                )


async def _alloc(plan: BufferPlan, device: Any, wanted: dict[str, int]) -> list[int]:
    try:
        return await device.alloc(list(wanted.items()))
    except OutOfMemoryError as error:
        raise OutOfMemoryError(
            f"{error}. The whole plan takes {plan.nbytes:,} bytes; a smaller batch or model needs less"
        ) from None


def _fill(plan: BufferPlan, device: Any, placement: Placement, found: dict[int, Slice]) -> None:
    """Write constants and initial states. New buffers are zero, so zeros need no write."""
    for spec in plan.buffers:
        if spec.kind not in ("const", "state") or spec.id in found or spec.initial is None:
            continue
        if isinstance(spec.initial, np.ndarray):
            array = spec.initial.reshape(spec.shape)
        else:
            value = spec.initial if spec.dtype.is_float else int(spec.initial)
            array = np.full(spec.shape, value, spec.dtype.numpy)
        if array.any():
            device.write(placement.slices[spec.id], to_bytes(array, spec.dtype, spec.nbytes))


def record(plan: BufferPlan, kernels: Sequence[KernelSpec], placement: Placement, chunk: int, label: str) -> Recording:
    """A plan's step with every buffer resolved to a range on the device."""
    return Recording(
        label=label,
        staging_nbytes=placement.staging_nbytes,
        uploads=tuple(Upload(start, placement.slices[index]) for index, start in placement.staging.items()),
        dispatches=tuple(_dispatch(plan, kernel, placement) for kernel in kernels if kernel.runs),
        copies=tuple(_copies(plan, placement)),
        loss=placement.slices[plan.outputs["loss"]]._replace(nbytes=4) if "loss" in plan.outputs else None,
        chunk=chunk,
    )


def _dispatch(plan: BufferPlan, kernel: KernelSpec, placement: Placement) -> Dispatch:
    bindings = tuple(Bound(_range(b, placement), b.write) for b in kernel.bindings)
    return Dispatch(kernel.name, kernel.wgsl, bindings, kernel.workgroups)


def _range(binding: Binding, placement: Placement) -> Slice:
    return placement.slices[binding.buffer]


def _copies(plan: BufferPlan, placement: Placement) -> list[Copy]:
    """The writebacks. WebGPU copies nothing within one buffer, so there they go through a spare one."""
    copies = []
    for writeback in plan.writebacks:
        source = placement.slices[writeback.source]._replace(nbytes=writeback.nbytes)
        target = placement.slices[writeback.dest]._replace(nbytes=writeback.nbytes)
        if source.buffer == target.buffer and placement.scratch is not None:
            spare = Slice(placement.scratch, 0, writeback.nbytes)
            copies += [Copy(source, spare), Copy(spare, target)]
        else:
            copies.append(Copy(source, target))
    return copies
