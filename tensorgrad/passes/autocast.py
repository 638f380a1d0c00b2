"""Mixed precision: what matmuls and attention multiply is rounded to f16, and stored as such.

An operand becomes `f32(f16(x))`, with both casts below the views through which it is read, so that a value which
several products read, transposed or not, is rounded and stored once. The products stay in f32: half the
mantissas make exact f32 products, which are added up in f32. Kernels read the f16 value in place and widen it in
registers, or multiply subgroup matrices of it. Everything else (softmax, norms, losses, gradients of parameters,
updates) keeps its f32.
"""

from __future__ import annotations

import math

from tensorgrad.dtypes import f16, f32
from tensorgrad.graph import Graph, Node, Value
from tensorgrad.passes.rewrite import append, rewrite, shown
from tensorgrad.primitive import REGISTRY

FACTORS = {"matmul": slice(0, 2), "attention": slice(0, 3), "attention_vjp": slice(0, 4)}
"""Which operands are multiplied; a bias and a softmax's statistics are not."""


def autocast(graph: Graph) -> Graph:
    """The graph with every f32 factor of a product rounded to f16.

    A sum over an operand along the product's inner axis (a bias gradient is one) adds up the rounded operand, so
    that nobody needs the f32 values and the matmul can compute the sum on the side.
    """
    beside = {
        (shown(graph, operand), graph.type(operand).shape[axis])
        for node in graph.nodes
        if node.op == "matmul"
        for operand, axis in zip(node.inputs, (-1, -2), strict=True)
    }
    sums = iter([_length(graph, node) for node in graph.nodes if node.op == "sum"])

    def rule(new: Graph, node: Node) -> Value | None:
        if node.op == "sum":
            which = slice(0, 1) if next(sums) in beside else slice(0)
        elif node.op in FACTORS:
            which = FACTORS[node.op]
        else:
            return None
        factors = tuple(_rounded(new, value) for value in node.inputs[which])
        inputs = (*factors, *node.inputs[len(factors) :])
        if inputs == node.inputs:
            return None
        return Value(new.add(node.op, inputs, node.attrs, node.types, node.site).id)

    return rewrite(graph, rule)


def _rounded(graph: Graph, value: Value) -> Value:
    """The value with what its views show rounded to f16."""
    node, type_ = graph.node(value), graph.type(value)
    if type_.dtype is not f32:
        return value
    if REGISTRY[node.op].view and node.op != "pad":
        inner = _rounded(graph, node.inputs[0])
        return value if inner == node.inputs[0] else append(graph, node, node.op, (inner,), **node.attrs)
    if node.op == "cast" and graph.type(node.inputs[0]).dtype is f16:
        return value
    half = append(graph, node, "cast", (value,), dtype=f16)
    return append(graph, node, "cast", (half,), dtype=f32)


def _length(graph: Graph, node: Node) -> tuple[Value, int]:
    """What a sum adds up, and how many elements to each result."""
    (x,) = node.inputs
    return shown(graph, x), math.prod(graph.type(x).shape[axis] for axis in node.attrs["axes"])
