"""Rows of lookups and products."""

from __future__ import annotations

from typing import Any

import numpy as np

from rows_common import EMPTY, INF, INTS, LINE, NAN, RNG, SQUARE, SUMS, X
from table import Case, f32s, listed, normal
from tensorgrad import ops
from tensorgrad.ops.indexing import summed_at, taken_at

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

    fn = lambda u, i: summed_at(u, i, axis, size)  # noqa: E731  # one expression, named for what follows
    return Case(name, fn, (updates, at), formula, (0,) if updates.dtype.kind == "f" else (), True, updates.size > 1000)


def by_row(name: str, updates: np.ndarray, at: np.ndarray) -> Case:
    """Indices of each row's own, before which another axis stands."""

    def formula(u: np.ndarray, i: np.ndarray) -> np.ndarray:
        out = np.zeros((*u.shape[:2], 3, u.shape[3]), u.dtype)
        for row, place in np.argwhere((i >= 0) & (i < 3)):
            out[row, :, i[row, place]] += u[row, :, place]
        return out

    fn = lambda u, i: summed_at(u, i, 2, 3, 1)  # noqa: E731  # one expression, named for what follows
    return Case(name, fn, (updates, at), formula, (0,), True)


def product(name: str, a: tuple[int, ...], b: tuple[int, ...], fn: Any = None, view: Any = lambda a, b: a @ b) -> Case:
    rng = np.random.default_rng([*a, 99, *b])
    inputs = (normal(rng, a), normal(rng, b))
    return Case(
        name,
        fn or view,
        inputs,
        lambda a, b: np.asarray(view(a, b)),
        (0, 1),
        True,
        max(inputs[0].size, inputs[1].size) > 1000,
    )


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
        Case(
            "indices computed",
            lambda x, i: ops.take(x, (i + 1) % 3, 0),
            (X, AT),
            lambda x, i: x[(i + 1) % 3],
            (0,),
            True,
        ),
        Case(
            "outside",
            lambda x, i: ops.take(x, i, 0),
            (f32s(1, 2), np.array([0, 2, -1, 2**31 - 1, -(2**31), 1], "i4")),
            lambda x, i: np.array([1, NAN, NAN, NAN, NAN, 2]),
        ),
        Case(
            "outside i32",
            lambda x, i: ops.take(x, i, 0),
            (INTS, np.array([9, -1, 3], "i4")),
            lambda x, i: np.array([0, 0, 7], "i4"),
        ),
        Case("from nothing", lambda x, i: ops.take(x, i, 1), (EMPTY, AT), lambda x, i: np.full((2, 2, 3, 3), NAN)),
        Case(
            "known indices",
            lambda x: x[[2, -1, 0]] + ops.take(x, np.array([-3]), 0),
            (X,),
            lambda x: x[[2, -1, 0]] + x[[-3]],
            (0,),
            True,
        ),
        Case(
            "negative in brackets",
            lambda x, i: x[i, 1:],
            (X, np.array([-1, 1, -3], "i4")),
            lambda x, i: x[i, 1:],
            (0,),
            True,
        ),
        Case("a tensor as index", lambda x, i: x[:, i], (X, AT), lambda x, i: x[:, i], (0,), True),
        Case(
            "of each row's own",
            lambda x, i: taken_at(x, i, 2, 1),
            (normal(RNG, (3, 2, 4, 5)), np.array([[0, 3, 1, 1, 2], [2, 2, 0, 2, 3], [1, 0, 0, 2, 1]], "i4")),
            lambda x, i: np.take_along_axis(x, i[:, None, :, None], 2),
            (0,),
            True,
        ),
        Case(
            "one of each row",
            lambda x, i: x[ops.arange(3), :, i],
            (X, np.array([6, 0, -1], "i4")),
            lambda x, i: x[np.arange(3), :, i],
            (0,),
            True,
        ),
        Case(
            "along two axes",
            lambda x, i: x[i[:, None], :, i],
            (X, AT),
            lambda x, i: x[i[:, None], :, i],
            (0,),
            True,
        ),
        take("rows", 0, x=SQUARE, at=np.array([3, 3, 0], "i4")),
    ),
    listed(
        "scatter_add",
        SUMS,
        scattered("rows", normal(RNG, (2, 3, 4)), AT, 0, 3),
        scattered("middle", normal(RNG, (2, 6, 3)), np.array([0, 4, 4, 1, 0, 4], "i4"), 1, 5),
        scattered("last", normal(RNG, (4, 2, 3)), AT, 1, 4),
        by_row(
            "rows of their own", normal(RNG, (3, 2, 4, 5)), np.array([[0, 5, 1, 1], [2, 2, -1, 2], [1, 0, 0, 2]], "i4")
        ),
        by_row("u32 rows", normal(RNG, (2, 1, 3, 2)), np.array([[2, 0, 2], [9, 1, 1]], "u4")),
        by_row("no rows", np.zeros((0, 2, 3, 2), np.float32), np.zeros((0, 3), np.int32)),
        scattered("outside", normal(RNG, (4,)), np.array([-1, 0, 3, 7], "i4"), 0, 3),
        scattered("nothing", np.zeros((0, 3), np.float32), np.zeros(0, np.int32), 0, 2),
        scattered("to nothing", normal(RNG, (3,)), np.array([0, 1, 2], "i4"), 0, 0),
        scattered("i32", np.arange(6, dtype=np.int32), np.array([1, 1, 0, 1, 2, 2], "i4"), 0, 3),
        scattered("u32 indices", normal(RNG, (4,)), np.array([2, 0, 2, 2], "u4"), 0, 3),
        scattered("long", normal(RNG, (3000, 5)), MANY, 0, 50),
        Case(
            "views",
            lambda u, i: summed_at(u.T[::-1] * 2.0, i[::-1], 0, 3),
            (SQUARE, np.array([0, 2, 2, 1], "i4")),
            lambda u, i: np.eye(3)[i[::-1]].T @ (u.T[::-1] * 2),
            (0,),
            True,
        ),
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
        product(
            "heads",
            (3, 4, 6),
            (3, 5, 6),
            view=lambda a, b: a.reshape(3, 4, 2, 3).transpose(0, 2, 1, 3) @ b.reshape(3, 5, 2, 3).transpose(0, 2, 3, 1),
        ),
        product(
            "broadcast operand",
            (1, 5),
            (5, 1),
            fn=lambda a, b: a.broadcast_to(4, 5) @ b.broadcast_to(5, 3),
            view=lambda a, b: np.broadcast_to(a, (4, 5)) @ np.broadcast_to(b, (5, 3)),
        ),
        product(
            "padded",
            (3, 4),
            (5, 2),
            fn=lambda a, b: ops.pad(a, ((0, 0), (1, 0))) @ b,
            view=lambda a, b: np.pad(a, ((0, 0), (1, 0))) @ b,
        ),
        product("computed", (3, 4), (4, 2), view=lambda a, b: (a * a) @ (b + 1.0)),
        product("square of itself", (4, 4), (4, 4), view=lambda a, b: a @ a.T @ b),
        product("blocked", (65, 67), (67, 66)),
        product("deep", (2, 1500), (1500, 3)),
        Case(
            "nan",
            lambda a, b: a @ b,
            (np.array([[NAN, 1], [2, 3]], "f4"), np.array([[0, 1], [INF, 1]], "f4")),
            lambda a, b: a @ b,
        ),
    ),
]
