"""The buffer plan: which tensor lives in which buffer, and the verifier that proves it.

Temporaries share a pool: a buffer is free again after its last reader. Pooled tensors
are separate device buffers, since WebGPU refuses one buffer bound for reading and for
writing in one dispatch, ranges apart or not.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from tensorgrad.dtypes import DType, f32
from tensorgrad.graph import Graph, Value
from tensorgrad.lower.compose import LEAVES
from tensorgrad.lower.kernel import Kernel
from tensorgrad.ops.arena import parts, temporary_packs
from tensorgrad.plan import BufferKind, BufferPlan, BufferSpec, Writeback


class PlanError(AssertionError):
    """A buffer plan would read or overwrite the wrong data: a fault of the library."""


class Slot(NamedTuple):
    """A tensor's slice of an arena."""

    arena: str
    offset: int


def _slots(graph: Graph) -> tuple[dict[Value, Slot], dict[str, int]]:
    """The places of packs that have a name and of what lies in them, and each arena's bytes."""
    slots: dict[Value, Slot] = {}
    arenas: dict[str, int] = {}
    for node in graph.nodes:
        if node.op == "pack" and node.attrs["name"]:
            name, start, width = node.attrs["name"], node.attrs.get("start", 0), node.type.dtype.itemsize
            arenas[name] = max(arenas.get(name, 0), node.type.nbytes)
            slots[Value(node.id)] = Slot(name, start * width)
            for part, offset in parts(graph, Value(node.id)):
                slots[part] = Slot(name, (start + offset) * width)
    return slots, arenas


class Memory(NamedTuple):
    """A plan, and which of its buffers holds each stored value."""

    plan: BufferPlan
    where: dict[Value, int]


def storage_bytes(nbytes: int) -> int:
    """What a tensor occupies: a multiple of 16 bytes, so that a kernel that reads four numbers at once may."""
    return max(16, -(-nbytes // 16) * 16)


class _Pooled:
    """A buffer for temporaries.

    Attributes:
        lives: the first and the last kernel that needs each value in it, in order.
        places: in the plan, once it is there: the whole, then each part of a pack.
    """

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.lives: list[tuple[int, int]] = []
        self.places: list[int] = []

    def used(self, first: int, last: int) -> int | None:
        """The last kernel before `first` that needs it (0 for none); nothing where it is not free up to `last`."""
        at = bisect_left(self.lives, (first,))
        before = self.lives[at - 1][1] if at else 0
        busy = (at and before >= first) or (at < len(self.lives) and self.lives[at][0] <= last)
        return None if busy else before


class Planner:
    """Builds the plan of one program; `plan()` is its result.

    Args:
        graph: what the kernels compute.
        kernels: in the order in which they run.
        buffer_of: value -> the stored value in whose buffer it is (itself, or what it is a reshape of).
        outputs: name -> value that the host reads.
    """

    def __init__(
        self,
        graph: Graph,
        kernels: Sequence[Kernel],
        buffer_of: Mapping[Value, Value],
        outputs: Mapping[str, Value],
    ) -> None:
        self.graph, self.kernels, self.outputs = graph, kernels, outputs
        self.buffer_of = buffer_of
        self.slots, self.arenas = _slots(graph)
        self.specs: list[BufferSpec] = []
        self.where: dict[Value, int] = {}
        self.packs = temporary_packs(graph)

    def plan(self) -> Memory:
        self._leaves()
        inplace = {value: leaf for k in self.kernels for value, leaf in k.inplace.items()}
        self._kept(inplace)
        pooled = self._pooled(inplace)
        for kernel in self.kernels:
            for value in kernel.writes:
                if value in inplace:
                    self.where[value] = self.where[inplace[value]]
                elif value not in self.where:
                    self._place(self.packs.get(value, value), pooled)
        return Memory(self._finish(inplace), self.where)

    def _add(self, kind: BufferKind, name: str, value: Value, **fields: Any) -> int:
        type_ = self.graph.type(value)
        slot = self.slots.get(value)
        fields = {"shape": type_.shape, **fields}
        if slot:
            fields |= {"arena": slot.arena, "offset": slot.offset}
        nbytes = storage_bytes(type_.nbytes)
        spec = BufferSpec(len(self.specs), kind, name, dtype=type_.dtype, nbytes=nbytes, **fields)
        self.specs.append(spec)
        self.where[value] = spec.id
        return spec.id

    def _leaves(self) -> None:
        for node in self.graph.nodes:
            value = Value(node.id)
            if node.op == "leaf":
                role = node.attrs["role"]
                initial = node.attrs["initial"] if role == "state" else None
                self._add(role, node.attrs["name"], value, initial=initial)
            elif node.op == "array":
                self._add("const", f"const{node.id}", value, initial=node.attrs["data"].array)
            elif node.op == "pack" and node.attrs["name"]:
                self._add("temp", node.attrs["name"] + (f".{node.id}" if "start" in node.attrs else ""), value)

    def _kept(self, inplace: Mapping[Value, Value]) -> None:
        """Values whose buffers are read after the kernels get buffers of their own."""
        for name, value in self.graph.grads.items():
            self._own("grad", f"grad {name}", value)
        for node in self.graph.nodes:
            if node.op == "place" and node.attrs["slot"] and Value(node.id) not in self.packs:
                self._own("temp", node.attrs["slot"], Value(node.id))
        for name, value in self.outputs.items():
            self._own("output", name, value)
        for value in self.graph.updates.values():
            if self.buffer_of[value] not in inplace:
                self._own("temp", f"new{self.buffer_of[value]}", value)

    def _own(self, kind: BufferKind, name: str, value: Value) -> None:
        owner = self.buffer_of[value]
        if owner not in self.where:
            self._add(kind, name, owner, shape=self.graph.type(value).shape)

    def _pooled(self, inplace: Mapping[Value, Value]) -> dict[Value, _Pooled]:
        """A buffer for each temporary, and for each pack of them.

        The largest come first. Each gets the smallest buffer that is free as long as it is needed, of equal ones that
        which was in use last, whose memory may be in a cache; or a new one.
        """
        lives: dict[Value, tuple[int, int]] = {}
        for step, kernel in enumerate(self.kernels):
            for value in (*kernel.writes, *kernel.loads()):
                if value not in self.where and value not in inplace:
                    whole = self.packs.get(value, value)
                    lives[whole] = lives.get(whole, (step, step))[0], step
        buffers: dict[Hashable, list[_Pooled]] = {}
        found: dict[Value, _Pooled] = {}
        for value in sorted(lives, key=lambda v: -self.graph.type(v).nbytes):
            layout, (first, last) = _layout(self.graph, value), lives[value]
            alike = buffers.setdefault(layout, [])
            rests = ((b.nbytes, b.used(first, last), n) for n, b in enumerate(alike))
            free = [(nbytes, first - used, n) for nbytes, used, n in rests if used is not None]
            if not free:
                alike.append(_Pooled(storage_bytes(self.graph.type(value).nbytes)))
            found[value] = alike[min(free)[2] if free else -1]
            insort(found[value].lives, (first, last))
        return found

    def _place(self, value: Value, pooled: Mapping[Value, _Pooled]) -> None:
        """The places of a temporary, or of a pack and its parts."""
        buffer, held = pooled[value], parts(self.graph, value)
        if not buffer.places:
            name = f"temp{len(self.specs)}"
            arena = name if held else None
            self._temp(buffer, name, f32 if not held else self.graph.type(value).dtype, buffer.nbytes, arena, 0)
            for i, (part, offset) in enumerate(held):
                type_ = self.graph.type(part)
                nbytes, at = storage_bytes(type_.nbytes), offset * type_.dtype.itemsize
                self._temp(buffer, f"{name}.{i}", type_.dtype, nbytes, arena, at)
            if held:
                self.arenas[name] = buffer.nbytes
        self.where.update(zip((value, *(part for part, _ in held)), buffer.places, strict=True))

    def _temp(self, buffer: _Pooled, name: str, dtype: DType, nbytes: int, arena: str | None, offset: int) -> None:
        shape = (nbytes // dtype.itemsize,)
        buffer.places.append(len(self.specs))
        self.specs.append(BufferSpec(len(self.specs), "temp", name, shape, dtype, nbytes, None, arena, offset))

    def _finish(self, inplace: Mapping[Value, Value]) -> BufferPlan:
        writebacks = [
            Writeback(self.where[self.buffer_of[value]], self.where[leaf], self.specs[self.where[leaf]].nbytes)
            for leaf, value in self.graph.updates.items()
            if inplace.get(self.buffer_of[value]) != leaf and self.buffer_of[value] != leaf
        ]
        by_kind = {kind: {s.name: s.id for s in self.specs if s.kind == kind} for kind in ("input", "param", "state")}
        return BufferPlan(
            tuple(self.specs),
            self.arenas,
            by_kind["input"],
            by_kind["param"],
            by_kind["state"],
            {name: self.where[self.buffer_of[v]] for name, v in self.graph.grads.items()},
            {name: self.where[self.buffer_of[v]] for name, v in self.outputs.items()},
            tuple(writebacks),
        )


def _layout(graph: Graph, value: Value) -> Hashable:
    """What values have in common that can share a buffer: packs their parts, so that each part has its bytes alone."""
    return tuple((offset, graph.type(part)) for part, offset in parts(graph, value))


def verify(graph: Graph, kernels: Sequence[Kernel], memory: Memory, buffer_of: Mapping[Value, Value]) -> None:
    """Replays the plan: every read finds the value that it expects, and so does whoever reads at the end.

    Raises:
        PlanError: naming the kernel, the value and what its buffer holds instead.
    """
    where, specs = memory.where, memory.plan.buffers
    holds: dict[int, Value | None] = {
        where[Value(n.id)]: Value(n.id) for n in graph.nodes if n.op in LEAVES and Value(n.id) in where
    }
    packs = [n for n in graph.nodes if n.op == "pack" and n.attrs["name"]]
    inside = {where[Value(n.id)]: [where[v] for v in n.inputs] for n in packs}
    for step, kernel in enumerate(kernels):
        reads, written = kernel.loads(), {where[v] for v in kernel.writes}
        whole = [v for v in reads if graph.node(v).op != "pack" or graph.node(v).attrs["name"]]
        for read in [*whole, *(part for v in reads for part, _ in parts(graph, v))]:
            held = holds.get(where[read])
            if held != read and graph.type(read).size:
                raise PlanError(f"kernel {step} reads {read}; {specs[where[read]].name} holds {held}")
        for value in kernel.writes:
            spec = specs[where[value]]
            if graph.type(value).nbytes > spec.nbytes:
                raise PlanError(f"kernel {step} writes {value} of {graph.type(value)} to {spec.nbytes} bytes")
            for read in reads:
                if _overlap(specs, where[read], where[value]) and kernel.inplace.get(value) != read:
                    raise PlanError(f"kernel {step} reads {read} and writes {value} in one buffer")
        if len(written) != len(kernel.writes):
            raise PlanError(f"kernel {step} writes two values to one buffer")
        for value in kernel.writes:
            holds[where[value]] = value
            holds.update(dict.fromkeys(inside.get(where[value], ())))
    for value in {*graph.outputs, *graph.captures.values(), *graph.grads.values(), *graph.updates.values()}:
        owner = buffer_of[value]
        if graph.type(owner).size and holds.get(where[owner]) != owner:
            raise PlanError(f"{value} is read after the kernels; its buffer holds {holds.get(where[owner])}")


def _overlap(specs: Sequence[BufferSpec], a: int, b: int) -> bool:
    """Whether a kernel may not read one and write the other: they are one device buffer."""
    return a == b or (specs[a].arena is not None and specs[a].arena == specs[b].arena)
