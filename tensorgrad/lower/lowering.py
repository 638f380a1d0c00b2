"""The middle of the compiler: an optimized graph becomes fused kernels and a buffer plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tensorgrad.graph import Graph, Value
from tensorgrad.lower.compose import Composer
from tensorgrad.lower.expr import clear_interned
from tensorgrad.lower.fuse import Fuser
from tensorgrad.lower.kernel import Kernel
from tensorgrad.lower.memory import Memory, Planner, verify
from tensorgrad.lower.show import show, show_index


@dataclass(slots=True)
class Lowered:
    """What lowering gives.

    Attributes:
        graph: what the kernels compute.
        kernels: in the order in which they run.
        memory: the buffer plan, and which buffer holds each stored value.
    """

    graph: Graph
    kernels: list[Kernel]
    memory: Memory

    def name(self, value: Value) -> str:
        """The name of the buffer that holds a value, as printouts show it."""
        place = self.memory.where.get(value)
        return str(value) if place is None else self.memory.plan.buffers[place].name

    def formula(self, kernel: Kernel) -> str:
        """What a kernel computes, a line a store."""
        lines = []
        if kernel.matmul:
            m = kernel.matmul
            lines.append(f"acc[b, m, n] = sum_k {show(m.a, self.name)} * {show(m.b, self.name)}")
        lines += [f"{self.name(s.value)}[{show_index(s.index)}] = {show(s.expr, self.name)}" for s in kernel.stores]
        return "\n".join(lines)

    def __str__(self) -> str:
        lines = []
        for i, kernel in enumerate(self.kernels):
            space = " x ".join(str(v.size) for v in kernel.vars)
            lines.append(f"kernel {i}: {kernel.kind} {space}")
            lines += [f"  {line}" for line in self.formula(kernel).splitlines()]
        return "\n".join(lines)


def lower(graph: Graph, outputs: Mapping[str, Value], *, fuse: bool = True, max_buffers: int = 8) -> Lowered:
    """Lowers an optimized graph.

    Args:
        outputs: name -> value that the host reads.
        fuse: False gives every value that owns a buffer a kernel of its own, for comparison.
        max_buffers: storage buffers that a kernel may bind.
    """
    composer = Composer(graph, fuse, max_buffers)
    buffer_of = {v: _owner(composer, v) for v in {*graph.roots(), *graph.leaves.values()}}
    buffer_of |= {Value(n.id): Value(n.id) for n in graph.nodes if n.op == "place"}
    updates = {leaf: buffer_of[v] for leaf, v in graph.updates.items()}
    read = {*outputs.values(), *graph.grads.values(), *graph.updates.values()}
    outside = {buffer_of[v] for v in read}
    kernels = Fuser(graph, composer.kernels(), outside, updates, max_buffers).run(fuse)
    if any(_bindings(k) > max_buffers for k in kernels):
        kernels = Fuser(graph, composer.kernels(), outside, updates, max_buffers, hopeful=False).run(fuse)
    memory = Planner(graph, kernels, buffer_of, outputs).plan()
    verify(graph, kernels, memory, buffer_of)
    clear_interned()
    return Lowered(graph, kernels, memory)


def _bindings(kernel: Kernel) -> int:
    return len({*kernel.loads(), *(kernel.inplace.get(v, v) for v in kernel.writes)})


def _owner(composer: Composer, value: Value) -> Value:
    """The stored value whose buffer holds a root."""
    return value if value in composer.stored else composer.alias(value)
