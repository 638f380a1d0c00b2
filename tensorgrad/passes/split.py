"""Splitting of long sums, for devices with many cores.

A sum over many elements into few results, or a matmul with a long inner size and a small
result, has too few independent results to keep a GPU busy. It becomes a sum of partial
sums: an axis is cut in two, the inner part is reduced first. What reads the result then
adds up the partial sums, fused into whatever it does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from tensorgrad.device.base import Limits
from tensorgrad.graph import Graph, Node, Value
from tensorgrad.passes.autocast import is_half
from tensorgrad.passes.rewrite import append, rewrite, shown
from tensorgrad.wgsl.matmul_tiles import estimate

THREADS = 1 << 17
"""Invocations that keep a large GPU busy."""

DISPATCH = 4_000
"""Nanoseconds that one more kernel takes, at least: the one that adds up the parts."""

BANDWIDTH = 3_000
"""Bytes a nanosecond of a large GPU's memory, where the parts are written and read."""

SHORTEST_INNER = 128
"""A matmul's inner size is not cut below this."""

MOST_PARTS = 64
"""Nor into more parts."""

SHORTEST_SUM = 128
"""The length of a sum is not cut below this, and one of less than 16 times as much is left whole."""


def split(graph: Graph, limits: Limits) -> Graph:
    """The graph with long sums and matmuls of small results cut into partial ones."""
    beside: dict[tuple[Value, int], int] = {}
    for node in graph.nodes:
        if node.op == "matmul":
            parts = _parts_of_matmul(graph, node, limits)
            for operand, axis in zip(node.inputs, (-1, -2), strict=True):
                beside.setdefault((shown(graph, operand), graph.type(operand).shape[axis]), parts)
    sums = iter([_parts_of_sum(graph, node, beside) for node in graph.nodes if node.op == "sum"])

    def rule(new: Graph, node: Node) -> Value | None:
        if node.op == "matmul":
            return _split_matmul(new, node, _parts_of_matmul(new, node, limits))
        return _split_sum(new, node, next(sums)) if node.op == "sum" else None

    return rewrite(graph, rule)


def _parts(length: int, most: int, shortest: int) -> list[int]:
    """The powers of two up to `most` that divide `length` into parts of at least `shortest`."""
    parts = [1]
    while parts[-1] * 2 <= most and length % (parts[-1] * 2) == 0 and length // (parts[-1] * 2) >= shortest:
        parts.append(parts[-1] * 2)
    return parts


class Split(NamedTuple):
    """A matmul cut into so many parts, and how long it takes, the adding up included."""

    nanoseconds: float
    parts: int


def fastest(batch: int, m: int, n: int, k: int, limits: Limits, half: bool) -> Split:
    """The fastest way to multiply matrices of these sizes; `half`: of f16 numbers."""
    if batch * m * n == 0:
        return Split(0, 1)

    def nanoseconds(parts: int) -> float:
        adding = DISPATCH + parts * 8 * batch * m * n / BANDWIDTH if parts > 1 else 0
        return estimate(batch * parts, m, n, k // parts, limits, half) + adding

    return min(Split(nanoseconds(parts), parts) for parts in _parts(k, MOST_PARTS, SHORTEST_INNER))


def _parts_of_matmul(graph: Graph, node: Node, limits: Limits) -> int:
    (*lead, m, k), n = graph.type(node.inputs[0]).shape, graph.type(node.inputs[1]).shape[-1]
    half = all(is_half(graph, operand) for operand in node.inputs)
    return fastest(math.prod(lead), m, n, k, limits, half).parts


def _split_matmul(graph: Graph, node: Node, parts: int) -> Value | None:
    if parts == 1:
        return None
    a, b = node.inputs
    *lead, m, k = graph.type(a).shape
    n = graph.type(b).shape[-1]
    rank, rows = len(lead), (*lead, parts)
    left = append(graph, node, "reshape", (a,), shape=(*lead, m, parts, k // parts))
    left = append(graph, node, "permute", (left,), perm=(*range(rank), rank + 1, rank, rank + 2))
    right = append(graph, node, "reshape", (b,), shape=(*rows, k // parts, n))
    partial = append(graph, node, "matmul", (left, right))
    return append(graph, node, "sum", (partial,), axes=(rank,))


def _parts_of_sum(graph: Graph, node: Node, beside: Mapping[tuple[Value, int], int]) -> int:
    """How often a sum is cut: as the matmul that can compute it on the side, or as it needs itself.

    Args:
        beside: operand of a matmul and its inner size -> the parts of the matmul.
    """
    (x,), axes = node.inputs, node.attrs["axes"]
    shape = graph.type(x).shape
    length, rows = math.prod(shape[i] for i in axes), node.type.size
    if rows == 0 or axes[-1] - axes[0] + 1 != len(axes) or graph.node(x).op == "matmul":
        return 1
    if (shown(graph, x), length) in beside:
        return beside[shown(graph, x), length]
    return _parts(length, THREADS // (4 * rows), SHORTEST_SUM)[-1] if length >= 16 * SHORTEST_SUM else 1


def _split_sum(graph: Graph, node: Node, parts: int) -> Value | None:
    if parts == 1:
        return None
    (x,), axes = node.inputs, node.attrs["axes"]
    first, last = axes[0], axes[-1]
    shape = graph.type(x).shape
    length = math.prod(shape[i] for i in axes)
    cut = append(graph, node, "reshape", (x,), shape=(*shape[:first], parts, length // parts, *shape[last + 1 :]))
    partial = append(graph, node, "sum", (cut,), axes=(first + 1,))
    return append(graph, node, "sum", (partial,), axes=(first,))
