"""Common subexpression elimination: equal operations on equal operands become one.

Random operations differ by their ordinal, leaves by their name, so neither ever merges.
"""

from __future__ import annotations

from typing import Any

from tensorgrad.graph import Graph, Node, Value
from tensorgrad.passes.rewrite import rewrite


def cse(graph: Graph) -> Graph:
    """The graph with each distinct operation once."""
    seen: dict[Any, Node] = {}

    def rule(new: Graph, node: Node) -> Value | None:
        # repr keeps apart what compares equal and is not: 0.0 and -0.0, 1 and True
        attrs = tuple((k, repr(v) if isinstance(v, float | bool) else v) for k, v in sorted(node.attrs.items()))
        first = seen.setdefault((node.op, node.inputs, attrs, node.types), node)
        return None if first is node or len(node.types) > 1 else Value(first.id)

    return rewrite(graph, rule)
