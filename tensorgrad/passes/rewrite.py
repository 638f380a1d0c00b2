"""The one way in which a pass changes a graph: node by node, in order, into a new graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorgrad.graph import Graph, Node, TensorType, Value
from tensorgrad.primitive import REGISTRY

Rule = Callable[[Graph, Node], Value | tuple[Value, ...] | None]


def rewrite(graph: Graph, rule: Rule, keep: set[int] | None = None) -> Graph:
    """Copies the graph, asking `rule` at every node.

    Args:
        rule: gets the new graph and the node with its inputs already mapped there; returns the value
            of the new graph that stands for the node's only result, a tuple of those for all its results, or
            None to copy the node.
        keep: ids of the nodes to visit; others are left out. All by default.
    """
    new = Graph(slots=dict(graph.slots))
    results: list[tuple[Value, ...]] = []  # what stands for each node's, in the new graph
    for node in graph.nodes:
        if keep is not None and node.id not in keep:
            results.append(())
            continue
        place, inputs = len(new.nodes), tuple([results[source][result] for source, result in node.inputs])
        same = place == node.id and inputs == node.inputs
        moved = node if same else Node(place, node.op, inputs, node.attrs, node.types, node.site)
        found = rule(new, moved)
        if found is None:
            new.nodes.append(moved)
            found = moved.values
        elif isinstance(found, Value):
            found = (found,)
        assert len(found) == len(node.types)
        results.append(found)
    carry_over(graph, new, lambda value: results[value.node][value.result])
    return new


def carry_over(graph: Graph, new: Graph, value: Callable[[Value], Value]) -> None:
    """Says of a new graph what the old one says of its values; `value` maps them."""
    new.outputs = [value(v) for v in graph.outputs]
    new.leaves = {name: value(v) for name, v in graph.leaves.items()}
    new.updates = {value(leaf): value(v) for leaf, v in graph.updates.items()}
    new.captures = {name: value(v) for name, v in graph.captures.items()}
    new.packs = {name: value(v) for name, v in graph.packs.items()}
    new.grads = {name: value(v) for name, v in graph.grads.items()}


def shown(graph: Graph, value: Value) -> Value:
    """What a chain of reshapes and permutations shows."""
    while graph.node(value).op in ("reshape", "permute"):
        value = graph.node(value).inputs[0]
    return value


def append(graph: Graph, like: Node, op: str, inputs: tuple[Value, ...], **attrs: Any) -> Value:
    """A new node of one result at the end of the graph, on the account of the line that `like` belongs to."""
    types = REGISTRY[op].shape(*(graph.type(v) for v in inputs), **attrs)
    assert isinstance(types, TensorType)
    return Value(graph.add(op, inputs, attrs, (types,), like.site).id)
