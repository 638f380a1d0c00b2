"""Rows of elementwise primitives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rows_common import EDGES, ERF, EXPONENTIAL, INF, INTS, NAN, POLYNOMIAL, POWER, QUOTIENT, ROOT, TINY, WORDS
from table import (
    EXACT,
    ROUNDED,
    Case,
    Row,
    Tolerance,
    away,
    bools,
    elementwise,
    f32s,
    integers,
    listed,
    normal,
    positive,
    wide,
)
from tensorgrad import ops
from tensorgrad.dtypes import f32, i32


def grid(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of the values."""
    a, b = np.meshgrid(values, values)
    return a.ravel(), b.ravel()


def sigmoid(x: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def unary(op: str, formula: Any, draw: Any, tolerance: Tolerance, special: np.ndarray | None = EDGES, **kw: Any) -> Row:
    fn = getattr(ops, op)
    edges = [] if special is None else [(special,)]
    return elementwise(op, fn, formula, (draw,), tolerance, grads=(0,), special=edges, smooth=kw.pop("smooth", True))


UNARY = [
    unary("neg", np.negative, normal, ROUNDED, np.concatenate([EDGES, TINY])),
    unary("abs", np.abs, away, ROUNDED, np.concatenate([EDGES, TINY]), smooth=False),
    unary("sign", np.sign, away, EXACT, smooth=False),
    unary("sqrt", np.sqrt, positive, ROOT),
    unary("rsqrt", lambda x: 1 / np.sqrt(x), positive, ROOT),
    unary("exp", np.exp, wide, EXPONENTIAL),
    unary("expm1", np.expm1, wide, Tolerance(3e-6, 3e-7, "exp's, and the rounding of 1")),
    unary("log", np.log, positive, POLYNOMIAL),
    unary("log1p", np.log1p, positive, POLYNOMIAL),
    unary("sin", np.sin, wide, POLYNOMIAL, EDGES[(np.abs(EDGES) < 1e3) | ~np.isfinite(EDGES)]),
    unary("cos", np.cos, wide, POLYNOMIAL, EDGES[(np.abs(EDGES) < 1e3) | ~np.isfinite(EDGES)]),
    unary("tanh", np.tanh, normal, POLYNOMIAL),
    unary("sigmoid", sigmoid, wide, EXPONENTIAL),
    unary("erf", ERF, normal, POLYNOMIAL),
    unary("erfc", np.vectorize(math.erfc, otypes=[np.float64]), normal, Tolerance(3e-6, 1.2e-38, "exp's")),
    unary("atan", np.arctan, wide, POLYNOMIAL),
    unary("floor", np.floor, wide, EXACT, smooth=False),
    unary("ceil", np.ceil, wide, EXACT, smooth=False),
    unary("round", np.round, wide, EXACT, np.concatenate([EDGES, f32s(0.5, 1.5, -2.5, 8388609)]), smooth=False),
    elementwise("isnan", ops.isnan, np.isnan, (normal,), EXACT, special=[(EDGES,)]),
    elementwise("isfinite", ops.isfinite, np.isfinite, (normal,), EXACT, special=[(EDGES,)]),
    elementwise("not", ops.bitwise_not, np.invert, (bools,), EXACT),
    elementwise(
        "not", ops.bitwise_not, np.invert, (integers(-99, 99),), EXACT, special=[(INTS,), (WORDS,)], label="i32"
    ),
    elementwise("neg", ops.neg, np.negative, (integers(-99, 99),), EXACT, special=[(INTS,), (WORDS,)], label="i32"),
    elementwise("abs", ops.abs, np.abs, (integers(-99, 99),), EXACT, special=[(INTS,)], label="i32"),
    elementwise("sign", ops.sign, np.sign, (integers(-2, 3),), EXACT, special=[(INTS,)], label="i32"),
    elementwise("stop_gradient", ops.stop_gradient, lambda x: x, (normal,), EXACT),
    elementwise(
        "bitcast",
        lambda x: ops.bitcast(x, i32),
        lambda x: x.astype("f4").view("i4"),
        (normal,),
        EXACT,
        special=[(EDGES[:-1],)],
    ),
    elementwise(
        "bitcast",
        lambda x: ops.bitcast(x, f32),
        lambda x: x.view("f4"),
        (integers(0, 2**30, "u4"),),
        EXACT,
        label="u32",
    ),
]


def binary(op: str, formula: Any, draws: Any, tolerance: Tolerance, special: Any = None, **kw: Any) -> Row:
    special = [grid(EDGES)] if special is None else special
    kw.setdefault("grads", (0, 1))
    return elementwise(op, kw.pop("fn", None) or getattr(ops, op), formula, draws, tolerance, special=special, **kw)


def whole(op: str, fn: Any, formula: Any, low: int = -20, high: int = 20, **kw: Any) -> Row:
    """A row of an operation on i32, with the edges of i32 and u32."""
    draws = kw.pop("draws", (integers(low, high), integers(low, high)))
    return elementwise(
        op, fn, formula, draws, EXACT, special=kw.pop("special", [grid(INTS), grid(WORDS)]), label="i32", **kw
    )


def no_zero(pairs: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    a, b = pairs
    kept = (b != 0) & ~((a == -(2**31)) & (b == -1))  # NumPy warns of them, or stops
    return a[kept], b[kept]


MODERATE = f32s(-7.5, -3, -1, -0.5, 0.5, 1, 2, 3.25, 10)
POW_EDGES = f32s(-INF, -2, -1, -0.5, -0.0, 0, 0.5, 1, 2, 3, INF, NAN)

BINARY = [
    binary(
        "add",
        np.add,
        (normal, normal),
        Tolerance(2.5e-7, 1e-7, "one rounding; cancelled digits are the operands'"),
        smooth=True,
    ),
    binary("sub", np.subtract, (normal, normal), Tolerance(2.5e-7, 1e-7, "one rounding"), smooth=True),
    binary("mul", np.multiply, (normal, normal), ROUNDED, smooth=True),
    binary("div", np.divide, (normal, away), QUOTIENT, [grid(EDGES[np.abs(EDGES) != 1e30])], smooth=True),
    binary("maximum", np.maximum, (normal, normal), EXACT),
    binary("minimum", np.minimum, (normal, normal), EXACT),
    binary("pow", np.power, (positive, normal), POWER, [grid(POW_EDGES)], smooth=True),
    binary(
        "pow",
        lambda x: x**3,
        (wide,),
        POWER,
        [(EDGES,)],
        smooth=True,
        grads=(0,),
        label="whole",
        fn=lambda x: ops.pow(x, ops.full((), 3.0)),
    ),
    binary("floor_divide", np.floor_divide, (wide, away), EXACT, [grid(MODERATE)]),
    binary(
        "remainder",
        np.remainder,
        (wide, away),
        Tolerance(0, 3e-6, "NumPy's own float64 remainder of float32 operands is no closer"),
        [grid(MODERATE)],
    ),
    binary("less", np.less, (integers(-3, 3, "f4"), integers(-3, 3, "f4")), EXACT, grads=()),
    binary("less_equal", np.less_equal, (integers(-3, 3, "f4"), integers(-3, 3, "f4")), EXACT, grads=()),
    binary("equal", np.equal, (integers(-3, 3, "f4"), integers(-3, 3, "f4")), EXACT, grads=()),
    elementwise("equal", ops.equal, np.equal, (bools, bools), EXACT, label="bool"),
    whole("add", ops.add, np.add),
    whole("sub", ops.sub, np.subtract),
    whole("mul", ops.mul, np.multiply),
    listed(
        "mul",
        EXACT,
        *(
            Case(
                f"i32 ** {n}",
                lambda x, n=n: ops.pow(x, n),
                (np.array([[-3, 2], [1, -1], [0, 7]], "i4"),),
                lambda x, n=n: x**n,
            )
            for n in (2, 3, 9, 11)
        ),
        Case("u32 ** 5", lambda x: ops.pow(x, 5), (WORDS,), lambda x: x**5),
        Case("bool ** 2", lambda x: ops.pow(x, 2), (np.array([True, False]),), lambda x: x.astype("i4")),
    ),
    listed(
        "pow",
        POWER,
        Case("inf", lambda x: ops.pow(x, INF), (f32s(0.5, 1, 2, 0),), lambda x: np.power(x, INF)),
        Case("nan", lambda x: ops.pow(x, NAN), (f32s(0.5, 1, 2, 0),), lambda x: np.power(x, NAN)),
        Case("9.0", lambda x: ops.pow(x, 9.0), (MODERATE.reshape(3, 3),), lambda x: x**9, (0,), True),
    ),
    whole("maximum", ops.maximum, np.maximum),
    whole("minimum", ops.minimum, np.minimum),
    whole("less", ops.less, np.less),
    whole("less_equal", ops.less_equal, np.less_equal),
    whole("equal", ops.equal, np.equal),
    whole(
        "floor_divide", ops.floor_divide, np.floor_divide, 1, 40, special=[no_zero(grid(INTS)), no_zero(grid(WORDS))]
    ),
    whole("remainder", ops.remainder, np.remainder, 1, 40, special=[no_zero(grid(INTS)), no_zero(grid(WORDS))]),
    whole("and", ops.bitwise_and, np.bitwise_and),
    whole("or", ops.bitwise_or, np.bitwise_or),
    whole("xor", ops.bitwise_xor, np.bitwise_xor),
    whole("shl", ops.left_shift, np.left_shift, 0, 32),
    whole("shr", ops.right_shift, np.right_shift, 0, 32),
    elementwise("and", ops.bitwise_and, np.logical_and, (bools, bools), EXACT, label="bool"),
    elementwise("or", ops.bitwise_or, np.logical_or, (bools, bools), EXACT, label="bool"),
    elementwise("xor", ops.bitwise_xor, np.logical_xor, (bools, bools), EXACT, label="bool"),
    elementwise(
        "where",
        ops.where,
        np.where,
        (bools, normal, normal),
        EXACT,
        grads=(1, 2),
        special=[(np.array([True, False, True, False]), f32s(NAN, NAN, 1, INF), f32s(2, 3, INF, NAN))],
    ),
    elementwise("where", ops.where, np.where, (bools, integers(-9, 9), integers(-9, 9)), EXACT, label="i32"),
    elementwise("where", ops.where, np.where, (bools, bools, bools), EXACT, label="bool"),
]
