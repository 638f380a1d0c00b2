"""Where a plan's buffers are: placing them on a device, and the store of what outlives a step."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tensorgrad.callsite import call_site
from tensorgrad.device.base import Bound, Copy, Dispatch, Recording, Slice, Upload
from tensorgrad.device.convert import to_bytes
from tensorgrad.dtypes import DType, Shape
from tensorgrad.errors import InputError, OutOfMemoryError, TensorgradError
from tensorgrad.plan import BufferPlan, BufferSpec, KernelSpec

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
            raise TensorgradError("the store of these parameters was destroyed; create a new one", call_site())

    def __contains__(self, name: str) -> bool:
        return name in self.tensors

    def __repr__(self) -> str:
        return f"Store({len(self.tensors)} tensors, {self.nbytes:,} bytes)"


def _free(device: Any, buffers: list[int]) -> None:
    device.free(buffers)


@dataclass(eq=False, repr=False)
class Placement:
    """Where each buffer of a plan is.

    Attributes:
        slices: by buffer id.
        scratch: a spare buffer for copies within one arena, or None.
        owned: handles that belong to the runtime.
        added: handles that go to the store, with what they hold, once all has succeeded.
    """

    slices: list[Slice]
    scratch: int | None = None
    owned: list[int] = field(default_factory=list)
    added: list[int] = field(default_factory=list)
    tensors: dict[str, Stored] = field(default_factory=dict)
    arenas: dict[str, Slice] = field(default_factory=dict)

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
    known = {b.id for b in plan.buffers if b.kind in PERSISTENT and b.name in store.tensors}
    scratch = max((w.nbytes for w in plan.writebacks if _same_arena(plan, w.source, w.dest)), default=0)
    wanted: dict[str | int, tuple[str, int]] = {  # an arena's name or a buffer's id -> label, bytes
        **{
            name: (f"arena {name}", nbytes)
            for name, nbytes in plan.arenas.items()
            if name not in persistent or name not in store.arenas
        },
        **{b.id: (b.name, b.nbytes) for b in plan.buffers if b.arena is None and b.id not in known},
        **({-1: ("writeback scratch", scratch)} if scratch else {}),
    }
    handles = dict(zip(wanted, await _alloc(plan, device, list(wanted.values())), strict=True))

    placement = Placement([_locate(spec, handles, store, known) for spec in plan.buffers], handles.get(-1))
    kept = persistent | {b.id for b in plan.buffers if b.kind in PERSISTENT}
    for key, handle in handles.items():
        (placement.added if key in kept else placement.owned).append(handle)
    for spec in plan.buffers:
        if spec.kind in PERSISTENT and spec.id not in known:
            where = placement.slices[spec.id]
            placement.tensors[spec.name] = Stored(where, spec.shape, spec.dtype, spec.kind)
            if spec.arena is not None:
                placement.arenas[spec.arena] = Slice(where.buffer, 0, plan.arenas[spec.arena])
    try:
        _fill(plan, device, placement, known)
    except BaseException:
        placement.undo(device)
        raise
    return placement


def _locate(spec: BufferSpec, handles: dict[str | int, int], store: Store, known: set[int]) -> Slice:
    if spec.id in known:
        return store.tensors[spec.name].range
    if spec.arena is None:
        return Slice(handles[spec.id], 0, spec.nbytes)
    handle = handles.get(spec.arena)
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


async def _alloc(plan: BufferPlan, device: Any, wanted: list[tuple[str, int]]) -> list[int]:
    try:
        return await device.alloc(wanted)
    except OutOfMemoryError as error:
        raise OutOfMemoryError(
            f"{error}. The whole plan takes {plan.nbytes:,} bytes; a smaller batch or model needs less"
        ) from None


def _fill(plan: BufferPlan, device: Any, placement: Placement, known: set[int]) -> None:
    """Write constants and initial states. New buffers are zero, so zeros need no write."""
    for spec in plan.buffers:
        if spec.kind not in ("const", "state") or spec.id in known or spec.initial is None:
            continue
        if isinstance(spec.initial, np.ndarray):
            array = spec.initial.reshape(spec.shape)
        else:
            value = np.array(spec.initial if spec.dtype.is_float else int(spec.initial), spec.dtype.numpy)
            if not any(value.tobytes()):  # by its bytes: -0.0 is to be written
                continue
            array = np.full(spec.shape, value)
        device.write(placement.slices[spec.id], to_bytes(array, spec.dtype, spec.nbytes))


def record(
    plan: BufferPlan,
    kernels: Sequence[KernelSpec],
    placement: Placement,
    label: str,
    *,
    chunk: int = 0,
    groups: bool = True,
) -> Recording:
    """A plan's step with every buffer resolved to a range on the device."""
    return Recording(
        label=label,
        uploads=tuple(_upload(plan.buffers[index], placement) for index in plan.inputs.values()),
        dispatches=tuple(_dispatch(kernel, placement) for kernel in kernels if kernel.runs),
        copies=tuple(_copies(plan, placement)),
        loss=placement.slices[plan.outputs["loss"]]._replace(nbytes=4) if "loss" in plan.outputs else None,
        chunk=chunk,
        groups=groups,
    )


def _upload(spec: BufferSpec, placement: Placement) -> Upload:
    return Upload(placement.slices[spec.id], spec.shape, np.dtype(spec.dtype.storage))


def _dispatch(kernel: KernelSpec, placement: Placement) -> Dispatch:
    bindings = tuple(Bound(placement.slices[b.buffer], b.write) for b in kernel.bindings)
    return Dispatch(kernel.name, kernel.wgsl, bindings, kernel.workgroups)


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
