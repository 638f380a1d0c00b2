"""`train.kernels`: what runs on the device, kernel by kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, overload

from tensorgrad.callsite import CallSite
from tensorgrad.graph import Node, Value
from tensorgrad.inspect import work
from tensorgrad.inspect.graphs import show_site, sites
from tensorgrad.inspect.tables import counted, details, html_table, short, show_bytes, show_flops, table
from tensorgrad.inspect.why import readers_of, why
from tensorgrad.lower.lowering import Lowered
from tensorgrad.plan import KernelSpec


class Bound(NamedTuple):
    """A buffer of a kernel.

    Attributes:
        name: as the plan calls it.
        access: `read`, `write` or `read_write`.
        nbytes: its size.
    """

    name: str
    access: str
    nbytes: int

    def __str__(self) -> str:
        return f"{self.name} ({self.access.replace('_', '/')}, {show_bytes(self.nbytes)})"


class KernelView:
    """One kernel. Printing it shows all of it.

    Attributes:
        index: its place in the order of a step.
        name: as profilers and errors call it.
        template: `map`, `row`, `matmul` or `attention`.
        variant: the template's variant, `128x64x16 nt` for example; empty where there is one only.
        wgsl: its source.
        threads, workgroup_size, workgroups: invocations in all and of one workgroup; workgroups in x and y.
    """

    def __init__(self, lowered: Lowered, spec: KernelSpec, index: int, readers: dict[Value, list[int]]) -> None:
        self._lowered, self._spec, self._readers = lowered, spec, readers
        self._kernel = lowered.kernels[index]
        self.index, self.name, self.template = index, spec.name, self._kernel.kind
        words = spec.name.split()
        self.variant = " ".join(words[1:3]) if self.template in ("matmul", "attention") and len(words) > 2 else ""
        self.wgsl = spec.wgsl
        self.threads, self.workgroup_size, self.workgroups = spec.threads, spec.workgroup_size, spec.workgroups

    @property
    def space(self) -> tuple[int, ...]:
        """The sizes of its loops: elements; rows and columns; batch, m and n of a matmul; batch, queries and keys."""
        return tuple(v.size for v in self._kernel.vars)

    @property
    def formula(self) -> str:
        """What it computes: a line a store, after the parts that occur more than once."""
        return self._lowered.formula(self._kernel)

    @property
    def writes(self) -> tuple[str, ...]:
        """The names of the buffers that it stores to."""
        return tuple(dict.fromkeys(self._lowered.name(v) for v in self._kernel.writes))

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The operations of the graph that it computes, in order."""
        return tuple(work.nodes_of(self._lowered, self._kernel))

    @cached_property
    def sites(self) -> tuple[CallSite, ...]:
        """The user's lines whose operations it computes; `inspect.show_site` adds their text."""
        return tuple(sites(self.nodes))

    @cached_property
    def site(self) -> CallSite | None:
        """The line that most of its operations come from."""
        lines = Counter(n.site for n in self.nodes if n.site is not None)
        return max(lines, key=lambda line: lines[line], default=None)

    @property
    def why(self) -> str:
        """Why it is one kernel and why what it stores owns a buffer, a line a reason."""
        return "\n".join(why(self._lowered, self.index, self._readers))

    @property
    def bindings(self) -> tuple[Bound, ...]:
        """Its buffers, in the order of `@binding(i)`."""
        plan, spec = self._lowered.memory.plan, self._spec
        read = {self._lowered.memory.where[v] for v in self._kernel.loads()}
        found = []
        for binding in spec.bindings:
            buffer = plan.buffers[binding.buffer]
            access = "read" if not binding.write else "read_write" if binding.buffer in read else "write"
            found.append(Bound(buffer.name, access, buffer.nbytes))
        return tuple(found)

    @cached_property
    def flops(self) -> int:
        """Arithmetic operations of one run, estimated from its expressions."""
        return work.flops(self._kernel)

    @cached_property
    def nbytes(self) -> int:
        """Bytes that one run has to move: every element that it touches, once."""
        return work.traffic(self._lowered, self._kernel)

    def __str__(self) -> str:
        return self.show()

    def show(self, wgsl: bool = True) -> str:
        """All about it; `wgsl` False leaves the source text out."""
        size = " x ".join(map(str, self.space))
        groups = f"{counted(self.threads, 'thread')} in workgroups of {self.workgroup_size}"
        parts = [
            f"kernel {self.index}: {self.name}",
            f"  loops over {size}; {groups}; {show_flops(self.flops)}, {show_bytes(self.nbytes)} moved (estimated)",
            *_section("formula", self.formula.splitlines()),
            *_section("source", [show_site(site) for site in self.sites]),
            *_section("why", self.why.splitlines()),
            *_section("bindings", [f"{i}: {b}" for i, b in enumerate(self.bindings)]),
            *(_section("wgsl", self.wgsl.splitlines()) if wgsl else []),
        ]
        return "\n".join(parts)

    def __repr__(self) -> str:
        return f"<kernel {self.index}: {self.name}>"

    def _repr_html_(self) -> str:
        return str(details(f"kernel {self.index}: {self.name}", str(self)))


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [f"  {title}", *(f"    {line}" for line in lines)] if lines else []


class Kernels(Sequence[KernelView]):
    """The kernels of a program in the order in which they run. Printing it shows a table.

    Args:
        lowered: the program.
        specs: its kernels as WGSL.

    Attributes:
        note: on a device that does not run them, what it does instead.
    """

    def __init__(self, lowered: Lowered, specs: Sequence[KernelSpec], note: str = "") -> None:
        self.note = note
        readers = readers_of(lowered)
        self._views = [KernelView(lowered, spec, i, readers) for i, spec in enumerate(specs)]

    @overload
    def __getitem__(self, index: int) -> KernelView: ...

    @overload
    def __getitem__(self, index: slice) -> list[KernelView]: ...

    def __getitem__(self, index: int | slice) -> KernelView | list[KernelView]:
        return self._views[index]

    def __len__(self) -> int:
        return len(self._views)

    def __iter__(self) -> Iterator[KernelView]:
        return iter(self._views)

    @property
    def flops(self) -> int:
        """Arithmetic operations of a step, estimated."""
        return sum(kernel.flops for kernel in self)

    @property
    def nbytes(self) -> int:
        """Bytes that a step's kernels have to move, estimated."""
        return sum(kernel.nbytes for kernel in self)

    _HEADER = (">#", "kernel", ">loops", ">buffers", ">work", ">moved", "writes", "source")

    def _rows(self) -> list[tuple[object, ...]]:
        return [
            (
                k.index,
                k.name,
                "x".join(map(str, k.space)),
                len(k.bindings),
                show_flops(k.flops),
                show_bytes(k.nbytes),
                short(", ".join(k.writes), 32),
                show_site(k.site, 48) if k.site else "",
            )
            for k in self
        ]

    def _total(self) -> str:
        work = f"{show_flops(self.flops)} and {show_bytes(self.nbytes)} moved in a run (estimated)"
        return f"{counted(len(self), 'kernel')}, {work}"

    def __str__(self) -> str:
        note = [self.note] if self.note else []
        return "\n".join([table(self._HEADER, self._rows()), self._total(), *note])

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'kernel')}; print them for a table, or one of them for all of it>"

    def _repr_html_(self) -> str:
        rows = [(r[0], details(str(r[1]), k.show(wgsl=False)), *r[2:]) for r, k in zip(self._rows(), self, strict=True)]
        return html_table(self._HEADER, rows, "; ".join(filter(None, (self._total(), self.note))))
