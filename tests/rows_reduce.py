"""Rows of reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from rows_common import INF, INTS, NAN, RNG, SUMS, WORDS, X
from table import EXACT, LONG, ODD, Case, Row, Tolerance, distinct, f32s, integers, listed
from tensorgrad import ops


def _reductions(op: str, formula: Any, tolerance: Tolerance, smooth: bool) -> Row:
    fn = getattr(ops, op)
    x = distinct(RNG, ODD)
    empty = np.zeros((0, 3), np.float32)

    def many(shape: tuple[int, ...]) -> np.ndarray:
        """Of a long sum no digit is lost in any order: its terms are whole. A long product neither overflows."""
        if op == "prod":
            return RNG.choice([1, -1, 2, 0.5], shape, p=[0.6, 0.38, 0.01, 0.01]).astype(np.float32)
        return integers(-8, 9, "float32")(RNG, shape) if op == "sum" else distinct(RNG, shape)

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
        case("long", lambda x: x, 0, many((LONG,))),
        case("long row", lambda x: x.reshape(3, 21_846)[:, :-1], 1, many((65_538,))),
        case("many rows", lambda x: x.reshape(21_846, 3), 1, many((65_538,))),
        case("an empty result", lambda x: x, 1, empty),
        case("infinities", lambda x: x, 1, np.array([[INF, 1], [-INF, -INF], [-INF, INF]], np.float32), False),
        case("nan", lambda x: x, 1, np.array([[NAN, 1], [1, NAN], [-INF, NAN], [0, 2]], np.float32), False),
        case("i32", lambda x: x, 0, np.array([INTS, INTS[::-1]])),
        case("u32", lambda x: x, 1, np.array([WORDS, WORDS[::-1]])),
        case("bool", lambda x: x, 0, np.array([[True, False, False], [True, True, False]])),
    ]
    if op in ("sum", "prod"):
        cases.append(case("of nothing", lambda x: x, 0, empty))
    if op == "prod":
        zeros = f32s(0, 2, 3, 4, 0, 5, 0, 7, 1, 2, 3, 4, 0, 0, 0, 2, *range(-20, 20)).reshape(7, 8)
        cases += [case("zeros", lambda x: x, 1, zeros), case("zeros down a row", lambda x: x.reshape(2, 28), 1, zeros)]
    if op == "sum":
        exact = (np.array([[16_777_217, 1], [-3, 2]], "i4"), np.array([[1, 2], [3, 1]], "i4"))
        cases.append(Case("integer product", lambda a, b: a @ b, exact, lambda a, b: a @ b))
        cases.append(case("int_sum", lambda x: x.reshape(4, 1_000_000) * 5, None, np.ones(4_000_000, np.int32)))
    return listed(op, tolerance, *cases)


def _sum(x: np.ndarray, axis: Any) -> np.ndarray:
    return np.sum(x, axis=axis, dtype=np.int32 if x.dtype.kind == "b" else x.dtype)


def _prod(x: np.ndarray, axis: Any) -> np.ndarray:
    return np.prod(x, axis=axis, dtype=np.int32 if x.dtype.kind == "b" else x.dtype)


def _position(op: str, formula: Any) -> Row:
    fn = getattr(ops, op)
    ties = np.array([[1, 3, 3], [2, 2, 2], [NAN, 1, NAN], [-INF, -INF, 0], [INF, 1, INF]], np.float32)

    def case(name: str, axis: int | None, data: np.ndarray, view: Any = lambda x: x) -> Case:
        return Case(
            name, lambda x: fn(view(x), axis), (data,), lambda x: np.asarray(formula(view(x), axis=axis)).astype("i4")
        )

    return listed(
        op,
        EXACT,
        *(case(f"axis {a}", a, X) for a in (0, 1, -1, None)),
        case("ties", 1, ties),
        case("ties down", 0, ties),
        case("one", 0, f32s(4)),
        case("scalar", None, np.array(4, np.float32)),
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
    _reductions("prod", _prod, Tolerance(2e-5, 1e-37, "each factor may be rounded"), True),
    _reductions("max", np.max, EXACT, False),
    _reductions("min", np.min, EXACT, False),
    _position("argmax", np.argmax),
    _position("argmin", np.argmin),
]
