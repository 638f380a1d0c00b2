"""Rows of scans, and of order along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rows_common import EMPTY, INF, INTS, NAN, RNG, SUMS, WORDS, X
from table import EXACT, LONG, Case, Row, Tolerance, distinct, f32s, integers, listed, normal
from tensorgrad import ops
from tensorgrad.ops.sorting import unsort_p
from tensorgrad.trace import bind

WHOLE = integers(-8, 9, "float32")(RNG, (2, 40_000))
"""Of a long sum no digit is lost in any order: its terms are whole."""
SIGNS = np.where(normal(RNG, WHOLE.shape) < 0, np.float32(-1), np.float32(1))
SPOILT = np.array([[1, INF, -INF, 2], [NAN, 1, -INF, 0], [-INF, -INF, 3, NAN], [0, -0.0, -INF, INF]], np.float32)
BOOLS = np.array([[False, True, True], [True, False, True]])


def _scans(op: str, formula: Callable[..., Any], tolerance: Tolerance, long: np.ndarray, smooth: bool) -> Row:
    found = getattr(ops, op)

    def fn(x: Any, axis: int) -> Any:
        out = found(x, axis)
        return out.values if op in ("cummax", "cummin") else out

    def case(name: str, axis: int, x: np.ndarray = X, view: Any = lambda x: x, grads: bool = True) -> Case:
        whole = np.int32 if x.dtype.kind == "b" else None
        return Case(
            name,
            lambda x: fn(view(x), axis),
            (x,),
            lambda x: formula(view(x if whole is None else x.astype(whole)), axis=axis),
            (0,) if grads and x.dtype.kind == "f" else (),
            smooth,
            x.size > 1000,
        )

    cases = [
        *(case(f"axis {a}", a) for a in (0, 1, 2, -1)),
        case("one", 0, f32s(3)),
        case("empty", 1, EMPTY),
        case("no rows", 2, EMPTY),
        case("permuted", 1, X, lambda x: x.transpose(2, 0, 1)),
        case("sliced", 0, X, lambda x: x[::-1, 1:4, ::3]),
        case("of a product", 2, X, lambda x: x[:, :, :5] * x[:, :, 2:]),
        case("i32", 1, np.array([INTS, INTS[::-1]])),
        case("u32", 0, np.array([WORDS, WORDS[::-1]])),
        *(case(f"a row of {n}", 1, normal(RNG, (2, n)) * np.float32(0.2) + 1, grads=n < 300) for n in (255, 256, 257)),
        case("long", 0, long[0]),
        case("long rows", 1, long),
        case("many rows", 0, long[:, :9000].reshape(3, 6000), grads=False),
        case("special", 1, SPOILT, grads=False),
    ]
    if op != "cummax" and op != "cummin":
        cases.append(case("bool", 0, BOOLS))
    return listed(op, tolerance, *cases)


def _sum(x: np.ndarray, axis: int) -> np.ndarray:
    return np.cumsum(x, axis, dtype=x.dtype)


def _product(x: np.ndarray, axis: int) -> np.ndarray:
    return np.cumprod(x, axis, dtype=x.dtype)


PRODUCTS = Tolerance(4e-5, 1e-37, "each product is rounded, up to 257 times in a row here")


def recurrence(a: Any, b: Any, axis: int, reverse: bool = False) -> Any:
    """`h[t] = a[t] * h[t-1] + b[t]`, step by step."""
    a, b = (np.moveaxis(x, axis, 0)[:: -1 if reverse else 1] for x in np.broadcast_arrays(a, b))
    out = np.array(b)
    for t in range(1, len(out)):
        out[t] += a[t] * out[t - 1]
    return np.moveaxis(out[:: -1 if reverse else 1], 0, axis)


def _recurrences() -> Row:
    def case(name: str, a: np.ndarray, b: np.ndarray, axis: int = -1, reverse: bool = False) -> Case:
        floats = a.dtype.kind == "f" and a.size < 1000
        return Case(
            name,
            lambda a, b: ops.linear_scan(a, b, axis, reverse),
            (a, b),
            lambda a, b: recurrence(a, b, axis, reverse),
            (0, 1) if floats else (),
            True,
            b.size > 1000,
        )

    y = normal(RNG, X.shape)
    decay = np.float32(0.9) * np.tanh(normal(RNG, (2, 20_000)))
    return listed(
        "linear_scan",
        SUMS,
        *(case(f"axis {a}{' reverse' if r else ''}", X, y, a, r) for a in (0, 1, -1) for r in (False, True)),
        case("scalar", np.array(0.5, "f4"), y, 1),
        case("outer", normal(RNG, (5, 1)), normal(RNG, (4,)), 0),
        case("one", f32s(NAN), f32s(2)),
        case("first without effect", f32s(INF, 2, 0, 1), f32s(1, 2, 3, 4)),
        case("empty", EMPTY, EMPTY, 1),
        case("i32", np.array([3, -1, 2**20, 5, 2], "i4"), np.array([1, 7, 2**13, 1, 4], "i4")),
        case("long", decay, normal(RNG, decay.shape)),
        case("long reverse", decay, normal(RNG, decay.shape), 1, True),
        case("many rows", decay[:, :3000], normal(RNG, (2, 3000)), 0),
    )


# Order ----------------------------------------------------------------------------------------


def ordered(x: np.ndarray, axis: int = -1, descending: bool = False) -> np.ndarray:
    """The positions of the elements in order: equal ones as they stand, NaN as the largest."""
    if descending:
        return x.shape[axis] - 1 - np.flip(ordered(np.flip(x, axis), axis), axis)
    return np.argsort(x, axis, kind="stable").astype(np.int32)


TIES = np.round(normal(RNG, (3, 5, 7)) * 2)
LONG_TIES = np.round(normal(RNG, (LONG,)) * 100)
EQUALS = f32s(0.0, -0.0, 1, -0.0, 0.0, -1, 0.0, NAN, INF, NAN, -INF, INF, 1e-45, -1e-45)


def _orders() -> Row:
    def case(name: str, x: np.ndarray, axis: int = -1, descending: bool = False, view: Any = lambda x: x) -> Case:
        return Case(
            name,
            lambda x: ops.argsort(view(x), axis, descending),
            (x,),
            lambda x: ordered(view(x), axis, descending),
            (),
            False,
            x.size > 1000,
        )

    return listed(
        "sort",
        EXACT,
        *(case(f"axis {a}{' down' if d else ''}", TIES, a, d) for a in (0, 1, -1) for d in (False, True)),
        case("one", f32s(3)),
        case("empty", EMPTY, 1),
        case("no rows", EMPTY, 2),
        case("permuted", TIES, 0, False, lambda x: x.transpose(1, 2, 0)),
        case("sliced", TIES, 1, True, lambda x: x[::2, ::-1, 1:5]),
        case("computed", TIES, 2, False, lambda x: x * x),
        *(case(f"special{' down' if d else ''}", EQUALS, 0, d) for d in (False, True)),
        *(case(f"i32{' down' if d else ''}", np.array([INTS, INTS[::-1]]), 1, d) for d in (False, True)),
        *(case(f"u32{' down' if d else ''}", np.array([WORDS, WORDS[::-1]]), 1, d) for d in (False, True)),
        *(case(f"bool{' down' if d else ''}", np.array([BOOLS[0], BOOLS[1]]), 1, d) for d in (False, True)),
        *(case(f"a row of {n}", np.round(normal(RNG, (2, n)) * 9), 1, n % 2 == 0) for n in (255, 256, 257, 1024, 1025)),
        case("long", LONG_TIES),
        case("long down", LONG_TIES, 0, True),
        case("many rows", np.round(normal(RNG, (700, 9)) * 3)),
    )


def _values() -> Row:
    def case(name: str, x: np.ndarray, axis: int = -1, descending: bool = False, k: int | None = None) -> Case:
        def fn(x: Any) -> Any:
            found = ops.sort(x, axis, descending) if k is None else ops.topk(x, k, axis, descending)
            return found.values

        def formula(x: Any) -> Any:
            out = np.take_along_axis(x, ordered(x, axis, descending), axis)
            return out if k is None else np.take(out, np.arange(k), axis)

        floats = x.dtype.kind == "f" and np.isfinite(x).all()
        return Case(name, fn, (x,), formula, (0,) if floats else (), True, x.size > 1000)

    y = distinct(RNG, (3, 5, 7))
    return listed(
        "gather",
        EXACT,
        *(case(f"axis {a}", y, a, a == 1) for a in (0, 1, -1)),
        case("special", EQUALS),
        case("i32", np.array([INTS, INTS[::-1]]), 1, True),
        case("bool", BOOLS, 1),
        case("empty", EMPTY, 1),
        *(case(f"first {k} of axis {a}", y, a, a > 0, k) for k, a in ((2, 0), (0, 1), (3, 2))),
        case("first of a long row", distinct(RNG, (LONG,)), 0, True, 5),
        case("half of a long row", distinct(RNG, (2, 1500)), 1, False, 700),
        case("long", distinct(RNG, (2, 3000)), 1),
    )


def _put_back() -> Row:
    def undone(x: Any, axis: int) -> Any:
        order = ops.argsort(x, axis).swapaxes(axis, -1)
        return bind(unsort_p, x.swapaxes(axis, -1) * 2.0, order).swapaxes(axis, -1)

    def formula(x: Any, axis: int) -> Any:
        out = np.empty_like(x)
        np.put_along_axis(out, ordered(x, axis), x * 2, axis)
        return out

    def case(name: str, x: np.ndarray, axis: int = -1) -> Case:
        return Case(name, lambda x: undone(x, axis), (x,), lambda x: formula(x, axis), (0,), True, x.size > 1000)

    y = distinct(RNG, (3, 5, 7))
    return listed(
        "unsort",
        EXACT,
        *(case(f"axis {a}", y, a) for a in (0, 1, -1)),
        case("one", f32s(3)),
        case("empty", EMPTY, 1),
        case("long", distinct(RNG, (2, 3000)), 1),
    )


def _places() -> Row:
    def case(name: str, line: np.ndarray, sought: np.ndarray, right: bool = False, view: Any = lambda x: x) -> Case:
        def formula(line: Any, sought: Any) -> Any:
            side = "right" if right else "left"
            if line.ndim == 1:
                return np.searchsorted(view(line), sought, side).astype("i4")
            return np.array([np.searchsorted(a, b, side) for a, b in zip(line, sought, strict=True)], "i4")

        return Case(
            name,
            lambda a, b: ops.searchsorted(view(a), b, right=right),
            (line, sought),
            formula,
            (),
            False,
            line.size > 1000,
        )

    line = f32s(-INF, -1, -0.0, 0.0, 0.5, 0.5, 2, INF, NAN)
    sought = np.append(line, f32s(-2, 0.25, 3, 1e30)).reshape(1, 13)
    many = np.sort(normal(RNG, (LONG,)))
    return listed(
        "searchsorted",
        EXACT,
        *(case(f"{'right' if r else 'left'}", line, sought, r) for r in (False, True)),
        case("scalar", line, np.array(0.5, "f4"), True),
        case("in one", f32s(1), f32s(0, 1, 2)),
        case("in none", np.zeros(0, np.float32), f32s(0, 1)),
        case("none", line, np.zeros((2, 0), np.float32)),
        case("i32", np.sort(INTS), INTS, True),
        case("u32", np.sort(WORDS), WORDS),
        case("rows", np.sort(normal(RNG, (3, 5))), normal(RNG, (3, 7))),
        case("a view", many[:99], normal(RNG, (4, 5)), True, lambda x: x[3:90:2]),
        case("long", many, normal(RNG, (999,))),
    )


SCANS = [
    _scans("cumsum", _sum, SUMS, WHOLE, True),
    _scans("cumprod", _product, PRODUCTS, SIGNS, True),
    _scans("cummax", np.maximum.accumulate, EXACT, distinct(RNG, (2, 40_000)), False),
    _scans("cummin", np.minimum.accumulate, EXACT, distinct(RNG, (2, 40_000)), False),
    _recurrences(),
    _orders(),
    _values(),
    _put_back(),
    _places(),
]
