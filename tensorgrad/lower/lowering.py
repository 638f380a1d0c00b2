"""The middle of the compiler: an optimized graph becomes fused kernels and a buffer plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from tensorgrad.graph import Graph, Value
from tensorgrad.lower.compose import Composer
from tensorgrad.lower.expr import clear_interned
from tensorgrad.lower.formula import formula
from tensorgrad.lower.fuse import Fuser
from tensorgrad.lower.kernel import Kernel
from tensorgrad.lower.memory import Memory, Planner, verify


class Lowered(NamedTuple):
    """What lowering gives.

    Attributes:
        graph: what the kernels compute.
        kernels: in the order in which they run.
        memory: the buffer plan, and which buffer holds each stored value.
        reasons: why a stored value owns a buffer, leaves apart.
        refused: why a reader of a stored value is a kernel of its own, where joining was tried.
    """

    graph: Graph
    kernels: list[Kernel]
    memory: Memory
    reasons: dict[Value, str]
    refused: dict[Value, str]

    def name(self, value: Value) -> str:
        """The name of the buffer that holds a value, as printouts show it."""
        place = self.memory.where.get(value)
        return str(value) if place is None else self.memory.plan.buffers[place].name

    def formula(self, kernel: Kernel) -> str:
        """What a kernel computes: a line a store, after the parts that occur more than once."""
        return formula(kernel, self.name)

    def __str__(self) -> str:
        lines = []
        for i, kernel in enumerate(self.kernels):
            space = " x ".join(str(v.size) for v in kernel.vars)
            lines.append(f"kernel {i}: {kernel.kind} {space}")
            lines += [f"  {line}" for line in self.formula(kernel).splitlines()]
        return "\n".join(lines)


def lower(
    graph: Graph,
    outputs: Mapping[str, Value],
    *,
    fuse: bool = True,
    compose: bool = True,
    max_buffers: int = 8,
    totals: bool = True,
) -> Lowered:
    """Lowers an optimized graph.

    Args:
        outputs: name -> value that the host reads.
        fuse: False gives every value that owns a buffer a kernel of its own, for comparison.
        compose: False gives every operation that is no view such a buffer, as where operations run one after the other.
        max_buffers: storage buffers that a kernel may bind.
        totals: let matmuls sum their operands on the side; for GPUs.
    """
    graph, outputs = _apart(graph, outputs)
    composer = Composer(graph, fuse, max_buffers, compose)
    buffer_of = {v: _owner(composer, v) for v in {*graph.roots(), *graph.leaves.values()}}
    buffer_of |= {Value(n.id): Value(n.id) for n in graph.nodes if n.op == "place"}
    updates = {leaf: buffer_of[v] for leaf, v in graph.updates.items()}
    read = {*outputs.values(), *graph.grads.values(), *graph.updates.values()}
    outside = {buffer_of[v] for v in read}
    fuser = Fuser(graph, composer.kernels(), outside, updates, max_buffers, totals=totals)
    kernels = fuser.run(fuse)
    if any(_bindings(k) > max_buffers for k in kernels):
        fuser = Fuser(graph, composer.kernels(), outside, updates, max_buffers, hopeful=False, totals=totals)
        kernels = fuser.run(fuse)
    memory = Planner(graph, kernels, buffer_of, outputs).plan()
    verify(graph, kernels, memory, buffer_of)
    clear_interned()
    return Lowered(graph, kernels, memory, composer.reasons, fuser.refused)


def _apart(graph: Graph, outputs: Mapping[str, Value]) -> tuple[Graph, dict[str, Value]]:
    """Copies the old value of a state that is replaced, where somebody wants it after the kernels.

    Its own buffer holds the new value by then: `a, b = b, a` would lose one of them.
    """
    wanted = {*outputs.values(), *graph.roots()}
    kept = [leaf for leaf, new in graph.updates.items() if leaf in wanted and new != leaf]
    if not kept:
        return graph, dict(outputs)
    new = replace(graph, nodes=list(graph.nodes))
    copies = {v: Value(new.add("stop_gradient", (v,), {}, (graph.type(v),), graph.node(v).site).id) for v in kept}
    new.outputs = [copies.get(v, v) for v in graph.outputs]
    new.updates = {leaf: copies.get(v, v) for leaf, v in graph.updates.items()}
    new.captures = {name: copies.get(v, v) for name, v in graph.captures.items()}
    new.grads = {name: copies.get(v, v) for name, v in graph.grads.items()}
    return new, {name: copies.get(v, v) for name, v in outputs.items()}


def _bindings(kernel: Kernel) -> int:
    return len({*kernel.loads(), *(kernel.inplace.get(v, v) for v in kernel.writes)})


def _owner(composer: Composer, value: Value) -> Value:
    """The stored value whose buffer holds a root."""
    return value if value in composer.stored else composer.alias(value)
