"""Writes a graph anew, with each stack computed by one operation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tensorgrad.dtypes import f16, f32
from tensorgrad.graph import Graph, Node, Value
from tensorgrad.ops.arena import parts, slot_size
from tensorgrad.ops.windows import Slide
from tensorgrad.passes.autocast import is_half
from tensorgrad.passes.rewrite import append, carry_over
from tensorgrad.passes.stacks import Members, Stacks, columns, lifted

if TYPE_CHECKING:
    from tensorgrad.passes.merge import Sum


def unite(graph: Graph, stacks: Stacks, sums: Mapping[int, Sum]) -> Graph:
    """The graph with what `stacks` says is joint computed together.

    Args:
        sums: node -> what it adds up.
    """
    order = _ordered(graph, stacks, _live(graph, sums))
    return _Writer(graph, stacks, sums).write(order) if order else graph


def _live(graph: Graph, sums: Mapping[int, Sum]) -> set[int]:
    """The nodes that are needed: not the products that a sum over several replaces."""
    live = {value.node for value in (*graph.roots(), *graph.leaves.values())}
    for node in reversed(graph.nodes):
        if node.id in live:
            found = sums.get(node.id)
            products = () if found is None else (graph.node(v) for members in found.products for v in members)
            read = node.inputs if found is None else (*found.terms, *(v for node in products for v in node.inputs))
            live.update(v.node for v in read)
    return live


def _ordered(graph: Graph, stacks: Stacks, live: set[int]) -> list[Members] | None:
    """The nodes in an order in which each comes after what it needs, those of a stack together.

    None where stacks need each other in a circle.
    """
    order: list[Members] = []
    state: dict[Members, bool] = {}  # whether it is done

    def unit(value: Value) -> Members:
        return stacks.joint.get(value) or (Value(value.node),)

    def needs(members: Members) -> Iterator[Members]:
        read = (v for member in members for v in graph.node(member).inputs)
        return (unit(v) for v in read if v.node in live)

    for node in graph.nodes:
        first = unit(Value(node.id))
        if first in state or node.id not in live:
            continue
        state[first] = False
        stack = [(first, needs(first))]
        while stack:
            members, waiting = stack[-1]
            needed = next((m for m in waiting if not state.get(m, False)), None)
            if needed is None:
                state[members] = True
                order.append(members)
                stack.pop()
            elif needed in state:
                return None
            else:
                state[needed] = False
                stack.append((needed, needs(needed)))
    return order


class _Writer:
    """The new graph while it is written."""

    def __init__(self, graph: Graph, stacks: Stacks, sums: Mapping[int, Sum]) -> None:
        self.graph, self.stacks, self.sums = graph, stacks, sums
        self.new = Graph(slots=dict(graph.slots))
        self.values: dict[Value, Value] = {}
        self.whole: dict[Members, Value] = {}  # the stacks
        self.places: dict[Value, Value] = {}  # what lies side by side

    def write(self, order: Iterable[Members]) -> Graph:
        for members in order:
            nodes = [self.graph.node(v) for v in members]
            if members[0] in self.stacks.joint:
                self.whole[members] = self._joint(nodes)
            elif nodes[0].id in self.sums:
                self.values[members[0]] = self._sum(nodes[0], self.sums[nodes[0].id])
            elif nodes[0].op == "pack":
                self.values[members[0]] = self._pack(nodes[0])
            else:
                self._copy(nodes[0])
        carry_over(self.graph, self.new, self.value)
        return self.new

    def value(self, old: Value) -> Value:
        """What stands for a value: itself, or its part of a stack."""
        found = self.values.get(old)
        if found is None:
            members, type_ = self.stacks.joint[old], self.graph.type(old)
            whole, like = self.whole[members], self.graph.node(old)
            bounds = ((members.index(old), 1, 1), *((0, size, 1) for size in type_.shape))
            part = append(self.new, like, "slice", (whole,), bounds=bounds)
            found = self.values[old] = append(self.new, like, "reshape", (part,), shape=type_.shape)
        return found

    def stack(self, members: Members) -> Value:
        """The values as one."""
        found = self.whole.get(members)
        if found is None:
            found = self.whole[members] = self._stack(members)
        return found

    def _stack(self, members: Members) -> Value:
        nodes, type_ = [self.graph.node(v) for v in members], self.graph.type(members[0])
        first, shape = nodes[0], (len(members), *type_.shape)
        if len(set(members)) == 1:
            one = append(self.new, first, "reshape", (self.value(members[0]),), shape=(1, *type_.shape))
            return append(self.new, first, "broadcast_to", (one,), shape=shape)
        if members == self.stacks.placed.get(members[0]):
            places = tuple(self.places[v] for v in members)
            stored = self.new.type(places[0])
            whole = self._packed(places, slot_size(stored))
            return whole if stored == type_ else append(self.new, first, "cast", (whole,), dtype=type_.dtype)
        if first.op == "leaf":
            step, (pack, start) = self.stacks.distance(members), self.stacks.slots[members[0]]
            assert step is not None
            leaves = tuple(self.value(v) for v in members)
            return self._packed(leaves, step, name=self.graph.node(pack).attrs["name"], start=start)
        return self._joint(nodes)

    def _packed(self, parts: Members, step: int, **arena: Any) -> Value:
        """What lies in an arena at equal distances, as a stack; by default in an arena of its own."""
        like, (shape, _) = self.new.node(parts[0]), self.new.type(parts[0])
        count, size = len(parts), math.prod(shape)
        attrs = {"name": "", **arena, "offsets": tuple(range(0, count * step, step)), "size": (count - 1) * step + size}
        pack = append(self.new, like, "pack", parts, **attrs)
        if step != size:
            pack = append(self.new, like, "window", (pack,), slides=(Slide(size, step),), value=0.0)
        return append(self.new, like, "reshape", (pack,), shape=(count, *shape))

    def _joint(self, nodes: list[Node]) -> Value:
        """One operation that does what each of the nodes does."""
        first, inputs = nodes[0], [self.stack(column) for column in columns(nodes)]
        if first.op == "broadcast_to":
            # the new axis stays in front
            n, *own = self.new.type(inputs[0]).shape
            ones = (1,) * (len(first.type.shape) - len(own))
            inputs = [append(self.new, first, "reshape", tuple(inputs), shape=(n, *ones, *own))]
        return append(self.new, first, first.op, tuple(inputs), **lifted(nodes))

    def _copy(self, node: Node) -> None:
        inputs = tuple(self.value(v) for v in node.inputs)
        new = self.new.add(node.op, inputs, node.attrs, node.types, node.site)
        for old, value in zip(node.values, new.values, strict=True):
            # who needs a value that lies side by side with others reads it there
            self.values[old] = self._placed(node, old, value) if old in self.stacks.placed else value

    def _placed(self, node: Node, old: Value, value: Value) -> Value:
        """The value at its place, where it is stored in f16 if it and those beside it are widened from that."""
        half = all(self.graph.type(v).dtype is f32 and is_half(self.graph, v) for v in self.stacks.placed[old])
        value = append(self.new, node, "cast", (value,), dtype=f16) if half else value
        self.places[old] = place = append(self.new, node, "place", (value,), slot="")
        return append(self.new, node, "cast", (place,), dtype=f32) if half else place

    def _pack(self, node: Node) -> Value:
        """A pack in which what is computed together is one part."""
        held = [(v, offset) for v, offset in parts(self.graph, Value(node.id))]
        kept = [(v, offset) for v, offset in held if self.stacks.joint.get(v, (v,))[0] == v]
        inputs = tuple(self.stack(self.stacks.joint[v]) if v in self.stacks.joint else self.value(v) for v, _ in kept)
        attrs = {**node.attrs, "offsets": tuple(offset for _, offset in kept)}
        return append(self.new, node, "pack", inputs, **attrs)

    def _sum(self, node: Node, found: Sum) -> Value:
        total = [self.value(v) for v in found.terms]
        for members in found.products:
            left, right = (self.stack(column) for column in columns([self.graph.node(v) for v in members]))
            (count, m, k), n = self.new.type(left).shape, self.new.type(right).shape[-1]
            left = append(self.new, node, "permute", (left,), perm=(1, 0, 2))
            left = append(self.new, node, "reshape", (left,), shape=(m, count * k))
            right = append(self.new, node, "reshape", (right,), shape=(count * k, n))
            product = append(self.new, node, "matmul", (left, right))
            total.append(append(self.new, node, "reshape", (product,), shape=node.type.shape))
        first, *others = total
        for value in others:
            first = append(self.new, node, "add", (first, value))
        return first
