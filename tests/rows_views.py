"""Rows of views, joins and arenas."""

from __future__ import annotations

from typing import Any

import numpy as np

from rows_common import EMPTY, INF, INTS, LINE, ORDER, SQUARE, SUMS, X
from table import EXACT, LONG, ODD, Case, f32s, listed
from tensorgrad import ops
from tensorgrad.ops import arena
from tensorgrad.ops.custom import custom_grad
from tensorgrad.tensor import Tensor

# Views ---------------------------------------------------------------------------------------


def view(name: str, fn: Any, formula: Any = None, x: np.ndarray = X) -> Case:
    """A case of a view: differentiable, and composed with a product so that second derivatives are not 0."""
    return Case(name, fn, (x,), formula or fn, (0,), True, x.size > 1000)


VIEWS = [
    listed(
        "reshape",
        EXACT,
        view("split", lambda x: x.reshape(5, 3, 7)),
        view("flat", lambda x: x.reshape(-1)),
        view("to ones", lambda x: x.reshape(1, 105, 1)),
        view("scalar", lambda x: x.reshape(()), x=f32s(2)),
        view("of a scalar", lambda x: x.reshape(1, 1), x=np.array(2, np.float32)),
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
        view("scalar", lambda x: x.broadcast_to(3, 2), lambda x: np.broadcast_to(x, (3, 2)), np.array(2, np.float32)),
        view("to none", lambda x: x.broadcast_to(0, 4), lambda x: np.broadcast_to(x, (0, 4)), f32s(1, 2, 3, 4)),
        Case("long", lambda x: x.broadcast_to(LONG), (f32s(3),), lambda x: np.broadcast_to(x, LONG), long=True),
        view("empty", lambda x: x.broadcast_to(4, 2, 0, 3), lambda x: np.broadcast_to(x, (4, 2, 0, 3)), EMPTY),
        view(
            "of a transpose",
            lambda x: x.T.reshape(7, 5, 1, 3).broadcast_to(7, 5, 2, 3),
            lambda x: np.broadcast_to(x.T[:, :, None], (7, 5, 2, 3)),
        ),
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
        view(
            "around",
            lambda x: ops.pad(x, ((1, 0), (0, 2), (3, 1)), 0.5),
            lambda x: np.pad(x, ((1, 0), (0, 2), (3, 1)), constant_values=0.5),
        ),
        view("one number", lambda x: ops.pad(x, 2), lambda x: np.pad(x, 2)),
        view(
            "infinity",
            lambda x: ops.exp(ops.pad(x, 1, -INF)),
            lambda x: np.exp(np.pad(x, 1, constant_values=-INF)),
            f32s(0),
        ),
        view("empty", lambda x: ops.pad(x, 1, 2.0), lambda x: np.pad(x, 1, constant_values=2.0), EMPTY),
        view(
            "an empty sum",
            lambda x: ops.pad(ops.sum(x, 2), ((0, 0), (1, 2)), 2.0),
            lambda x: np.full((2, 3), 2.0),
            EMPTY,
        ),
        view("long", lambda x: ops.pad(x, ((3, 4),)), lambda x: np.pad(x, (3, 4)), LINE),
        view(
            "twice",
            lambda x: ops.pad(ops.pad(x, 1, 1.0).T, 1, 2.0),
            lambda x: np.pad(np.pad(x, 1, constant_values=1).T, 1, constant_values=2),
        ),
        view("of a slice", lambda x: ops.pad(x[::-2, 1:3], 1), lambda x: np.pad(x[::-2, 1:3], 1)),
        view(
            "then reshaped",
            lambda x: ops.pad(x, ((1, 1), (0, 1), (0, 0))).reshape(6, 35)[1:].T,
            lambda x: np.pad(x, ((1, 1), (0, 1), (0, 0))).reshape(6, 35)[1:].T,
        ),
        Case("i32", lambda x: ops.pad(x, (1, 2), -7), (INTS,), lambda x: np.pad(x, (1, 2), constant_values=-7)),
        Case(
            "bool",
            lambda x: ops.pad(x, 1, True),
            (np.array([[False, True]]),),
            lambda x: np.pad(x, 1, constant_values=True),
        ),
    ),
    listed(
        "concat",
        EXACT,
        Case(
            "first", lambda a, b: ops.concat([a, b]), (X, X[:1] + 1), lambda a, b: np.concatenate([a, b]), (0, 1), True
        ),
        Case(
            "middle",
            lambda a, b: ops.concat([a, b, a], 1),
            (X, X[:, :2]),
            lambda a, b: np.concatenate([a, b, a], 1),
            (0, 1),
            True,
        ),
        Case(
            "last",
            lambda a, b: ops.concat([b, a], -1),
            (X, X[..., :1]),
            lambda a, b: np.concatenate([b, a], -1),
            (0, 1),
            True,
        ),
        Case(
            "an empty part",
            lambda a, b: ops.concat([b, a, b, a]),
            (X, X[:0]),
            lambda a, b: np.concatenate([a, a]),
            (0, 1),
        ),
        Case("all empty", lambda a: ops.concat([a, a * 2], 0), (EMPTY,), lambda a: np.zeros((4, 0, 3)), (0,)),
        Case(
            "views",
            lambda a: ops.concat([a.T, a[::-1], a * a], 1),
            (SQUARE,),
            lambda a: np.concatenate([a.T, a[::-1], a * a], 1),
            (0,),
            True,
        ),
        Case(
            "twelve",
            lambda *xs: ops.concat(xs),
            tuple(f32s(n, n + 0.5) for n in range(12)),
            lambda *xs: np.concatenate(xs),
            (0, 11),
        ),
        Case(
            "long",
            lambda a: ops.concat([a, a * 2, a]),
            (LINE,),
            lambda a: np.concatenate([a, a * 2, a]),
            (0,),
            False,
            True,
        ),
        Case("i32", lambda a: ops.concat([a, a + 1]), (INTS,), lambda a: np.concatenate([a, a + 1])),
        Case("stack", lambda a, b: ops.stack([a, b], 1), (X, X * 2), lambda a, b: np.stack([a, b], 1), (0, 1)),
        Case(
            "joined parts",
            lambda a: ops.concat(ops.split(a, 2, 2)[::-1], 2),
            (X,),
            lambda a: np.concatenate([a[..., 6:], a[..., 4:6], a[..., 2:4], a[..., :2]], 2),
            (0,),
        ),
    ),
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
        Case(
            "that is right",
            lambda x: custom_grad(x * x, lambda g, out, x: (g * x * 2.0,), x),
            (ORDER,),
            lambda x: x * x,
            (0,),
            True,
        ),
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
        Case(
            "by rows",
            lambda a: arena.pack([a], "r").reshape(8, 8) * 2.0,
            (SQUARE,),
            lambda a: packed(a).reshape(8, 8) * 2,
        ),
    ),
]
