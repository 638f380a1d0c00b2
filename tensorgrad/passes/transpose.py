"""A product that is read transposed only is computed transposed, so that its reader runs along memory."""

from __future__ import annotations

from collections import Counter

from tensorgrad.graph import Graph, Node, Value
from tensorgrad.passes.rewrite import append, rewrite


def transpose(graph: Graph) -> Graph:
    """`permute(a @ b)` with the last axes exchanged becomes `permute(b) @ permute(a)`, where nobody else reads it."""
    users = Counter(v for node in graph.nodes for v in node.inputs)
    roots = set(graph.roots())

    def wanted(node: Node) -> bool:
        (source,) = node.inputs
        return (
            graph.node(source).op == "matmul"
            and users[source] == 1
            and source not in roots
            and node.attrs["perm"] == _swap(len(node.attrs["perm"]))
        )

    found = iter([wanted(node) for node in graph.nodes if node.op == "permute"])

    def rule(new: Graph, node: Node) -> Value | None:
        if node.op != "permute" or not next(found):
            return None
        product = new.node(node.inputs[0])
        a, b = product.inputs
        left, right = (append(new, product, "permute", (v,), perm=_swap(len(new.type(v).shape))) for v in (b, a))
        return append(new, product, "matmul", (left, right))

    return rewrite(graph, rule)


def _swap(rank: int) -> tuple[int, ...]:
    return (*range(rank - 2), rank - 1, rank - 2)
