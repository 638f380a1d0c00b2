"""Algebraic simplification: what the numbers allow for every input, NaN and infinity included.

So `0 * x` stays (it is NaN where x is), and `x + 0` stays (it turns -0 into 0).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorgrad.dtypes import DType, f16, f32
from tensorgrad.graph import Graph, Node, TensorType, Value
from tensorgrad.passes.rewrite import rewrite
from tensorgrad.primitive import REGISTRY

_FOLDABLE = frozenset(
    """
    neg abs sign sqrt rsqrt exp expm1 log log1p sin cos tanh sigmoid floor ceil round add sub mul div maximum minimum
    pow floor_divide remainder less less_equal equal and or xor not shl shr where cast isnan isfinite
    """.split()  # noqa: SIM905  # a list of thirty-five strings reads worse
)


def simplify(graph: Graph) -> Graph:
    """The graph with constants folded, views of views composed and neutral operations gone."""
    return rewrite(graph, _simplify)


def uniform(graph: Graph, value: Value) -> Any | None:
    """The number that every element is, or None."""
    node = graph.node(value)
    while node.op in ("broadcast_to", "reshape", "permute"):
        node = graph.node(node.inputs[0])
    return node.attrs["value"] if node.op == "const" else None


def constant(graph: Graph, number: Any, type_: TensorType, like: Node) -> Value:
    """A node for a tensor of one number."""
    dtype: DType = type_.dtype
    scalar = graph.add("const", (), {"value": number, "dtype": dtype}, (TensorType((), dtype),), like.site)
    if not type_.shape:
        return Value(scalar.id)
    spread = graph.add("broadcast_to", (Value(scalar.id),), {"shape": type_.shape}, (type_,), like.site)
    return Value(spread.id)


def _simplify(graph: Graph, node: Node) -> Value | tuple[Value, ...] | None:
    if node.op in _FOLDABLE:
        numbers = [uniform(graph, v) for v in node.inputs]
        if all(n is not None for n in numbers):
            return _fold(graph, node, numbers)
        rule = _NEUTRAL.get(node.op)
        return rule(graph, node, numbers) if rule else None
    if node.op == "custom_grad":
        # derivatives are taken before passes run
        return node.inputs[0]
    if node.op == "checkpoint":
        return node.inputs[: node.attrs["count"]]
    rule = _VIEWS.get(node.op)
    return rule(graph, node) if rule else None


def _fold(graph: Graph, node: Node, numbers: list[Any]) -> Value:
    types = [graph.type(v) for v in node.inputs]
    with np.errstate(all="ignore"):
        arrays = [np.asarray(n, dtype=t.dtype.numpy) for n, t in zip(numbers, types, strict=True)]
        result = np.asarray(REGISTRY[node.op].eval(np, *arrays, **node.attrs)).astype(node.type.dtype.numpy)
    return constant(graph, result.item(), node.type, node)


def _neutral(op: str, number: float, sides: tuple[int, ...]) -> Callable[..., Value | None]:
    def rule(graph: Graph, node: Node, numbers: list[Any]) -> Value | None:
        for side in sides:
            # x - (-0.0) is not neutral: it turns -0 into 0
            if numbers[side] == number and math.copysign(1, numbers[side]) > 0:
                return node.inputs[1 - side]
        return None

    return rule


def _where(graph: Graph, node: Node, numbers: list[Any]) -> Value | None:
    _, a, b = node.inputs
    if numbers[0] is not None:
        return a if numbers[0] else b
    return a if a == b else None


def _twice(graph: Graph, node: Node, numbers: list[Any]) -> Value | None:
    inner = graph.node(node.inputs[0])
    return inner.inputs[0] if inner.op == node.op else None


def _cast(graph: Graph, node: Node, numbers: list[Any]) -> Value | None:
    (x,), dtype = node.inputs, node.attrs["dtype"]
    if graph.type(x).dtype is dtype:
        return x
    inner = graph.node(x)
    # there and back through a wider float
    if inner.op == "cast" and dtype is f16 and inner.type.dtype is f32 and graph.type(inner.inputs[0]).dtype is f16:
        return inner.inputs[0]
    return None


_NEUTRAL: dict[str, Callable[..., Value | None]] = {
    "mul": _neutral("mul", 1, (0, 1)),
    "div": _neutral("div", 1, (1,)),
    "sub": _neutral("sub", 0, (1,)),
    "where": _where,
    "neg": _twice,
    "cast": _cast,
}


def _append(graph: Graph, node: Node, inputs: tuple[Value, ...], **attrs: Any) -> Value:
    return Value(graph.add(node.op, inputs, attrs, node.types, node.site).id)


def _reshape(graph: Graph, node: Node) -> Value | None:
    source = node.inputs[0]
    if graph.type(source).shape == node.attrs["shape"]:
        return source
    inner = graph.node(source)
    if inner.op == "reshape":
        if graph.type(inner.inputs[0]).shape == node.attrs["shape"]:
            return inner.inputs[0]
        return _append(graph, node, inner.inputs, shape=node.attrs["shape"])
    number = uniform(graph, source)
    return None if number is None else constant(graph, number, node.type, node)


def _permute(graph: Graph, node: Node) -> Value | None:
    source, perm = node.inputs[0], node.attrs["perm"]
    inner = graph.node(source)
    if inner.op == "permute":
        perm = tuple(inner.attrs["perm"][p] for p in perm)
        source = inner.inputs[0]
    if perm == tuple(range(len(perm))):
        return source
    number = uniform(graph, source)
    if number is not None:
        return constant(graph, number, node.type, node)
    return _append(graph, node, (source,), perm=perm) if inner.op == "permute" else None


def _broadcast(graph: Graph, node: Node) -> Value | None:
    source = node.inputs[0]
    if graph.type(source).shape == node.attrs["shape"]:
        return source
    inner = graph.node(source)
    return _append(graph, node, inner.inputs, shape=node.attrs["shape"]) if inner.op == "broadcast_to" else None


def _after(graph: Graph, node: Node) -> Value | None:
    source = graph.node(node.inputs[0])
    # what is there all the time needs no waiting for; other values of the copy tell it from the original
    kept = source.op in ("array", "pack") or (source.op == "leaf" and source.attrs["role"] != "input")
    return node.inputs[0] if kept else None


_VIEWS: dict[str, Callable[[Graph, Node], Value | None]] = {
    "reshape": _reshape,
    "permute": _permute,
    "broadcast_to": _broadcast,
    "after": _after,
}
