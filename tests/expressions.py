"""Small expressions that several tests build."""

from __future__ import annotations

from tensorgrad.dtypes import DType, f32
from tensorgrad.graph import Value
from tensorgrad.lower.expr import (
    Expr,
    expr,
    load,
    reduce,
)
from tensorgrad.lower.index import Var, of_var

X, Y, OUT = Value(0), Value(1), Value(2)
I, K = Var("i0", 6), Var("k0", 100)
ROW = of_var(I) * 100 + of_var(K)


def op(name: str, *args: Expr, dtype: DType | None = None) -> Expr:
    return expr(name, args, dtype or args[0].dtype)


def softmax() -> Expr:
    """The logarithm of the sum of exponentials of each row."""
    x = load(X, ROW, f32)
    top = reduce("max", K, x)
    return op("add", op("log", reduce("sum", K, op("exp", op("sub", x, top)))), top)


def named(value: Value) -> str:
    return "xyz"[value.node]
