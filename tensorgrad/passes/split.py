"""Splitting of long sums, for devices with many cores.

A sum over many elements into few results, or a matmul with a long inner size and a small
result, has too few independent results to keep a GPU busy. It becomes a sum of partial
sums: an axis is cut in two, the inner part is reduced first. What reads the result then
adds up the partial sums, fused into whatever it does.
"""

from __future__ import annotations

import math
from typing import Any

from tensorgrad.graph import Graph, Node, TensorType, Value
from tensorgrad.passes.rewrite import rewrite
from tensorgrad.primitive import REGISTRY

BLOCKS = 1024
"""Blocks of a matmul's result that keep a large GPU busy."""

BLOCK = 64 * 64
"""Results of one such block."""

THREADS = 1 << 17
"""Invocations that keep a large GPU busy."""

SHORTEST_INNER = 1024
"""A matmul's inner size is not cut below this: adding up the parts is a dispatch of its own."""

SHORTEST_SUM = 128
"""Nor the length of a sum below this, and one of less than 16 times as much is left whole."""


def split(graph: Graph) -> Graph:
    """The graph with long sums and matmuls of small results cut into partial ones."""

    def rule(new: Graph, node: Node) -> Value | None:
        if node.op == "matmul":
            return _split_matmul(new, node)
        return _split_sum(new, node) if node.op == "sum" else None

    return rewrite(graph, rule)


def _parts(length: int, most: int, shortest: int) -> int:
    """The largest power of two up to `most` that divides `length` into parts of at least `shortest`."""
    parts = 1
    while parts * 2 <= most and length % (parts * 2) == 0 and length // (parts * 2) >= shortest:
        parts *= 2
    return parts


def _split_matmul(graph: Graph, node: Node) -> Value | None:
    a, b = node.inputs
    *lead, m, k = graph.type(a).shape
    n = graph.type(b).shape[-1]
    blocks = math.prod(lead) * math.ceil(m * n / BLOCK)
    parts = _parts(k, BLOCKS // max(blocks, 1), SHORTEST_INNER)
    if parts < 2 or blocks == 0:
        return None
    rank, rows = len(lead), (*lead, parts)
    left = _add(graph, node, "reshape", (a,), shape=(*lead, m, parts, k // parts))
    left = _add(graph, node, "permute", (left,), perm=(*range(rank), rank + 1, rank, rank + 2))
    right = _add(graph, node, "reshape", (b,), shape=(*rows, k // parts, n))
    partial = _add(graph, node, "matmul", (left, right))
    return _add(graph, node, "sum", (partial,), axes=(rank,))


def _split_sum(graph: Graph, node: Node) -> Value | None:
    (x,), axes = node.inputs, node.attrs["axes"]
    shape = graph.type(x).shape
    length, rows = math.prod(shape[i] for i in axes), node.type.size
    first, last = axes[0], axes[-1]
    if rows == 0 or last - first + 1 != len(axes) or graph.node(x).op == "matmul":
        return None
    parts = _parts(length, THREADS // (8 * rows), SHORTEST_SUM)
    if parts < 2 or length < 16 * SHORTEST_SUM:
        return None
    cut = _add(graph, node, "reshape", (x,), shape=(*shape[:first], parts, length // parts, *shape[last + 1 :]))
    partial = _add(graph, node, "sum", (cut,), axes=(first + 1,))
    return _add(graph, node, "sum", (partial,), axes=(first,))


def _add(graph: Graph, like: Node, op: str, inputs: tuple[Value, ...], **attrs: Any) -> Value:
    types = REGISTRY[op].shape(*(graph.type(v) for v in inputs), **attrs)
    assert isinstance(types, TensorType)
    return Value(graph.add(op, inputs, attrs, (types,), like.site).id)
