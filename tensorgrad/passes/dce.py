"""Dead code elimination: nodes that no output, update, capture or gradient needs go. Leaves stay."""

from __future__ import annotations

from tensorgrad.graph import Graph
from tensorgrad.passes.rewrite import rewrite


def dce(graph: Graph) -> Graph:
    """The graph without the nodes that nobody reads."""
    live = {value.node for value in (*graph.roots(), *graph.leaves.values())}
    for node in reversed(graph.nodes):
        if node.id in live:
            live.update(value.node for value in node.inputs)
    return rewrite(graph, lambda new, node: None, live)
