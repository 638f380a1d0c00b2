"""`train.memory`: the buffer plan as tables."""

from __future__ import annotations

from typing import NamedTuple

from tensorgrad.graph import Value
from tensorgrad.inspect.program import Shown
from tensorgrad.inspect.tables import counted, details, html_table, show_bytes, table
from tensorgrad.inspect.why import describe
from tensorgrad.lower.lowering import Lowered
from tensorgrad.plan import BufferPlan, BufferSpec

KINDS = {
    "param": "parameters",
    "state": "states",
    "input": "inputs, written before each step",
    "const": "constants",
    "output": "outputs, read after a step",
    "grad": "gradients",
    "temp": "temporaries",
}


class Lifetime(NamedTuple):
    """A stored value that lives in a pooled buffer from the kernel that writes it to the last that reads it.

    `what` is its operation and type: `%14 matmul f32[8, 10]`.
    """

    value: Value
    nbytes: int
    first: int
    last: int
    what: str


class Pooled(NamedTuple):
    """A buffer of the pool and the values that it holds one after another."""

    name: str
    nbytes: int
    values: tuple[Lifetime, ...]


class MemoryReport:
    """The memory that a program has on the device. Printing it shows its tables.

    Attributes:
        plan: the buffers themselves.
        total: bytes of device memory that the plan allocates; what it shares with other programs of
            the same state counts in each.
        by_kind: kind -> (number of tensors, their bytes).
        arenas: shared allocation -> its bytes; its tensors are slices of it.
        resident: the buffers that are there all the time, by kind: all but the temporaries' and views of packs.
        pooled: the temporaries' buffers.
        needed: bytes of temporaries that each kernel needs, its own and those that later ones read.
        peak: most bytes of temporaries that are needed at one time, with the kernel where that is.
        unpooled: bytes of temporaries if none shared a buffer.
    """

    def __init__(self, shown: Shown) -> None:
        self.plan: BufferPlan = shown.lowered.memory.plan
        self.note = "" if shown.built.lowered is not None else shown.note
        self.total = self.plan.nbytes
        self.by_kind, self.resident = _by_kind(shown.lowered)
        self.arenas = dict(self.plan.arenas)
        self.pooled = _pooled(shown.lowered)
        lives = [life for buffer in self.pooled for life in buffer.values]
        self.unpooled = sum(life.nbytes for life in lives)
        self.needed = tuple(
            sum(life.nbytes for life in lives if life.first <= step <= life.last)
            for step in range(len(shown.lowered.kernels))
        )
        most = max(self.needed, default=0)
        self.peak = most, self.needed.index(most) if self.needed else 0

    @property
    def pool(self) -> int:
        """Bytes of the temporaries' buffers."""
        return sum(buffer.nbytes for buffer in self.pooled)

    _KIND_HEADER = ("kind", ">tensors", ">bytes", "")
    _POOL_HEADER = ("buffer", ">bytes", "holds, by the kernels from the first to the last that needs it")
    _ARENA_HEADER = ("arena", ">bytes", ">tensors")

    def _kind_rows(self) -> list[tuple[object, ...]]:
        return [(kind, count, show_bytes(nbytes), KINDS[kind]) for kind, (count, nbytes) in self.by_kind.items()]

    def _pool_rows(self) -> list[tuple[object, ...]]:
        rows = []
        for buffer in self.pooled:
            held = ", ".join(f"{life.value} {life.first}-{life.last}" for life in buffer.values)
            rows.append((buffer.name, show_bytes(buffer.nbytes), held))
        return rows

    def _arena_rows(self) -> list[tuple[object, ...]]:
        tensors = [b.arena for b in self.plan.buffers if b.arena and b.name != b.arena]
        return [(name, show_bytes(nbytes), tensors.count(name)) for name, nbytes in self.arenas.items()]

    def _pool_line(self) -> str:
        most, step = self.peak
        return (
            f"temporaries: {counted(sum(len(b.values) for b in self.pooled), 'value')} in "
            f"{counted(len(self.pooled), 'buffer')} of {show_bytes(self.pool)}; at most {show_bytes(most)} are needed "
            f"at a time (kernel {step}), {show_bytes(self.unpooled)} without sharing"
        )

    def __str__(self) -> str:
        parts = [f"{show_bytes(self.total)} of device memory", table(self._KIND_HEADER, self._kind_rows())]
        if self.arenas:
            parts += ["", table(self._ARENA_HEADER, self._arena_rows())]
        if self.pooled:
            parts += ["", self._pool_line(), table(self._POOL_HEADER, self._pool_rows())]
        return "\n".join([*parts, *([self.note] if self.note else [])])

    def __repr__(self) -> str:
        return f"<memory plan of {show_bytes(self.total)}; print it for its tables>"

    def _repr_html_(self) -> str:
        parts = [html_table(self._KIND_HEADER, self._kind_rows(), f"{show_bytes(self.total)} of device memory")]
        if self.arenas:
            parts.append(html_table(self._ARENA_HEADER, self._arena_rows()))
        if self.pooled:
            parts.append(str(details(self._pool_line(), table(self._POOL_HEADER, self._pool_rows()))))
        return "".join(parts)


def _by_kind(lowered: Lowered) -> tuple[dict[str, tuple[int, int]], tuple[BufferSpec, ...]]:
    """Kind -> number of tensors and their bytes; and the tensors but temporaries."""
    plan = lowered.memory.plan
    # a pack is no tensor of its own, but a view of its parts
    views = {lowered.memory.where.get(Value(n.id)) for n in lowered.graph.nodes if n.op == "pack"}
    found: dict[str, tuple[int, int]] = {}
    resident: list[BufferSpec] = []
    for kind in KINDS:
        specs = [b for b in plan.buffers if b.kind == kind and b.id not in views]
        if specs:
            found[kind] = len(specs), sum(b.nbytes for b in specs)
            resident += [b for b in specs if kind != "temp"]
    return found, tuple(resident)


def _pooled(lowered: Lowered) -> list[Pooled]:
    """Each pooled buffer with its values, by the kernels that write and read them."""
    first: dict[Value, int] = {}
    last: dict[Value, int] = {}
    for step, kernel in enumerate(lowered.kernels):
        for value in kernel.writes:
            first.setdefault(value, step)
        for value in (*kernel.loads(), *kernel.writes):
            last[value] = step
    held: dict[int, list[Lifetime]] = {}
    for value, step in first.items():
        place = lowered.memory.where[value]
        spec = lowered.memory.plan.buffers[place]
        if spec.kind == "temp" and spec.arena is None:
            nbytes = max(4, lowered.graph.type(value).nbytes)
            held.setdefault(place, []).append(Lifetime(value, nbytes, step, last[value], describe(lowered, value)))
    buffers = lowered.memory.plan.buffers
    return [Pooled(buffers[i].name, buffers[i].nbytes, tuple(lives)) for i, lives in sorted(held.items())]
