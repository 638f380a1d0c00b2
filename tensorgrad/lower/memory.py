"""The buffer plan: which tensor lives in which buffer, and the verifier that proves it.

Temporaries share a pool: a buffer is free again after its last reader. Pooled tensors
are separate device buffers, since WebGPU refuses one buffer bound for reading and for
writing in one dispatch, ranges apart or not.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tensorgrad.dtypes import f32
from tensorgrad.graph import Graph, Value
from tensorgrad.lower.compose import LEAVES
from tensorgrad.lower.kernel import Kernel
from tensorgrad.ops.arena import parts, temporary_packs
from tensorgrad.plan import BufferKind, BufferPlan, BufferSpec, Writeback


class PlanError(AssertionError):
    """A buffer plan would read or overwrite the wrong data: a fault of the library."""


@dataclass(frozen=True, slots=True)
class Slot:
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


@dataclass(slots=True)
class Memory:
    """A plan, and which of its buffers holds each stored value."""

    plan: BufferPlan
    where: dict[Value, int] = field(default_factory=dict)


def storage_bytes(nbytes: int) -> int:
    """What a tensor occupies: at least 4 bytes, and a multiple of 4."""
    return max(4, -(-nbytes // 4) * 4)


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
        self.pool: list[int] = []
        self.packs = temporary_packs(graph)
        self.free_packs: dict[Hashable, list[list[int]]] = {}

    def plan(self) -> Memory:
        self._leaves()
        inplace = {value: leaf for k in self.kernels for value, leaf in k.inplace.items()}
        kept = self._kept(inplace)
        last = self._last_reads()
        for step, kernel in enumerate(self.kernels):
            for value in kernel.writes:
                if value in inplace:
                    self.where[value] = self.where[inplace[value]]
                elif value not in self.where:
                    self.where[value] = self._temp(value) if value not in self.packs else self._place(value)
            for value in {self.packs.get(v, v) for v in (*kernel.loads(), *kernel.writes)}:
                if last.get(value, step) <= step and value not in kept and self._is_temp(value):
                    self._release(value)
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

    def _kept(self, inplace: Mapping[Value, Value]) -> set[Value]:
        """Values whose buffers are read after the kernels; each gets one of its own."""
        kept: set[Value] = set()
        for name, value in self.graph.grads.items():
            kept.add(self._own("grad", f"grad {name}", value))
        for node in self.graph.nodes:
            if node.op == "place" and Value(node.id) not in self.packs:
                kept.add(self._own("temp", node.attrs["slot"], Value(node.id)))
        for name, value in self.outputs.items():
            kept.add(self._own("output", name, value))
        for value in self.graph.updates.values():
            owner = self.buffer_of[value]
            kept.add(owner if owner in inplace else self._own("temp", f"new{owner}", value))
        return kept

    def _own(self, kind: BufferKind, name: str, value: Value) -> Value:
        owner = self.buffer_of[value]
        if owner not in self.where:
            self._add(kind, name, owner, shape=self.graph.type(value).shape)
        return owner

    def _last_reads(self) -> dict[Value, int]:
        last: dict[Value, int] = {}
        for step, kernel in enumerate(self.kernels):
            written = (v for v in kernel.writes if v in self.packs)
            last.update({self.packs.get(v, v): step for v in (*kernel.loads(), *written)})
        return last

    def _is_temp(self, value: Value) -> bool:
        spec = self.specs[self.where[value]]
        return spec.kind == "temp" and spec.name.startswith("temp")

    def _temp(self, value: Value) -> int:
        """The smallest free buffer that holds the value without wasting more than it, or a new one."""
        need = storage_bytes(self.graph.type(value).nbytes)
        fitting = [i for i in self.pool if need <= self.specs[i].nbytes <= 2 * need]
        if fitting:
            best = min(fitting, key=lambda i: self.specs[i].nbytes)
            self.pool.remove(best)
            return best
        spec = BufferSpec(len(self.specs), "temp", f"temp{len(self.specs)}", (need // 4,), f32, need)
        self.specs.append(spec)
        return spec.id

    def _place(self, part: Value) -> int:
        """The place of a part of a pack without a name; the whole pack gets one, which it gives back as a whole.

        Packs share an arena only if they have the same parts: so whoever has a buffer has all of its bytes.
        """
        pack = self.packs[part]
        free = self.free_packs.setdefault(_layout(self.graph, pack), [])
        held = parts(self.graph, pack)
        if free:
            places = free.pop()
        else:
            name, type_ = f"temp{len(self.specs)}", self.graph.type(pack)
            self.arenas[name] = type_.nbytes
            sizes = [(type_, 0), *((self.graph.type(v), offset) for v, offset in held)]
            first = len(self.specs)
            for i, (t, offset) in enumerate(sizes):
                at = offset * t.dtype.itemsize
                label = f"{name}.{i - 1}" if i else name
                self.specs.append(
                    BufferSpec(first + i, "temp", label, t.shape, t.dtype, storage_bytes(t.nbytes), None, name, at)
                )
            places = list(range(first, len(self.specs)))
        self.where.update(zip((pack, *(v for v, _ in held)), places, strict=True))
        return self.where[part]

    def _release(self, value: Value) -> None:
        """The buffer of a value that nobody needs any longer is free for another one."""
        held = parts(self.graph, value)
        if held:
            free = self.free_packs[_layout(self.graph, value)]
            free.append([self.where[v] for v in (value, *(part for part, _ in held))])
        else:
            self.pool.append(self.where[value])

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


def _layout(graph: Graph, pack: Value) -> Hashable:
    """What packs have in common that can share an arena."""
    return tuple((offset, graph.type(part)) for part, offset in parts(graph, pack))


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
