"""Attention as matrix products and a softmax, where its own kernels do not pay.

A software adapter pays for each barrier as much as for a hundred multiplications, and the kernels of attention have
many. Of few queries (a text that is written word by word) or few keys the matrix of scores is small, and a block of
the kernels is mostly empty.

The composite of the gradient computes the weights again in the same operations as the output does, so that common
subexpressions leave them once.
"""

from __future__ import annotations

from tensorgrad.callsite import standing_at
from tensorgrad.graph import Graph, Node, Value
from tensorgrad.ops.attention import expanded
from tensorgrad.passes.rewrite import rewrite
from tensorgrad.tensor import Tensor
from tensorgrad.trace import trace_into

KERNELS = frozenset({"attention", "attention_vjp"})

SHORTEST = 16
"""Queries, and keys, for which the kernels pay."""


def expand(graph: Graph, everything: bool = True) -> Graph:
    """The graph with composites in place of `attention` and `attention_vjp`.

    Args:
        everything: False leaves those that are long enough.
    """
    if not any(node.op in KERNELS for node in graph.nodes):
        return graph

    def rule(new: Graph, node: Node) -> tuple[Value, ...] | None:
        if node.op not in KERNELS:
            return None
        q, k = node.inputs[:2] if node.op == "attention" else node.inputs[1:3]
        if not everything and min(new.type(q).shape[2], new.type(k).shape[2]) >= SHORTEST:
            return None

        def composite() -> tuple[Value, ...]:
            with standing_at(node.site):
                return tuple(t.value for t in expanded(node.op, [Tensor(new, v) for v in node.inputs], **node.attrs))

        return trace_into(new, composite)

    return rewrite(graph, rule)
