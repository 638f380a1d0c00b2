"""The rows of the table of primitives; see `table`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from table import (
    EXACT,
    LONG,
    ODD,
    ROUNDED,
    Case,
    Row,
    Tolerance,
    away,
    bools,
    distinct,
    elementwise,
    f32s,
    integers,
    listed,
    normal,
    positive,
    wide,
)
from tensorgrad import ops
from tensorgrad.dtypes import bool_, f32, i32, u32
from tensorgrad.ops import arena
from tensorgrad.ops.custom import custom_grad
from tensorgrad.tensor import Tensor

INF, NAN = math.inf, math.nan
RNG = np.random.default_rng(0)

EXPONENTIAL = Tolerance(3e-6, 1.2e-38, "WGSL allows exp 3 + 2|x| ULPs, and may flush subnormals")
POLYNOMIAL = Tolerance(1.5e-6, 3e-7, "our own polynomial, a few ULPs; near its zeros relative to 1")
ROOT = Tolerance(6e-7, 1.2e-38, "WGSL allows sqrt what a division and inverseSqrt (2 ULPs) give")
QUOTIENT = Tolerance(4e-7, 1.2e-38, "WGSL allows a division 2.5 ULPs")
POWER = Tolerance(1e-5, 1.2e-38, "the rounding of b * log2(a) grows with it")
SUMS = Tolerance(3e-6, 2e-5, "float32 sums in another order")

EDGES = f32s(-INF, -1e30, -89, -15, -1.5, -0.5, -1e-4, -0.0, 0.0, 1e-4, 0.5, 1, 2.5, 15, 88, 1e30, INF, NAN)
TINY = f32s(-1e-39, 1e-39, 1.2e-38, -1.5e-45, 3e38, -3e38)
INTS = np.array([0, 1, -1, 7, -7, 2**31 - 1, -(2**31), 65_536, -65_537], np.int32)
WORDS = np.array([0, 1, 7, 2**31, 2**32 - 1, 65_537], np.uint32)
ERF = np.vectorize(math.erf, otypes=[np.float64])


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
    unary("floor", np.floor, wide, EXACT, smooth=False),
    unary("ceil", np.ceil, wide, EXACT, smooth=False),
    unary("round", np.round, wide, EXACT, np.concatenate([EDGES, f32s(0.5, 1.5, -2.5, 8388609)]), smooth=False),
    elementwise("isnan", ops.isnan, np.isnan, (normal,), EXACT, special=[(EDGES,)]),
    elementwise("isfinite", ops.isfinite, np.isfinite, (normal,), EXACT, special=[(EDGES,)]),
    elementwise("not", ops.logical_not, np.logical_not, (bools,), EXACT),
    elementwise("not", ops.logical_not, np.invert, (integers(-99, 99),), EXACT, special=[(INTS,), (WORDS,)], label="i32"),
    elementwise("neg", ops.neg, np.negative, (integers(-99, 99),), EXACT, special=[(INTS,), (WORDS,)], label="i32"),
    elementwise("abs", ops.abs, np.abs, (integers(-99, 99),), EXACT, special=[(INTS,)], label="i32"),
    elementwise("sign", ops.sign, np.sign, (integers(-2, 3),), EXACT, special=[(INTS,)], label="i32"),
    elementwise("stop_gradient", ops.stop_gradient, lambda x: x, (normal,), EXACT),
    elementwise(
        "bitcast", lambda x: ops.bitcast(x, i32), lambda x: x.astype("f4").view("i4"), (normal,), EXACT, special=[(EDGES[:-1],)]
    ),
    elementwise("bitcast", lambda x: ops.bitcast(x, f32), lambda x: x.view("f4"), (integers(0, 2**30, "u4"),), EXACT, label="u32"),
]


def binary(op: str, formula: Any, draws: Any, tolerance: Tolerance, special: Any = None, **kw: Any) -> Row:
    special = [grid(EDGES)] if special is None else special
    kw.setdefault("grads", (0, 1))
    return elementwise(op, kw.pop("fn", None) or getattr(ops, op), formula, draws, tolerance, special=special, **kw)


def whole(op: str, fn: Any, formula: Any, low: int = -20, high: int = 20, **kw: Any) -> Row:
    """A row of an operation on i32, with the edges of i32 and u32."""
    draws = kw.pop("draws", (integers(low, high), integers(low, high)))
    return elementwise(op, fn, formula, draws, EXACT, special=kw.pop("special", [grid(INTS), grid(WORDS)]), label="i32", **kw)


def no_zero(pairs: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    a, b = pairs
    kept = (b != 0) & ~((a == -(2**31)) & (b == -1))  # NumPy warns of them, or stops
    return a[kept], b[kept]


MODERATE = f32s(-7.5, -3, -1, -0.5, 0.5, 1, 2, 3.25, 10)
POW_EDGES = f32s(-INF, -2, -1, -0.5, -0.0, 0, 0.5, 1, 2, 3, INF, NAN)

BINARY = [
    binary("add", np.add, (normal, normal), Tolerance(2.5e-7, 1e-7, "one rounding; cancelled digits are the operands'"), smooth=True),
    binary("sub", np.subtract, (normal, normal), Tolerance(2.5e-7, 1e-7, "one rounding"), smooth=True),
    binary("mul", np.multiply, (normal, normal), ROUNDED, smooth=True),
    binary("div", np.divide, (normal, away), QUOTIENT, [grid(EDGES[np.abs(EDGES) != 1e30])], smooth=True),
    binary("maximum", np.maximum, (normal, normal), EXACT),
    binary("minimum", np.minimum, (normal, normal), EXACT),
    binary("pow", np.power, (positive, normal), POWER, [grid(POW_EDGES)], smooth=True),
    binary(
        "pow", lambda x: x**3, (wide,), POWER, [(EDGES,)], smooth=True, grads=(0,), label="whole", fn=lambda x: ops.pow(x, ops.full((), 3.0))
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
            Case(f"i32 ** {n}", lambda x, n=n: ops.pow(x, n), (np.array([[-3, 2], [1, -1], [0, 7]], "i4"),), lambda x, n=n: x**n)
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

# Casts and sources --------------------------------------------------------------------------


def saturated(low: int, high: int) -> Any:
    """Floats to integers: truncated, stopped at the ends, NaN to 0."""
    return lambda x: np.where(np.isnan(x), 0, np.clip(np.trunc(x), low, high)).astype(np.int64)


def to_i32(x: np.ndarray) -> np.ndarray:
    return saturated(-(2**31), 2**31 - 1)(x).astype(np.int32)


def to_u32(x: np.ndarray) -> np.ndarray:
    return saturated(0, 2**32 - 1)(x).astype(np.uint32)


LIMITS = np.concatenate([EDGES, f32s(2147483520, 2147483648, -2147483648, 4294967040, 4294967296, 0.99, -0.99)])
ORDER = np.arange(12, dtype=np.float32).reshape(3, 4)

SOURCES = [
    elementwise("cast", lambda x: ops.cast(x, i32), to_i32, (wide,), EXACT, special=[(LIMITS,)], label="to i32"),
    elementwise("cast", lambda x: ops.cast(x, u32), to_u32, (wide,), EXACT, special=[(LIMITS,)], label="to u32"),
    elementwise(
        "cast", lambda x: ops.cast(x, bool_), lambda x: x != 0, (integers(-1, 2, "f4"),), EXACT, special=[(EDGES,)], label="to bool"
    ),
    elementwise("cast", lambda x: ops.cast(x, f32), lambda x: x.astype(np.float64), (bools,), EXACT, label="of bool"),
    elementwise(
        "cast",
        lambda x: ops.cast(x, f32),
        lambda x: x.astype(np.float64),
        (integers(-(2**31), 2**31),),
        ROUNDED,
        special=[(INTS,), (WORDS,)],
        label="of i32",
    ),
    elementwise("cast", lambda x: ops.cast(x, u32), lambda x: x.astype(np.uint32), (integers(-9, 9),), EXACT, label="i32 to u32"),
    listed(
        "const",
        EXACT,
        Case("f32", lambda x: ops.full((3,), 0.1) + x * 0, (f32s(1, 2, 3),), lambda x: np.full(3, np.float64(np.float32(0.1)))),
        Case("inf", lambda x: ops.full((2,), INF) * x, (f32s(5, -1),), lambda x: x * INF),
        Case("negative zero", lambda x: ops.bitcast(ops.where(x > 0, x, -0.0), i32), (f32s(5, -1),), lambda x: np.where(x > 0, x, -0.0).astype("f4").view("i4")),
        Case("nan", lambda x: ops.where(x > 0, x, NAN), (f32s(5, -1),), lambda x: np.where(x > 0, x, NAN)),
        Case("i32", lambda x: ops.full((), -(2**31), i32) + x, (INTS,), lambda x: x + np.int32(-(2**31))),
        Case("u32", lambda x: x ^ ops.full((), 2**32 - 1, u32), (WORDS,), lambda x: ~x),
        Case("bool", lambda x: x & ops.full((2, 2), True), (np.array([True, False]),), lambda x: np.array([x, x])),
        Case("alone", lambda x: ops.full((2, 3), 7, i32), (f32s(0),), lambda x: np.full((2, 3), 7, np.int32)),
        Case("of a product", lambda x: x * np.float32(2.5), (ORDER,), lambda x: x * 2.5, (0,), True),
    ),
    listed(
        "array",
        EXACT,
        Case("f32", lambda x: ops.tensor(ORDER) * x, (normal(RNG, (4,)),), lambda x: x * ORDER.astype(np.float64), (0,), True),
        Case("alone", lambda x: ops.tensor(ORDER), (f32s(0),), lambda x: ORDER.astype(np.float64)),
        Case("bool", lambda x: ops.where(np.arange(4) % 2 == 0, x, 0.0), (ORDER,), lambda x: x * [1, 0, 1, 0], (0,)),
        Case("i32", lambda x: ops.tensor(INTS) + x, (INTS,), lambda x: x + INTS),
        Case("signed zeros", lambda x: ops.bitcast(ops.tensor(f32s(0.0, -0.0)), i32), (f32s(1),), lambda x: f32s(0, -0.0).view("i4")),
        Case("edges", lambda x: ops.tensor(EDGES) + x, (f32s(0),), lambda x: EDGES.astype(np.float64) + 0),
        Case("empty", lambda x: ops.tensor(np.zeros((0, 3))) + x, (f32s(0, 1, 2),), lambda x: np.zeros((0, 3)), (0,)),
    ),
    listed(
        "leaf",
        EXACT,
        Case("returned", lambda x: x, (ORDER,), lambda x: x, (0,)),
        Case("unused", lambda x, y: y * 2.0, (ORDER, f32s(1, 2)), lambda x, y: y * 2, (0, 1)),
        Case("of no size", lambda x: x, (np.zeros((2, 0), np.float32),), lambda x: x, (0,)),
        Case("bool", lambda x: x, (np.array([[True], [False]]),), lambda x: x),
        Case("scalar", lambda x: x * x, (np.float32(3),), lambda x: x * x, (0,), True),
    ),
    listed(
        "iota",
        EXACT,
        Case("last", lambda x: ops.iota((2, 3, 4), 2) + x, (np.int32(0),), lambda x: np.indices((2, 3, 4))[2].astype("i4")),
        Case("first", lambda x: ops.iota((5, 1, 2), 0), (np.int32(0),), lambda x: np.indices((5, 1, 2))[0].astype("i4")),
        Case("negative axis", lambda x: ops.iota((2, 3), -2), (np.int32(0),), lambda x: np.indices((2, 3))[0].astype("i4")),
        Case("empty", lambda x: ops.iota((0, 3), 0), (np.int32(0),), lambda x: np.zeros((0, 3), "i4")),
        Case("long", lambda x: ops.arange(LONG) * x, (np.int32(3),), lambda x: np.arange(LONG, dtype="i4") * 3),
        Case("range", lambda x: ops.arange(2, 12, 3) * x, (np.int32(1),), lambda x: np.arange(2, 12, 3, dtype="i4")),
        Case("floats", lambda x: ops.arange(0, 1, 0.125) * x, (np.float32(1),), lambda x: np.arange(0, 1, 0.125), (0,)),
        Case("backwards", lambda x: ops.arange(5, 0, -2) + x, (np.int32(0),), lambda x: np.arange(5, 0, -2, dtype="i4")),
        Case("viewed", lambda x: ops.iota((3, 4), 1).T[::2] + x, (np.int32(0),), lambda x: np.indices((3, 4))[1].T[::2].astype("i4")),
    ),
    listed(
        "random_bits",
        EXACT,
        Case("words", lambda x: ops.random_bits((3, 5)) ^ x, (np.uint32(0),)),
        Case("two", lambda x: ops.random_bits((4,)) ^ ops.random_bits((4,)) ^ x, (np.uint32(0),)),
        Case("empty", lambda x: ops.random_bits((0,)), (np.uint32(0),)),
        Case("scalar", lambda x: ops.random_bits(()), (np.uint32(0),)),
        Case("long", lambda x: ops.random_bits((LONG,)), (np.uint32(0),)),
        Case("uniform", lambda x: ops.uniform((3, 4), -1.0, 3.0) + x, (np.float32(0),)),
        Case("viewed", lambda x: ops.random_bits((6, 4)).T[1:, ::2] + x, (np.uint32(0),)),
        Case("integers", lambda x: ops.randint(-5, 6, (50,)) + x, (np.int32(0),)),
        Case("coins", lambda x: ops.bernoulli(x, (7, 3)), (f32s(0, 0.5, 1),)),
    ),
]

# Views ---------------------------------------------------------------------------------------

X = normal(RNG, ODD)
SQUARE = normal(RNG, (4, 4))


def view(name: str, fn: Any, formula: Any = None, x: np.ndarray = X) -> Case:
    """A case of a view: differentiable, and composed with a product so that second derivatives are not 0."""
    return Case(name, fn, (x,), formula or fn, (0,), True, x.size > 1000)


LINE = normal(RNG, (LONG,))
EMPTY = np.zeros((2, 0, 3), np.float32)

VIEWS = [
    listed(
        "reshape",
        EXACT,
        view("split", lambda x: x.reshape(5, 3, 7)),
        view("flat", lambda x: x.reshape(-1)),
        view("to ones", lambda x: x.reshape(1, 105, 1)),
        view("scalar", lambda x: x.reshape(()), x=f32s(2)),
        view("of a scalar", lambda x: x.reshape(1, 1), x=np.float32(2)),
        view("empty", lambda x: x.reshape(0, 5), x=EMPTY),
        view("long", lambda x: x.reshape(65_537, 1), x=LINE),
        view("after permute", lambda x: x.transpose(2, 0, 1).reshape(21, 5)),
        view("after slice", lambda x: x[1:, ::2].reshape(6, 7).transpose(1, 0).reshape(-1)),
        view("digits", lambda x: x.reshape(7, 15).transpose(1, 0).reshape(3, 5, 7).transpose(2, 1, 0)),
    ),
    listed(
        "permute",
        EXACT,
        view("turn", lambda x: x.transpose(1, 2, 0)),
        view("negative", lambda x: x.permute(-1, 0, -2), lambda x: x.transpose(-1, 0, -2)),
        view("transpose", lambda x: x.T, x=SQUARE),
        view("twice", lambda x: x.T.transpose(1, 2, 0)),
        view("swapaxes", lambda x: x.swapaxes(0, -1)),
        view("empty", lambda x: x.transpose(2, 1, 0), x=EMPTY),
        view("long", lambda x: x.reshape(1, LONG).T, x=LINE),
        view("sliced", lambda x: x[:, 1:4, ::-3].transpose(2, 0, 1)),
    ),
    listed(
        "broadcast_to",
        EXACT,
        view("new axes", lambda x: x.broadcast_to(2, 3, 4), lambda x: np.broadcast_to(x, (2, 3, 4)), f32s(1, 2, 3, 4)),
        view("ones", lambda x: ops.broadcast_to(x[:, :1], 3, 5, 7), lambda x: np.broadcast_to(x[:, :1], ODD)),
        view("scalar", lambda x: x.broadcast_to(3, 2), lambda x: np.broadcast_to(x, (3, 2)), np.float32(2)),
        view("to none", lambda x: x.broadcast_to(0, 4), lambda x: np.broadcast_to(x, (0, 4)), f32s(1, 2, 3, 4)),
        Case("long", lambda x: x.broadcast_to(LONG), (f32s(3),), lambda x: np.broadcast_to(x, LONG), long=True),
        view("empty", lambda x: x.broadcast_to(4, 2, 0, 3), lambda x: np.broadcast_to(x, (4, 2, 0, 3)), EMPTY),
        view("of a transpose", lambda x: x.T.reshape(7, 5, 1, 3).broadcast_to(7, 5, 2, 3), lambda x: np.broadcast_to(x.T[:, :, None], (7, 5, 2, 3))),
    ),
    listed(
        "slice",
        EXACT,
        view("ranges", lambda x: x[1:, :-1, 2:6]),
        view("steps", lambda x: x[::2, 1::3, ::4]),
        view("backwards", lambda x: x[::-1, 3:0:-2, -1::-3]),
        view("integers", lambda x: x[-1, 2]),
        view("all integers", lambda x: x[1, 2, -3], lambda x: np.asarray(x[1, 2, -3])),
        view("new axes", lambda x: x[None, 0, ..., None, 1]),
        view("nothing", lambda x: x[2:2, :, 5:1]),
        view("beyond", lambda x: x[:100, -100:2]),
        view("empty", lambda x: x[:, :, 1:], x=EMPTY),
        view("long", lambda x: x[65_536:0:-3], x=LINE),
        view("of a transpose", lambda x: x.transpose(2, 0, 1)[1::2, :, -2:]),
        view("of a slice", lambda x: x[1:][:, 1:][..., ::-2][0, 1:3]),
    ),
    listed(
        "pad",
        EXACT,
        view("around", lambda x: ops.pad(x, ((1, 0), (0, 2), (3, 1)), 0.5), lambda x: np.pad(x, ((1, 0), (0, 2), (3, 1)), constant_values=0.5)),
        view("one number", lambda x: ops.pad(x, 2), lambda x: np.pad(x, 2)),
        view("infinity", lambda x: ops.exp(ops.pad(x, 1, -INF)), lambda x: np.exp(np.pad(x, 1, constant_values=-INF)), f32s(0)),
        view("empty", lambda x: ops.pad(x, 1, 2.0), lambda x: np.pad(x, 1, constant_values=2.0), EMPTY),
        view("an empty sum", lambda x: ops.pad(ops.sum(x, 2), ((0, 0), (1, 2)), 2.0), lambda x: np.full((2, 3), 2.0), EMPTY),
        view("long", lambda x: ops.pad(x, ((3, 4),)), lambda x: np.pad(x, (3, 4)), LINE),
        view("twice", lambda x: ops.pad(ops.pad(x, 1, 1.0).T, 1, 2.0), lambda x: np.pad(np.pad(x, 1, constant_values=1).T, 1, constant_values=2)),
        view("of a slice", lambda x: ops.pad(x[::-2, 1:3], 1), lambda x: np.pad(x[::-2, 1:3], 1)),
        view("then reshaped", lambda x: ops.pad(x, ((1, 1), (0, 1), (0, 0))).reshape(6, 35)[1:].T, lambda x: np.pad(x, ((1, 1), (0, 1), (0, 0))).reshape(6, 35)[1:].T),
        Case("i32", lambda x: ops.pad(x, (1, 2), -7), (INTS,), lambda x: np.pad(x, (1, 2), constant_values=-7)),
        Case("bool", lambda x: ops.pad(x, 1, True), (np.array([[False, True]]),), lambda x: np.pad(x, 1, constant_values=True)),
    ),
    listed(
        "concat",
        EXACT,
        Case("first", lambda a, b: ops.concat([a, b]), (X, X[:1] + 1), lambda a, b: np.concatenate([a, b]), (0, 1), True),
        Case("middle", lambda a, b: ops.concat([a, b, a], 1), (X, X[:, :2]), lambda a, b: np.concatenate([a, b, a], 1), (0, 1), True),
        Case("last", lambda a, b: ops.concat([b, a], -1), (X, X[..., :1]), lambda a, b: np.concatenate([b, a], -1), (0, 1), True),
        Case("an empty part", lambda a, b: ops.concat([b, a, b, a]), (X, X[:0]), lambda a, b: np.concatenate([a, a]), (0, 1)),
        Case("all empty", lambda a: ops.concat([a, a * 2], 0), (EMPTY,), lambda a: np.zeros((4, 0, 3)), (0,)),
        Case("views", lambda a: ops.concat([a.T, a[::-1], a * a], 1), (SQUARE,), lambda a: np.concatenate([a.T, a[::-1], a * a], 1), (0,), True),
        Case("twelve", lambda *xs: ops.concat(xs), tuple(f32s(n, n + 0.5) for n in range(12)), lambda *xs: np.concatenate(xs), (0, 11)),
        Case("long", lambda a: ops.concat([a, a * 2, a]), (LINE,), lambda a: np.concatenate([a, a * 2, a]), (0,), False, True),
        Case("i32", lambda a: ops.concat([a, a + 1]), (INTS,), lambda a: np.concatenate([a, a + 1])),
        Case("stack", lambda a, b: ops.stack([a, b], 1), (X, X * 2), lambda a, b: np.stack([a, b], 1), (0, 1)),
        Case("joined parts", lambda a: ops.concat(ops.split(a, 2, 2)[::-1], 2), (X,), lambda a: np.concatenate([a[..., 6:], a[..., 4:6], a[..., 2:4], a[..., :2]], 2), (0,)),
    ),
]


def _reductions(op: str, formula: Any, tolerance: Tolerance, smooth: bool) -> Row:
    fn = getattr(ops, op)
    x = distinct(RNG, ODD)
    empty = np.zeros((0, 3), np.float32)

    def case(name: str, view: Any, axis: Any, data: np.ndarray = x, differentiable: bool = True) -> Case:
        axes = axis if axis is not None else tuple(range(view(data).ndim))
        return Case(
            name,
            lambda x: fn(view(x), axis),
            (data,),
            lambda x: np.asarray(formula(view(x), axis=axes)),
            (0,) if differentiable and data.dtype.kind == "f" else (),
            smooth,
            data.size > 1000,
        )

    cases = [
        case("all", lambda x: x, None),
        *(case(f"axis {a}", lambda x: x, a) for a in (0, 1, 2, -1, (0, 2), (-1, 1))),
        case("of one", lambda x: x, 0, f32s(3)),
        case("size one", lambda x: x[:, :1], 1),
        case("permuted", lambda x: x.transpose(2, 0, 1), (0, 1)),
        case("sliced", lambda x: x[::-2, 1:4, ::3], (1, 2)),
        case("of a product", lambda x: x[:, :, :5] * x[:, :, 2:], 2),
        case("long", lambda x: x, 0, distinct(RNG, (LONG,))),
        case("long row", lambda x: x.reshape(3, 21_846)[:, :-1], 1, distinct(RNG, (65_538,))),
        case("many rows", lambda x: x.reshape(21_846, 3), 1, distinct(RNG, (65_538,))),
        case("an empty result", lambda x: x, 1, empty),
        case("infinities", lambda x: x, 1, np.array([[INF, 1], [-INF, -INF], [-INF, INF]], np.float32), False),
        case("nan", lambda x: x, 1, np.array([[NAN, 1], [1, NAN], [-INF, NAN], [0, 2]], np.float32), False),
        case("i32", lambda x: x, 0, np.array([INTS, INTS[::-1]])),
        case("u32", lambda x: x, 1, np.array([WORDS, WORDS[::-1]])),
        case("bool", lambda x: x, 0, np.array([[True, False, False], [True, True, False]])),
    ]
    if op == "sum":
        cases.append(case("of nothing", lambda x: x, 0, empty))
        exact = (np.array([[16_777_217, 1], [-3, 2]], "i4"), np.array([[1, 2], [3, 1]], "i4"))
        cases.append(Case("integer product", lambda a, b: a @ b, exact, lambda a, b: a @ b))
        cases.append(case("int_sum", lambda x: x.reshape(4, 1_000_000) * 5, None, np.ones(4_000_000, np.int32)))
    return listed(op, tolerance, *cases)


def _sum(x: np.ndarray, axis: Any) -> np.ndarray:
    return np.sum(x, axis=axis, dtype=np.int32 if x.dtype.kind == "b" else x.dtype)


def _position(op: str, formula: Any) -> Row:
    fn = getattr(ops, op)
    ties = np.array([[1, 3, 3], [2, 2, 2], [NAN, 1, NAN], [-INF, -INF, 0], [INF, 1, INF]], np.float32)

    def case(name: str, axis: int | None, data: np.ndarray, view: Any = lambda x: x) -> Case:
        return Case(name, lambda x: fn(view(x), axis), (data,), lambda x: np.asarray(formula(view(x), axis=axis)).astype("i4"))

    return listed(
        op,
        EXACT,
        *(case(f"axis {a}", a, X) for a in (0, 1, -1, None)),
        case("ties", 1, ties),
        case("ties down", 0, ties),
        case("one", 0, f32s(4)),
        case("scalar", None, np.float32(4)),
        case("i32", 1, np.array([INTS, INTS[::-1]])),
        case("u32", 1, np.array([WORDS, WORDS[::-1]])),
        case("all the lowest", 0, np.full(4, -(2**31), np.int32)),
        case("long", 0, distinct(RNG, (LONG,))),
        case("permuted", 1, X, lambda x: x.transpose(1, 2, 0)),
        case("sliced", 0, X, lambda x: x[:, ::-2, 2]),
        case("bool", 0, np.array([[False, True], [True, True]])),
    )


REDUCE = [
    _reductions("sum", _sum, SUMS, True),
    _reductions("max", np.max, EXACT, False),
    _reductions("min", np.min, EXACT, False),
    _position("argmax", np.argmax),
    _position("argmin", np.argmin),
]

# Arenas -----------------------------------------------------------------------------------------


def packed(*xs: np.ndarray) -> np.ndarray:
    """The arrays in a line, each at a multiple of 64 elements (256 bytes), with zeros between."""
    parts = [np.concatenate([x.ravel(), np.zeros(-x.size % 64, x.dtype)]) for x in xs]
    return np.concatenate(parts)


def tripled(value: Tensor, x: Tensor) -> Tensor:
    """The value, with a gradient that only a rule of its own can give."""
    return custom_grad(value, lambda g, out, x: (g * 0.0 + 3.0,), x)


ARENAS = [
    listed(
        "place",
        SUMS,
        Case("alone", lambda x: arena.place(x * 2.0, "g"), (ORDER,), lambda x: x * 2, (0,), True),
        Case("of a view", lambda x: arena.place(x.T, "h")[1:] * 2.0, (ORDER,), lambda x: x.T[1:] * 2, (0,), True),
        Case("of a sum", lambda x: arena.place(ops.sum(x, 1), "i"), (ORDER,), lambda x: x.sum(1), (0,)),
    ),
    listed(
        "custom_grad",
        EXACT,
        Case("of a square", lambda x: tripled(x * x, x) + x, (ORDER,), lambda x: x * x + x),
        Case("of a view", lambda x: tripled(x.T[1:], x), (ORDER,), lambda x: x.T[1:]),
        Case("that is right", lambda x: custom_grad(x * x, lambda g, out, x: (g * x * 2.0,), x), (ORDER,), lambda x: x * x, (0,), True),
    ),
    listed(
        "pack",
        SUMS,
        Case("leaves", lambda a, b: arena.pack([a, b], "p") + 1.0, (SQUARE, f32s(3)), lambda a, b: packed(a, b) + 1),
        Case(
            "placed",
            lambda a, b: arena.pack([arena.place(a * b, "u"), arena.place(b.sum(0), "v")], "q")[60:70] * 2.0,
            (SQUARE, SQUARE),
            lambda a, b: packed(a * b, b.sum(0))[60:70] * 2,
        ),
        Case("by rows", lambda a: arena.pack([a], "r").reshape(8, 8) * 2.0, (SQUARE,), lambda a: packed(a).reshape(8, 8) * 2),
    ),
]

# Indexing and products --------------------------------------------------------------------------

AT = np.array([[2, 0, 2], [1, 1, 0]], np.int32)
MANY = np.random.default_rng(5).integers(0, 50, 3000).astype(np.int32)


def take(name: str, axis: int, x: np.ndarray = X, at: np.ndarray = AT, view: Any = lambda x: x) -> Case:
    return Case(
        name,
        lambda x, i: ops.take(view(x), i, axis),
        (x, at),
        lambda x, i: np.take(view(x), i, axis),
        (0,) if x.dtype.kind == "f" else (),
        True,
        x.size > 1000 or at.size > 1000,
    )


def scattered(name: str, updates: np.ndarray, at: np.ndarray, axis: int, size: int) -> Case:
    def formula(u: np.ndarray, i: np.ndarray) -> np.ndarray:
        flat = u.reshape(*u.shape[:axis], -1, *u.shape[axis + i.ndim :])
        out = np.zeros((size, *np.moveaxis(flat, axis, 0).shape[1:]), u.dtype)
        for place, part in zip(i.ravel().tolist(), np.moveaxis(flat, axis, 0), strict=True):
            if 0 <= place < size:
                out[place] += part
        return np.moveaxis(out, 0, axis)

    fn = lambda u, i: ops.scatter_add(u, i, axis, size)  # noqa: E731  # one expression, named for what follows
    return Case(name, fn, (updates, at), formula, (0,) if updates.dtype.kind == "f" else (), True, updates.size > 1000)


def product(name: str, a: tuple[int, ...], b: tuple[int, ...], fn: Any = None, view: Any = lambda a, b: a @ b) -> Case:
    rng = np.random.default_rng([*a, 99, *b])
    inputs = (normal(rng, a), normal(rng, b))
    return Case(name, fn or view, inputs, lambda a, b: np.asarray(view(a, b)), (0, 1), True, max(inputs[0].size, inputs[1].size) > 1000)


INDEXING = [
    listed(
        "gather",
        SUMS,
        *(take(f"axis {a}", a) for a in (0, 1, 2, -1)),
        take("scalar index", 1, at=np.array(2, np.int32)),
        take("u32", 0, at=AT.astype("u4")),
        take("no indices", 0, at=AT[:0]),
        take("of i32", 0, x=np.arange(6, dtype=np.int32).reshape(3, 2)),
        take("of bools", 0, x=np.array([[True], [False], [True]])),
        take("permuted", 0, view=lambda x: x.transpose(2, 0, 1)),
        take("sliced", 1, view=lambda x: x[::-1, 1:4]),
        take("computed", 0, view=lambda x: x * x),
        take("long", 0, x=normal(RNG, (50, 7)), at=MANY),
        take("far", 0, x=LINE, at=np.array([65_536, 0, 65_535], np.int32)),
        Case("indices computed", lambda x, i: ops.take(x, (i + 1) % 3, 0), (X, AT), lambda x, i: x[(i + 1) % 3], (0,), True),
        Case("outside", lambda x, i: ops.take(x, i, 0), (f32s(1, 2), np.array([0, 2, -1, 2**31 - 1, -(2**31), 1], "i4")), lambda x, i: np.array([1, NAN, NAN, NAN, NAN, 2])),
        Case("outside i32", lambda x, i: ops.take(x, i, 0), (INTS, np.array([9, -1, 3], "i4")), lambda x, i: np.array([0, 0, 7], "i4")),
        Case("from nothing", lambda x, i: ops.take(x, i, 1), (EMPTY, AT), lambda x, i: np.full((2, 2, 3, 3), NAN)),
        Case("known indices", lambda x: x[[2, -1, 0]] + ops.take(x, np.array([-3]), 0), (X,), lambda x: x[[2, -1, 0]] + x[[-3]], (0,), True),
        Case("negative in brackets", lambda x, i: x[i, 1:], (X, np.array([-1, 1, -3], "i4")), lambda x, i: x[i, 1:], (0,), True),
        Case("a tensor as index", lambda x, i: x[:, i], (X, AT), lambda x, i: x[:, i], (0,), True),
        take("rows", 0, x=SQUARE, at=np.array([3, 3, 0], "i4")),
    ),
    listed(
        "scatter_add",
        SUMS,
        scattered("rows", normal(RNG, (2, 3, 4)), AT, 0, 3),
        scattered("middle", normal(RNG, (2, 6, 3)), np.array([0, 4, 4, 1, 0, 4], "i4"), 1, 5),
        scattered("last", normal(RNG, (4, 2, 3)), AT, 1, 4),
        scattered("scalar index", normal(RNG, (4, 3)), np.array(2, np.int32), 0, 3),
        scattered("outside", normal(RNG, (4,)), np.array([-1, 0, 3, 7], "i4"), 0, 3),
        scattered("nothing", np.zeros((0, 3), np.float32), np.zeros(0, np.int32), 0, 2),
        scattered("to nothing", normal(RNG, (3,)), np.array([0, 1, 2], "i4"), 0, 0),
        scattered("i32", np.arange(6, dtype=np.int32), np.array([1, 1, 0, 1, 2, 2], "i4"), 0, 3),
        scattered("u32 indices", normal(RNG, (4,)), np.array([2, 0, 2, 2], "u4"), 0, 3),
        scattered("long", normal(RNG, (3000, 5)), MANY, 0, 50),
        Case("views", lambda u, i: ops.scatter_add(u.T[::-1] * 2.0, i[::-1], 0, 3), (SQUARE, np.array([0, 2, 2, 1], "i4")), lambda u, i: np.eye(3)[i[::-1]].T @ (u.T[::-1] * 2), (0,), True),
    ),
    listed(
        "matmul",
        SUMS,
        product("odd", (3, 5), (5, 7)),
        product("vectors", (5,), (5,)),
        product("vector left", (5,), (5, 3)),
        product("vector right", (2, 3, 5), (5,)),
        product("batched", (4, 3, 5), (4, 5, 2)),
        product("batched right", (3, 5), (4, 5, 2)),
        product("broadcast batch", (2, 1, 3, 5), (4, 5, 2)),
        product("one", (1, 1), (1, 1)),
        product("no inner", (2, 0), (0, 3)),
        product("no rows", (0, 4), (4, 3)),
        product("no batch", (0, 2, 4), (0, 4, 3)),
        product("permuted", (5, 3), (7, 5), view=lambda a, b: a.T @ b.T),
        product("permuted right", (3, 5), (7, 5), view=lambda a, b: a @ b.T),
        product("permuted left", (5, 3), (5, 7), view=lambda a, b: a.T @ b),
        product("sliced", (6, 11), (4, 5, 4), view=lambda a, b: a[::2, 1::2] @ b[1, :, ::-1]),
        product("heads", (3, 4, 6), (3, 5, 6), view=lambda a, b: a.reshape(3, 4, 2, 3).transpose(0, 2, 1, 3) @ b.reshape(3, 5, 2, 3).transpose(0, 2, 3, 1)),
        product("broadcast operand", (1, 5), (5, 1), fn=lambda a, b: a.broadcast_to(4, 5) @ b.broadcast_to(5, 3), view=lambda a, b: np.broadcast_to(a, (4, 5)) @ np.broadcast_to(b, (5, 3))),
        product("padded", (3, 4), (5, 2), fn=lambda a, b: ops.pad(a, ((0, 0), (1, 0))) @ b, view=lambda a, b: np.pad(a, ((0, 0), (1, 0))) @ b),
        product("computed", (3, 4), (4, 2), view=lambda a, b: (a * a) @ (b + 1.0)),
        product("square of itself", (4, 4), (4, 4), view=lambda a, b: a @ a.T @ b),
        product("blocked", (65, 67), (67, 66)),
        product("deep", (2, 1500), (1500, 3)),
        Case("nan", lambda a, b: a @ b, (np.array([[NAN, 1], [2, 3]], "f4"), np.array([[0, 1], [INF, 1]], "f4")), lambda a, b: a @ b),
    ),
]

TABLE: tuple[Row, ...] = (*UNARY, *BINARY, *SOURCES, *VIEWS, *ARENAS, *REDUCE, *INDEXING)
