"""What a model updates by itself, such as running statistics: gated by the loss, and many at once.

A loss that is not finite leaves such states as they are, like the parameters. States of one dtype lie side by
side in an arena, and where their new values are made alike (`old * 0.9 + mean * 0.1`), that is written once for
the whole arena: one kernel instead of one for each state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tensorgrad.graph import Graph, Value
from tensorgrad.ops import add, mul, sub, where
from tensorgrad.ops.arena import ALIGNMENT, pack, place
from tensorgrad.ops.arena import parts as arena_parts
from tensorgrad.passes.simplify import uniform
from tensorgrad.tensor import Tensor
from tensorgrad.trace import update_state

_ALIKE = {"add": add, "mul": mul, "sub": sub}


def gate_updates(graph: Graph, updates: Mapping[Value, Value], finite: Tensor, span: int) -> None:
    """Appends updates to the running trace that keep the old values unless `finite`.

    Args:
        updates: leaf -> its next value.
        finite: a bool.
        span: bytes that one binding may cover; 0 gates the states one by one.
    """
    members: dict[str, list[Value]] = {}
    for leaf in updates:
        members.setdefault(graph.type(leaf).dtype.name, []).append(leaf)
    for dtype, leaves in members.items():
        olds = [Tensor(graph, leaf) for leaf in leaves]
        news = [Tensor(graph, updates[leaf]) for leaf in leaves]
        size = sum(-(-max(t.type.nbytes, 1) // ALIGNMENT) * ALIGNMENT for t in olds)
        if len(olds) > 1 and size <= span and all(graph.leaf_name(t.value) for t in olds):
            old = pack(olds, f"buffers.{dtype}")
            olds, news = [old], [_Together(f"buffers.{dtype}", olds, old).value(news)]
        for old, new in zip(olds, news, strict=True):
            update_state(old, where(finite, new, old))


class _Together:
    """Writes an expression over the arena for expressions over its parts."""

    def __init__(self, name: str, olds: Sequence[Tensor], old: Tensor) -> None:
        self.name, self.olds, self.old = name, olds, old
        self.packs = 0

    def value(self, parts: Sequence[Tensor]) -> Tensor:
        """The arena whose parts have these values."""
        graph = self.old.graph
        if [p.value for p in parts] == [o.value for o in self.olds]:
            return self.old
        nodes = [graph.node(p.value) for p in parts]
        (op,) = {n.op for n in nodes} if len({n.op for n in nodes}) == 1 else ("",)
        if op in _ALIKE:
            sides = [[Tensor(graph, n.inputs[side]) for n in nodes] for side in (0, 1)]
            return _ALIKE[op](*map(self.operand, sides))
        self.packs += 1
        name = f"{self.name}.new{self.packs}"
        placed = (
            p if n.op == "place" else place(p, f"{name}.{i}") for i, (p, n) in enumerate(zip(parts, nodes, strict=True))
        )
        return pack(list(placed), name)

    def operand(self, parts: Sequence[Tensor]) -> Tensor | np.ndarray:
        """An array of numbers where each part has one, else the parts' arena."""
        numbers = [uniform(self.old.graph, p.value) for p in parts]
        if None in numbers:
            return self.value(parts)
        flat = np.zeros(self.old.shape, self.old.dtype.numpy)
        for number, part, (_, offset) in zip(numbers, parts, arena_parts(self.old.graph, self.old.value), strict=True):
            flat[offset : offset + part.size] = number
        # one number everywhere (between the parts too) is a constant
        return np.full_like(flat, numbers[0]) if len(set(numbers)) == 1 else flat
