"""Attention as matrix products and a softmax, where its own kernels do not pay.

A software adapter pays for each barrier as much as for a hundred multiplications, and the kernels of attention have
many. Of few queries (a text that is written word by word) or few keys the matrix of scores is small, and a block of
the kernels is mostly empty. In between, large matmuls are twice as fast as the kernels (on an H200, 32 batches of 6
heads of 64, 256 queries and keys: 0.41 ms forward and back, where the kernels take 0.68 ms); the kernels win where
dispatches count, and where the scores would take too much memory.

The composite of the gradient computes the weights again in the same operations as the output does, so that common
subexpressions leave them once.
"""

from __future__ import annotations

import math

from tensorgrad.callsite import standing_at
from tensorgrad.graph import Graph, Node, TensorType, Value
from tensorgrad.ops.attention import expanded
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


def expand(graph: Graph, everything: bool = True) -> Graph:
    """The graph with composites in place of `attention` and `attention_vjp`.

    Args:
        everything: False leaves those for which the kernels pay.
    """
    if not any(node.op in KERNELS for node in graph.nodes):
        return graph

    def rule(new: Graph, node: Node) -> tuple[Value, ...] | None:
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


def _kernels_pay(q: TensorType, k: TensorType) -> bool:
    *batch, queries, _ = q.shape
    keys = k.shape[2]
    nbytes = math.prod(batch) * queries * keys * q.dtype.itemsize
    return min(queries, keys) >= SHORTEST and not FEW_BYTES < nbytes <= MOST_BYTES
