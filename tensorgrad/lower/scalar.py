"""Scalar expressions with operators, so that a formula in the code reads like the formula.

`Scalar` wraps an `Expr` while a function is written down, and `.expr` unwraps it. Python
numbers take the dtype of the operand that they meet.
"""

from __future__ import annotations

from typing import Union

from tensorgrad.dtypes import DType, bool_
from tensorgrad.lower.expr import Expr, const, expr

Operand = Union["Scalar", int, float, bool]


class Scalar:
    """An expression that `+ - * / < <= & | ^ << >>` and unary `-` extend."""

    __slots__ = ("expr",)

    def __init__(self, expr: Expr) -> None:
        self.expr = expr

    def _with(self, op: str, other: Operand, result: DType | None = None, swapped: bool = False) -> Scalar:
        dtype = self.expr.dtype
        right = other.expr if isinstance(other, Scalar) else const(other, dtype)
        args = (right, self.expr) if swapped else (self.expr, right)
        return Scalar(expr(op, args, result or dtype))

    def __add__(self, other: Operand) -> Scalar:
        return self._with("add", other)

    def __radd__(self, other: Operand) -> Scalar:
        return self._with("add", other, swapped=True)

    def __sub__(self, other: Operand) -> Scalar:
        return self._with("sub", other)

    def __rsub__(self, other: Operand) -> Scalar:
        return self._with("sub", other, swapped=True)

    def __mul__(self, other: Operand) -> Scalar:
        return self._with("mul", other)

    def __rmul__(self, other: Operand) -> Scalar:
        return self._with("mul", other, swapped=True)

    def __truediv__(self, other: Operand) -> Scalar:
        return self._with("div", other)

    def __rtruediv__(self, other: Operand) -> Scalar:
        return self._with("div", other, swapped=True)

    def __and__(self, other: Operand) -> Scalar:
        return self._with("and", other)

    def __or__(self, other: Operand) -> Scalar:
        return self._with("or", other)

    def __xor__(self, other: Operand) -> Scalar:
        return self._with("xor", other)

    def __lshift__(self, places: Operand) -> Scalar:
        return self._with("shl", places)

    def __rshift__(self, places: Operand) -> Scalar:
        return self._with("shr", places)

    def __lt__(self, other: Operand) -> Scalar:
        return self._with("less", other, bool_)

    def __le__(self, other: Operand) -> Scalar:
        return self._with("less_equal", other, bool_)

    def __gt__(self, other: Operand) -> Scalar:
        return self._with("less", other, bool_, swapped=True)

    def __ge__(self, other: Operand) -> Scalar:
        return self._with("less_equal", other, bool_, swapped=True)

    def equals(self, other: Operand) -> Scalar:
        return self._with("equal", other, bool_)

    def __neg__(self) -> Scalar:
        return self.apply("neg")

    def __invert__(self) -> Scalar:
        return self.apply("not")

    def apply(self, op: str, *others: Operand, dtype: DType | None = None) -> Scalar:
        """The elementwise operation `op` of this and other operands."""
        rest = [o.expr if isinstance(o, Scalar) else const(o, self.expr.dtype) for o in others]
        return Scalar(expr(op, (self.expr, *rest), dtype or self.expr.dtype))

    def cast(self, dtype: DType) -> Scalar:
        return self.apply("cast", dtype=dtype)

    def bitcast(self, dtype: DType) -> Scalar:
        return self.apply("bitcast", dtype=dtype)


def select(condition: Scalar, yes: Operand, no: Operand) -> Scalar:
    """`yes` where the condition holds, else `no`; at least one of them is a Scalar."""
    dtype = next(x.expr.dtype for x in (yes, no) if isinstance(x, Scalar))
    a, b = (x.expr if isinstance(x, Scalar) else const(x, dtype) for x in (yes, no))
    return Scalar(expr("where", (condition.expr, a, b), dtype))


def polynomial(x: Scalar, *coefficients: float) -> Scalar:
    """`c0 + c1 * x + c2 * x**2 + ...` by Horner's rule."""
    *rest, last = coefficients
    total: Operand = last
    for c in reversed(rest):
        total = total * x + c if isinstance(total, Scalar) else x * total + c
    if not isinstance(total, Scalar):
        raise ValueError("a polynomial needs two coefficients or more")
    return total
