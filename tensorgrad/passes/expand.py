"""Attention as matrix products and a softmax, for devices on which its own kernels do not pay.

A software adapter pays for each barrier as much as for a hundred multiplications, and the kernels of attention have
many. The composite of the gradient computes the weights again in the same operations as the output does, so that
common subexpressions leave them once.
"""

from __future__ import annotations

from tensorgrad.callsite import standing_at
from tensorgrad.graph import Graph, Node, Value
from tensorgrad.ops.attention import expanded
from tensorgrad.passes.rewrite import rewrite
from tensorgrad.tensor import Tensor
from tensorgrad.trace import trace_into


def expand(graph: Graph) -> Graph:
    """The graph with composites in place of `attention` and `attention_vjp`."""

    def rule(new: Graph, node: Node) -> tuple[Value, ...] | None:
        if node.op not in ("attention", "attention_vjp"):
            return None

        def composite() -> tuple[Value, ...]:
            with standing_at(node.site):
                return tuple(t.value for t in expanded(node.op, [Tensor(new, v) for v in node.inputs], **node.attrs))

        return trace_into(new, composite)

    return rewrite(graph, rule)
