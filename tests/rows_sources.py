"""Rows of casts, and of primitives that make tensors out of nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from rows_common import EDGES, INF, INTS, NAN, ORDER, RNG, WORDS
from table import EXACT, LONG, ROUNDED, Case, bools, elementwise, f32s, integers, listed, normal, wide
from tensorgrad import ops
from tensorgrad.dtypes import bool_, f32, i32, u32

# Casts and sources --------------------------------------------------------------------------


def saturated(low: int, high: int) -> Any:
    """Floats to integers: truncated, stopped at the ends, NaN to 0."""
    return lambda x: np.where(np.isnan(x), 0, np.clip(np.trunc(x), low, high)).astype(np.int64)


def to_i32(x: np.ndarray) -> np.ndarray:
    return saturated(-(2**31), 2**31 - 1)(x).astype(np.int32)


def to_u32(x: np.ndarray) -> np.ndarray:
    return saturated(0, 2**32 - 1)(x).astype(np.uint32)


LIMITS = np.concatenate([EDGES, f32s(2147483520, 2147483648, -2147483648, 4294967040, 4294967296, 0.99, -0.99)])

SOURCES = [
    elementwise("cast", lambda x: ops.cast(x, i32), to_i32, (wide,), EXACT, special=[(LIMITS,)], label="to i32"),
    elementwise("cast", lambda x: ops.cast(x, u32), to_u32, (wide,), EXACT, special=[(LIMITS,)], label="to u32"),
    elementwise(
        "cast",
        lambda x: ops.cast(x, bool_),
        lambda x: x != 0,
        (integers(-1, 2, "f4"),),
        EXACT,
        special=[(EDGES,)],
        label="to bool",
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
    elementwise(
        "cast", lambda x: ops.cast(x, u32), lambda x: x.astype(np.uint32), (integers(-9, 9),), EXACT, label="i32 to u32"
    ),
    listed(
        "const",
        EXACT,
        Case(
            "f32",
            lambda x: ops.full((3,), 0.1) + x * 0,
            (f32s(1, 2, 3),),
            lambda x: np.full(3, np.float64(np.float32(0.1))),
        ),
        Case("inf", lambda x: ops.full((2,), INF) * x, (f32s(5, -1),), lambda x: x * INF),
        Case(
            "negative zero",
            lambda x: ops.bitcast(ops.where(x > 0, x, -0.0), i32),
            (f32s(5, -1),),
            lambda x: np.where(x > 0, x, -0.0).astype("f4").view("i4"),
        ),
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
        Case(
            "f32",
            lambda x: ops.tensor(ORDER) * x,
            (normal(RNG, (4,)),),
            lambda x: x * ORDER.astype(np.float64),
            (0,),
            True,
        ),
        Case("alone", lambda x: ops.tensor(ORDER), (f32s(0),), lambda x: ORDER.astype(np.float64)),
        Case("bool", lambda x: ops.where(np.arange(4) % 2 == 0, x, 0.0), (ORDER,), lambda x: x * [1, 0, 1, 0], (0,)),
        Case("i32", lambda x: ops.tensor(INTS) + x, (INTS,), lambda x: x + INTS),
        Case(
            "signed zeros",
            lambda x: ops.bitcast(ops.tensor(f32s(0.0, -0.0)), i32),
            (f32s(1),),
            lambda x: f32s(0, -0.0).view("i4"),
        ),
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
        Case("scalar", lambda x: x * x, (np.array(3, np.float32),), lambda x: x * x, (0,), True),
    ),
    listed(
        "iota",
        EXACT,
        Case(
            "last",
            lambda x: ops.iota((2, 3, 4), 2) + x,
            (np.array(0, np.int32),),
            lambda x: np.indices((2, 3, 4))[2].astype("i4"),
        ),
        Case(
            "first",
            lambda x: ops.iota((5, 1, 2), 0),
            (np.array(0, np.int32),),
            lambda x: np.indices((5, 1, 2))[0].astype("i4"),
        ),
        Case(
            "negative axis",
            lambda x: ops.iota((2, 3), -2),
            (np.array(0, np.int32),),
            lambda x: np.indices((2, 3))[0].astype("i4"),
        ),
        Case("empty", lambda x: ops.iota((0, 3), 0), (np.array(0, np.int32),), lambda x: np.zeros((0, 3), "i4")),
        Case(
            "long", lambda x: ops.arange(LONG) * x, (np.array(3, np.int32),), lambda x: np.arange(LONG, dtype="i4") * 3
        ),
        Case(
            "range",
            lambda x: ops.arange(2, 12, 3) * x,
            (np.array(1, np.int32),),
            lambda x: np.arange(2, 12, 3, dtype="i4"),
        ),
        Case(
            "floats",
            lambda x: ops.arange(0, 1, 0.125) * x,
            (np.array(1, np.float32),),
            lambda x: np.arange(0, 1, 0.125),
            (0,),
        ),
        Case(
            "backwards",
            lambda x: ops.arange(5, 0, -2) + x,
            (np.array(0, np.int32),),
            lambda x: np.arange(5, 0, -2, dtype="i4"),
        ),
        Case(
            "viewed",
            lambda x: ops.iota((3, 4), 1).T[::2] + x,
            (np.array(0, np.int32),),
            lambda x: np.indices((3, 4))[1].T[::2].astype("i4"),
        ),
    ),
    listed(
        "random_bits",
        EXACT,
        Case("words", lambda x: ops.random_bits((3, 5)) ^ x, (np.array(0, np.uint32),)),
        Case("two", lambda x: ops.random_bits((4,)) ^ ops.random_bits((4,)) ^ x, (np.array(0, np.uint32),)),
        Case("empty", lambda x: ops.random_bits((0,)), (np.array(0, np.uint32),)),
        Case("scalar", lambda x: ops.random_bits(()), (np.array(0, np.uint32),)),
        Case("long", lambda x: ops.random_bits((LONG,)), (np.array(0, np.uint32),)),
        Case("uniform", lambda x: ops.uniform((3, 4), -1.0, 3.0) + x, (np.array(0, np.float32),)),
        Case("viewed", lambda x: ops.random_bits((6, 4)).T[1:, ::2] + x, (np.array(0, np.uint32),)),
        Case("integers", lambda x: ops.randint(-5, 6, (50,)) + x, (np.array(0, np.int32),)),
        Case("coins", lambda x: ops.bernoulli(x, (7, 3)), (f32s(0, 0.5, 1),)),
    ),
]
