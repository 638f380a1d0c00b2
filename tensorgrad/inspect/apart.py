"""A program with every value in a buffer of its own, so that all of them can be read after the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tensorgrad.graph import Value
from tensorgrad.lower.lowering import Lowered
from tensorgrad.lower.memory import storage_bytes
from tensorgrad.ops.arena import parts, temporary_packs
from tensorgrad.plan import BufferPlan, BufferSpec, KernelSpec, Writeback


class Apart(NamedTuple):
    """The same kernels with other buffers.

    Attributes:
        plan: without a pool; every stored value is an output by the name that `outputs` gives.
        kernels: the same source, bound to the plan's buffers.
        outputs: stored value -> its output's name.
    """

    plan: BufferPlan
    kernels: tuple[KernelSpec, ...]
    outputs: dict[Value, str]


def apart(lowered: Lowered, kernels: Sequence[KernelSpec]) -> Apart:
    """Gives every value that lives in the pool a buffer of its own, for whoever reads it too."""
    plan, where = lowered.memory.plan, lowered.memory.where
    specs, arenas, packs = list(plan.buffers), dict(plan.arenas), temporary_packs(lowered.graph)
    holds: dict[int, int] = {}  # pooled buffer -> the new buffer of the value that it holds
    places: dict[Value, int] = {}
    bound: list[KernelSpec] = []
    for kernel, spec in zip(lowered.kernels, kernels, strict=True):
        reads = {where[v]: places.get(v, where[v]) for v in kernel.loads()}
        writes: dict[int, int] = {}
        for value in kernel.writes:
            place = where[value]
            if value in packs and value not in places:
                places |= _own_arena(lowered, packs[value], specs, arenas)
            places.setdefault(value, place)
            if specs[place].kind == "temp" and specs[place].arena is None:
                places[value] = len(specs)
                specs.append(_own(lowered, value, len(specs)))
                holds[place] = places[value]
            writes[place] = places[value]
        bindings = [b._replace(buffer=(writes if b.write else reads).get(b.buffer, b.buffer)) for b in spec.bindings]
        bound.append(spec._replace(bindings=tuple(bindings)))
    writebacks = [Writeback(holds.get(w.source, w.source), w.dest, w.nbytes) for w in plan.writebacks]
    own = {name: holds.get(place, place) for name, place in plan.outputs.items()}
    outputs = {value: f"value {value}" for value in places if value not in packs.values()}
    named = own | {name: places[value] for value, name in outputs.items()}
    new = plan._replace(buffers=tuple(specs), arenas=arenas, outputs=named, writebacks=tuple(writebacks))
    return Apart(new, tuple(bound), outputs)


def _own(lowered: Lowered, value: Value, place: int, arena: str | None = None, offset: int = 0) -> BufferSpec:
    shape, dtype = lowered.graph.type(value)
    nbytes = storage_bytes(lowered.graph.type(value).nbytes)
    return BufferSpec(place, "temp", f"value {value}", shape, dtype, nbytes, None, arena, offset * dtype.itemsize)


def _own_arena(lowered: Lowered, pack: Value, specs: list[BufferSpec], arenas: dict[str, int]) -> dict[Value, int]:
    """Appends buffers for a pack and its parts; gives their numbers."""
    arena = f"value {pack}"
    arenas[arena] = storage_bytes(lowered.graph.type(pack).nbytes)
    places: dict[Value, int] = {}
    for value, offset in ((pack, 0), *parts(lowered.graph, pack)):
        places[value] = len(specs)
        specs.append(_own(lowered, value, len(specs), arena, offset))
    return places
