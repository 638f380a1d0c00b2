"""Which values of a graph can be read as one with a new first axis, a *stack*, without copying them.

Values can be stacked if they are one value, or computed together, or lie side by side in an arena at equal
distances, or are the same view or elementwise operation on what can be stacked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from tensorgrad.graph import Graph, Node, Value
from tensorgrad.ops.arena import parts
from tensorgrad.primitive import REGISTRY

Members = tuple[Value, ...]
"""Values of one type, in the order of the stack."""

VIEWS = frozenset({"reshape", "permute", "broadcast_to"})


class Stacks:
    """What is stacked in one graph.

    Attributes:
        users: value -> the nodes that read it.
        slots: what lies in a pack -> the pack and its place there, in elements.
        joint: value -> the values that are computed together with it, in one operation.
        placed: value -> the values that lie side by side with it in an arena of their own.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.users: dict[Value, list[Node]] = {}
        self.slots: dict[Value, tuple[Value, int]] = {}
        self.joint: dict[Value, Members] = {}
        self.placed: dict[Value, Members] = {}
        self.roots = {*graph.roots(), *graph.leaves.values()}
        self._before: list[int] = []
        for node in graph.nodes:
            for value in dict.fromkeys(node.inputs):
                self.users.setdefault(value, []).append(node)
            for part, offset in parts(graph, Value(node.id)):
                self.slots[part] = Value(node.id), offset

    def node(self, value: Value) -> Node:
        return self.graph.node(value)

    def fits(self, values: Members) -> bool:
        """Whether the values can be read as a stack."""
        if len(set(values)) == 1 or values in (self.joint.get(values[0]), self.placed.get(values[0])):
            return True
        nodes = [self.node(v) for v in values]
        if any(v in self.joint or v in self.placed for v in values) or not alike(nodes):
            return False
        if nodes[0].op == "leaf":
            return self.distance(values) is not None
        return bool(nodes[0].inputs) and moves_along(nodes[0], self.graph) and all(map(self.fits, columns(nodes)))

    def distance(self, values: Members) -> int | None:
        """Elements from one value to the next, if all of them lie in one pack, and evenly."""
        if any(v not in self.slots for v in values):
            return None
        packs, offsets = zip(*(self.slots[v] for v in values), strict=True)
        steps = {b - a for a, b in pairwise(offsets)}
        return steps.pop() if len(set(packs)) == 1 and len(steps) == 1 and min(steps, default=0) >= 0 else None

    def free(self, values: Members) -> bool:
        """Whether the values could be computed together: none needs another one, and nobody has to see them."""
        if self.roots.intersection(values) or any(v in self.joint or v in self.placed for v in values):
            return False
        if not self._before:
            for node in self.graph.nodes:
                mask = 0
                for i in {v.node for v in node.inputs}:
                    mask |= self._before[i] | 1 << i
                self._before.append(mask)
        whole = sum(1 << i for i in {v.node for v in values})
        return not any(self._before[v.node] & whole for v in values)

    # Computing together --------------------------------------------------------------------

    def join(self, values: Members) -> None:
        """Has the values computed together, and after them what does the same to each of them."""
        self.joint.update(dict.fromkeys(values, values))
        self.follow(values)

    def follow(self, values: Members) -> None:
        """Joins what does the same to each of the values."""
        for user in self.users.get(values[0], ()):
            found = self._same_use(user, values)
            if found:
                self.join(found)

    def _same_use(self, first: Node, values: Members) -> Members | None:
        if len(first.types) > 1 or not (moves_along(first, self.graph) or first.op in ("sum", "place")):
            return None
        at = first.inputs.index(values[0])
        nodes = [first]
        for value in values[1:]:
            users = (u for u in self.users.get(value, ()) if u not in nodes and alike((first, u)))
            found = next((u for u in users if u.inputs[at] == value), None)
            if found is None:
                return None
            nodes.append(found)
        members = tuple(Value(node.id) for node in nodes)
        if first.op == "place" and self.distance(members) != first.type.size:
            return None
        return members if self.free(members) and all(map(self.fits, columns(nodes))) else None

    # Lying side by side ---------------------------------------------------------------------

    def put(self, values: Members) -> Members | None:
        """Has the values, or what they are views of, lie side by side in an arena of their own, if they can.

        Gives what lies there.
        """
        base = self._base(values)
        if self.fits(values):
            return base
        distinct = len(set(base)) == len(base)
        if not distinct or not self.free(base) or any(self.node(v).op in _UNPLACED for v in base):
            return None
        self.placed.update(dict.fromkeys(base, base))
        return base

    def _base(self, values: Members) -> Members:
        """What the values are the same views of, as far up as nobody reads it but by one more such view."""
        while alike(nodes := [self.node(v) for v in values]) and nodes[0].op in ("reshape", "permute"):
            values = tuple(node.inputs[0] for node in nodes)
        while True:
            users = [self.users.get(v, []) for v in values]
            if any(len(u) != 1 for u in users) or self.roots.intersection(values):
                return values
            nodes = [u[0] for u in users]
            if nodes[0].op not in ("reshape", "permute") or not alike(nodes):
                return values
            values = tuple(Value(node.id) for node in nodes)


_UNPLACED = frozenset({"leaf", "array", "pack", "place", "const", "iota", "broadcast_to"})
"""What is in memory already, or nowhere."""


def alike(nodes: Sequence[Node]) -> bool:
    """Whether the nodes do the same to operands of the same types, the slots of `place` apart."""
    first, *others = nodes
    if any(node is first or node.op != first.op or node.types != first.types for node in others):
        return False
    if first.op in ("leaf", "place"):
        return True
    return all(node.attrs == first.attrs and len(node.inputs) == len(first.inputs) for node in others)


def moves_along(node: Node, graph: Graph) -> bool:
    """Whether it is a view, or works element by element, so that a stack is one operation of the same kind."""
    if node.op in VIEWS:
        return True
    record = REGISTRY[node.op]
    shapes = {graph.type(v).shape for v in node.inputs}
    return (
        record.lower is not None and not record.view and node.attrs.keys() <= {"dtype"} and shapes == {node.type.shape}
    )


def columns(nodes: Sequence[Node]) -> list[Members]:
    """The operands of alike nodes: all first ones, all second ones, and so on."""
    return list(zip(*(node.inputs for node in nodes), strict=True))


def lifted(nodes: Sequence[Node]) -> Mapping[str, Any]:
    """The attributes of the operation that does for a stack what these nodes do."""
    first, n = nodes[0], len(nodes)
    attrs = dict(first.attrs)
    if first.op in ("reshape", "broadcast_to"):
        attrs["shape"] = (n, *attrs["shape"])
    elif first.op == "permute":
        attrs["perm"] = (0, *(p + 1 for p in attrs["perm"]))
    elif first.op == "sum":
        attrs["axes"] = tuple(axis + 1 for axis in attrs["axes"])
    elif first.op == "place":
        attrs["slot"] = " + ".join(filter(None, (node.attrs["slot"] for node in nodes)))
    return attrs
