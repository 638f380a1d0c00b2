"""Operations as composites of others, where their own kernels do not pay: attention, and sums at many indices.

A software adapter pays for each barrier as much as for a hundred multiplications, and the kernels of attention have
many. Of few queries (a text that is written word by word) or few keys the matrix of scores is small, and a block of
the kernels is mostly empty. In between, large matmuls are twice as fast as the kernels (on an H200, 32 batches of 6
heads of 64, 256 queries and keys: 0.41 ms forward and back, where the kernels take 0.68 ms); the kernels win where
dispatches count, and where the scores would take too much memory.

The composite of the gradient computes the weights again in the same operations as the output does, so that common
subexpressions leave them once.

`scatter_add` compares every element with every index. Where that is much, as in the gradient of a large table's
lookups, the indices are sorted instead (`ops.segments`): on llvmpipe, 10,000 rows of 64 take 53 ms at 512
indices, and 13 s by comparisons.
"""

from __future__ import annotations

import math

from tensorgrad.callsite import standing_at
from tensorgrad.graph import Graph, Node, TensorType, Value
from tensorgrad.ops.attention import expanded
from tensorgrad.ops.segments import summed_in_order
from tensorgrad.passes.rewrite import rewrite
from tensorgrad.tensor import Tensor
from tensorgrad.trace import trace_into

KERNELS = frozenset({"attention", "attention_vjp"})

SHORTEST = 16
"""Queries, and keys, for which the kernels pay."""

FEW_BYTES = 4 << 20
"""Scores up to which four dispatches instead of nine are what counts."""

MOST_BYTES = 128 << 20
"""Scores that a layer may store (each layer keeps them for its gradient)."""

COMPARISONS = 1 << 30
"""Comparisons with indices that a GPU makes in less time than ten more dispatches take."""

COMPARISONS_ON_CPU = 1 << 22
"""The same on a CPU."""


def expand(graph: Graph, everything: bool = True) -> Graph:
    """The graph with composites in place of `attention`, `attention_vjp` and `scatter_add`.

    Args:
        everything: for a CPU; False leaves those for which a GPU's kernels pay.
    """
    if not any(node.op in KERNELS or node.op == "scatter_add" for node in graph.nodes):
        return graph

    def rule(new: Graph, node: Node) -> tuple[Value, ...] | None:
        if node.op == "scatter_add":
            return _in_order(new, node, COMPARISONS_ON_CPU if everything else COMPARISONS)
        if node.op not in KERNELS:
            return None
        q, k = node.inputs[:2] if node.op == "attention" else node.inputs[1:3]
        if not everything and _kernels_pay(new.type(q), new.type(k)):
            return None

        def composite() -> tuple[Value, ...]:
            with standing_at(node.site):
                return tuple(t.value for t in expanded(node.op, [Tensor(new, v) for v in node.inputs], **node.attrs))

        return trace_into(new, composite)

    return rewrite(graph, rule)


def _in_order(graph: Graph, node: Node, most: int) -> tuple[Value, ...] | None:
    """The sum of updates in the order of their indices, if comparing would take more than so many comparisons."""
    updates, indices = (Tensor(graph, v) for v in node.inputs)
    if node.attrs["batch"] or not updates.size or node.type.size * indices.size <= most:
        return None

    def composite() -> tuple[Value, ...]:
        with standing_at(node.site):
            return (summed_in_order(updates, indices, node.attrs["axis"], node.attrs["size"]).value,)

    return trace_into(graph, composite)


def _kernels_pay(q: TensorType, k: TensorType) -> bool:
    *batch, queries, _ = q.shape
    keys = k.shape[2]
    nbytes = math.prod(batch) * queries * keys * q.dtype.itemsize
    return min(queries, keys) >= SHORTEST and not FEW_BYTES < nbytes <= MOST_BYTES
