"""The record that declares an operation, and the registry of all of them.

Everything the library knows about a primitive stands in one place: its shape rule, its
reference evaluation, its gradient and its lowering. Adding one is writing one record
(and one row of the test table).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tensorgrad.graph import TensorType

ShapeRule = Callable[..., TensorType | tuple[TensorType, ...]]


class Primitive(NamedTuple):
    """An operation.

    Attributes:
        name: as graphs print it.
        shape: `(*operand_types, **attrs) -> TensorType` (or a tuple of them); raises ShapeError or DtypeError.
        eval: `(xp, *arrays, **attrs) -> array`, the reference on a NumPy-like namespace.
        grad: `(g, out, *operands, **attrs) -> tuple of Tensor or None`, one per operand, made of
            primitives; None: no gradient flows (integers, comparisons, stop_gradient).
        lower: `(idx, *operands, **attrs) -> Expr`, the scalar at an index; an operand is a function
            from an index to its scalar. None: the operation has a kernel template of its own.
        view: it only moves elements, so it never needs a buffer.
    """

    name: str
    shape: ShapeRule
    eval: Callable[..., Any]
    grad: Callable[..., tuple[Any, ...]] | None = None
    lower: Callable[..., Any] | None = None
    view: bool = False


REGISTRY: dict[str, Primitive] = {}


def primitive(
    name: str,
    *,
    shape: ShapeRule,
    eval: Callable[..., Any],  # the design's name for it
    grad: Callable[..., tuple[Any, ...]] | None = None,
    lower: Callable[..., Any] | None = None,
    view: bool = False,
) -> Primitive:
    """Declares an operation and registers it; see `Primitive` for the arguments."""
    if name in REGISTRY:
        raise ValueError(f"primitive {name!r} is declared twice")
    REGISTRY[name] = record = Primitive(name, shape, eval, grad, lower, view)
    return record
