"""Mixed precision: what matmuls and attention multiply is rounded to f16, and stored as such.

An operand becomes `f32(f16(x))`, with both casts below the views through which it is read, so that a value which
several products read, transposed or not, is rounded and stored once. The products stay in f32: half the
mantissas make exact f32 products, which are added up in f32. Kernels read the f16 value in place and widen it in
registers, or multiply subgroup matrices of it. Everything else (softmax, norms, losses, gradients of parameters,
updates) keeps its f32.
"""

from __future__ import annotations

import math
from collections.abc import Set

from tensorgrad.dtypes import f16, f32
from tensorgrad.graph import Graph, Node, Value
from tensorgrad.passes.rewrite import append, rewrite, shown
from tensorgrad.passes.simplify import uniform
from tensorgrad.primitive import REGISTRY

NONE = slice(0)

KEPT = frozenset({"leaf", "array", "add", "sub", "sum", "matmul", "pad"})
"""Results that others than products go on reading in f32."""

FACTORS = {"matmul": slice(0, 2), "attention": slice(0, 3), "attention_vjp": slice(0, 4)}
"""Which operands are multiplied; a bias and a softmax's statistics are not."""


def autocast(graph: Graph) -> Graph:
    """The graph with every f32 factor of a product rounded to f16.

    Other readers of a factor read the rounded numbers too, so that nobody needs the f32 values: a softmax's gradient
    its weights, say. Not so those of a leaf, and of a sum, which may be a residual stream; nor what looks for an
    extreme or compares computed numbers, which have to be the very same. But what adds up an operand along the
    product's inner axis (a bias gradient is one) does, and the matmul can compute it on the side.
    """
    beside = {
        (shown(graph, operand), graph.type(operand).shape[axis])
        for node in graph.nodes
        if node.op == "matmul"
        for operand, axis in zip(node.inputs, (-1, -2), strict=True)
    }
    factors = {_base(graph, value) for node in graph.nodes for value in node.inputs[FACTORS.get(node.op, NONE)]}
    factors = {value for value in factors if graph.node(value).op not in KEPT}
    which = iter([_which(graph, node, factors, beside) for node in graph.nodes])

    def rule(new: Graph, node: Node) -> tuple[Value, ...] | None:
        inputs = tuple(_rounded(new, v) if round_ else v for v, round_ in zip(node.inputs, next(which), strict=True))
        if inputs == node.inputs:
            return None
        return new.add(node.op, inputs, node.attrs, node.types, node.site).values

    return rewrite(graph, rule)


def _which(graph: Graph, node: Node, factors: Set[Value], beside: Set[tuple[Value, int]]) -> list[bool]:
    """Which of a node's operands it reads rounded."""
    compares = not node.types[0].dtype.is_float and all(uniform(graph, value) is None for value in node.inputs)
    if REGISTRY[node.op].view or node.op in ("max", "min") or compares:  # who reads a view decides for itself
        return [False] * len(node.inputs)
    rounded = [_base(graph, value) in factors for value in node.inputs]
    rounded[FACTORS.get(node.op, NONE)] = [True] * len(rounded[FACTORS.get(node.op, NONE)])
    if node.op == "sum" and _length(graph, node) in beside:
        rounded = [True]
    return rounded


def _base(graph: Graph, value: Value) -> Value:
    """What a chain of views shows."""
    node = graph.node(value)
    while REGISTRY[node.op].view and node.op != "pad":
        value = node.inputs[0]
        node = graph.node(value)
    return value


def _rounded(graph: Graph, value: Value) -> Value:
    """The value with what its views show rounded to f16."""
    node, type_ = graph.node(value), graph.type(value)
    if type_.dtype is not f32:
        return value
    if REGISTRY[node.op].view and node.op != "pad":
        inner = _rounded(graph, node.inputs[0])
        inputs = (inner, *node.inputs[1:])
        return value if inputs == node.inputs else append(graph, node, node.op, inputs, **node.attrs)
    if node.op == "cast" and graph.type(node.inputs[0]).dtype is f16:
        return value
    half = append(graph, node, "cast", (value,), dtype=f16)
    return append(graph, node, "cast", (half,), dtype=f32)


def is_half(graph: Graph, value: Value) -> bool:
    """Whether a value shows numbers of f16, widened or not."""
    base = _base(graph, value)
    node = graph.node(base)
    inner = node.inputs[0] if node.op == "cast" and node.type.dtype is f32 else base
    return graph.type(inner).dtype is f16


def _length(graph: Graph, node: Node) -> tuple[Value, int]:
    """What a sum adds up, and how many elements to each result."""
    (x,) = node.inputs
    return shown(graph, x), math.prod(graph.type(x).shape[axis] for axis in node.attrs["axes"])
