"""Rows of windows and their sums, and what is made of them: convolutions and pools."""

from __future__ import annotations

from typing import Any

import numpy as np

from rows_common import LINE, SUMS, X
from table import EXACT, Case, distinct, f32s, listed, normal
from tensorgrad import ops
from tensorgrad.ops.windows import overlap_add, slides

RNG = np.random.default_rng(5)
IMAGES = normal(RNG, (2, 4, 7, 6))
DISTINCT = distinct(RNG, (2, 3, 7, 6))
NONE = np.zeros((0, 4, 7, 6), np.float32)


def padded(x: np.ndarray, ends: Any, value: float = 0) -> np.ndarray:
    """The last axes with places around them; negative numbers cut off."""
    wide = np.pad(x, [(0, 0)] * (x.ndim - len(ends)) + [(max(a, 0), max(b, 0)) for a, b in ends], constant_values=value)
    cut = tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(ends, wide.shape[-len(ends) :], strict=True))
    return wide[(..., *cut)]


def windows(x: np.ndarray, moves: Any, value: float = 0) -> np.ndarray:
    """Every window, cut out one by one."""
    x = padded(x, [(s.low, s.high) for s in moves], value)
    counts = [(n - s.span) // s.stride + 1 for n, s in zip(x.shape[-len(moves) :], moves, strict=True)]
    out = np.zeros((*x.shape[: -len(moves)], *counts, *(s.size for s in moves)), x.dtype)
    for at in np.ndindex(*counts):
        cut = tuple(slice(i * s.stride, i * s.stride + s.span, s.dilation) for i, s in zip(at, moves, strict=True))
        out[(..., *at, *[slice(None)] * len(moves))] = x[(..., *cut)]
    return out


def sums(x: np.ndarray, sizes: tuple[int, ...], moves: Any) -> np.ndarray:
    """The adjoint of `windows`, element by element, by its definition."""
    rank = len(moves)
    out = np.zeros((*x.shape[: -2 * rank], *sizes), x.dtype)
    for at in np.ndindex(x.shape[-2 * rank :]):
        places = [i * s.stride + p * s.dilation - s.low for i, p, s in zip(at[:rank], at[rank:], moves, strict=True)]
        if all(0 <= p < n for p, n in zip(places, sizes, strict=True)):
            out[(..., *places)] += x[(..., *at)]
    return out


def shown(name: str, size: Any, x: np.ndarray = X, value: float = 0, **how: Any) -> Case:
    """A case of `window`."""
    moves = slides("window", (size,) if isinstance(size, int) else size, **how)
    return Case(
        name,
        lambda x: ops.window(x, size, value=value, **how) * 2.0,
        (x,),
        lambda x: windows(x, moves, value) * 2,
        (0,),
        True,
        x.size > 1000,
    )


def summed(name: str, sizes: tuple[int, ...], size: Any, lead: tuple[int, ...] = (2,), **how: Any) -> Case:
    """A case of `fold`, of windows with numbers that do not come from one array."""
    moves = slides("fold", size, **how)
    counts = (s.count(n) for n, s in zip(sizes, moves, strict=True))
    x = normal(RNG, (*lead, *counts, *size))
    return Case(
        name,
        lambda x: overlap_add(x * x, sizes, moves),
        (x,),
        lambda x: sums(x * x, sizes, moves),
        (0,),
        True,
        x.size > 1000,
    )


def convolved(name: str, weight: tuple[int, ...], x: np.ndarray = IMAGES, bias: bool = False, **how: Any) -> Case:
    """A case of `conv1d` or `conv2d`, against a sum of products."""
    op = ops.conv1d if len(weight) == 3 else ops.conv2d
    plain = {k: v for k, v in how.items() if k in ("stride", "dilation", "padding")}
    if how.get("padding") == "same":
        spare = [how.get("dilation", 1) * (k - 1) for k in weight[2:]]
        plain["padding"] = [(n // 2, n - n // 2) for n in spare]
    moves, groups = slides("conv", weight[2:], **plain), how.get("groups", 1)

    def formula(x: np.ndarray, w: np.ndarray, b: Any = 0.0) -> np.ndarray:
        shown = windows(x, moves)
        parts = []
        for xs, ws in zip(np.split(shown, groups, 1), np.split(w, groups), strict=True):
            rank = w.ndim - 2
            inner = ([1, *range(2 + rank, 2 + 2 * rank)], [1, *range(2, 2 + rank)])
            parts.append(np.moveaxis(np.tensordot(xs, ws, inner), -1, 1))
        return np.concatenate(parts, 1) + np.reshape(b, (-1, *[1] * (w.ndim - 2)))

    operands = (x, normal(RNG, weight), *([normal(RNG, weight[:1])] if bias else []))
    return Case(name, lambda *xs: op(*xs, **how), operands, formula, tuple(range(len(operands))), True)


def largest(name: str, size: Any, x: np.ndarray = DISTINCT, **how: Any) -> Case:
    """A case of `max_pool2d`."""
    size_ = (size, size) if isinstance(size, int) else size
    moves = slides("pool", size_, **{"stride": size_, **how})
    return Case(
        name,
        lambda x: ops.max_pool2d(x, size, **how) * 2.0,
        (x,),
        lambda x: windows(x, moves, -np.inf).max((-1, -2)) * 2,
        (0,),
    )


def averaged(name: str, size: Any, x: np.ndarray = IMAGES, inside: bool = False, **how: Any) -> Case:
    """A case of `avg_pool2d`."""
    size_ = (size, size) if isinstance(size, int) else size
    moves = slides("pool", size_, **{"stride": size_, **how})
    if inside:
        how["count_include_pad"] = False

    def formula(x: np.ndarray) -> np.ndarray:
        count = windows(np.ones_like(x), moves).sum((-1, -2)) if inside else float(np.prod(size_))
        return windows(x, moves).sum((-1, -2)) / count

    return Case(name, lambda x: ops.avg_pool2d(x, size, **how), (x,), formula, (0,), True)


WINDOWS = [
    listed(
        "window",
        EXACT,
        shown("pairs", 2),
        shown("apart", 2, stride=3),
        shown("dilated", 3, dilation=2),
        shown("all three axes", (2, 3, 2), stride=(1, 2, 3)),
        shown("padded", (3, 3), padding=1),
        shown("padded on one side", (2, 3), padding=((0, 3), (2, 0)), value=-1.5),
        shown("cut", (2, 3), padding=((-1, 0), (-2, 1))),
        shown("dilated and padded", (3, 2), stride=2, dilation=(2, 3), padding=(2, 1)),
        shown("one number", 1, f32s(3), padding=2),
        shown("of none", 2, np.zeros((2, 0, 3), np.float32)),
        shown("of padding alone", (2, 2), np.zeros((2, 0, 3), np.float32), padding=1),
        shown("long", 3, LINE, stride=2),
        Case(
            "of a transpose",
            lambda x: ops.window(x.transpose(2, 0, 1), (2, 2)).reshape(7, 8, 4)[:, ::2],
            (X,),
            lambda x: windows(x.transpose(2, 0, 1), slides("", (2, 2))).reshape(7, 8, 4)[:, ::2],
            (0,),
            True,
        ),
        Case(
            "of windows",
            lambda x: ops.window(ops.window(x, 3, 2, padding=1), 2),
            (X,),
            lambda x: windows(windows(x, slides("", (3,), 2, padding=1)), slides("", (2,))),
            (0,),
            True,
        ),
        Case("i32", lambda x: ops.window(x, 2, padding=1, value=7), (np.arange(5, dtype=np.int32),),
             lambda x: windows(x, slides("", (2,), padding=1), 7)),
    ),
    listed(
        "fold",
        SUMS,
        summed("pairs", (7,), (2,)),
        summed("apart", (9,), (2,), stride=3),
        summed("overlapping", (9, 8), (3, 3), stride=2),
        summed("by one", (5, 6), (3, 2)),
        summed("dilated", (11,), (3,), stride=2, dilation=2),
        summed("padded", (6, 5), (3, 3), padding=1),
        summed("padded and apart", (7, 6), (3, 2), stride=2, padding=((1, 1), (0, 1))),
        summed("cut", (7, 8), (3, 2), stride=(2, 1), padding=((-1, 0), (-2, 1))),
        summed("everything", (9, 10), (3, 2), stride=(2, 3), dilation=(2, 3), padding=(2, 1)),
        summed("nothing before", (0, 3), (2, 2), padding=1),
        summed("none", (5,), (2,), lead=(0,)),
        summed("long", (65_537,), (4,), lead=(1,), stride=4),
        Case(
            "of a transpose",
            lambda x: overlap_add(x.transpose(1, 2, 0), (6,), slides("", (3,), 1))[1:] * 2.0,
            (normal(RNG, (3, 2, 4)),),
            lambda x: sums(x.transpose(1, 2, 0), (6,), slides("", (3,), 1))[1:] * 2,
            (0,),
            True,
        ),
    ),
]  # fmt: skip

CONVOLUTIONS = [
    listed(
        "window",
        SUMS,
        convolved("convolution", (5, 4, 3, 3)),
        convolved("convolution, padded, with bias", (3, 4, 3, 2), padding=(1, 1), bias=True),
        convolved("convolution, apart", (3, 4, 3, 3), stride=2, padding=1),
        convolved("convolution, stride beyond the kernel", (3, 4, 2, 1), stride=(3, 2)),
        convolved("convolution, dilated", (2, 4, 3, 2), dilation=2, padding=((2, 1), (0, 3))),
        convolved("convolution, dilated and apart", (2, 4, 2, 2), stride=2, dilation=3, padding=2),
        convolved("convolution, same", (2, 4, 2, 3), padding="same", dilation=2),
        convolved("convolution, one place", (5, 4, 1, 1), bias=True),
        convolved("convolution, one place, apart", (5, 4, 1, 1), stride=2),
        convolved("convolution, groups", (10, 2, 3, 3), groups=2, padding=1),
        convolved("convolution, groups, apart", (12, 2, 3, 2), groups=2, stride=2, padding=1),
        convolved("convolution, by channel", (4, 1, 3, 3), groups=4, padding=1, bias=True),
        convolved("convolution, narrow groups", (6, 2, 2, 3), groups=2, stride=2),
        convolved("convolution, long", (3, 8, 3, 3), normal(RNG, (2, 8, 9, 8)), padding=1),
        convolved("convolution, no images", (5, 4, 3, 3), NONE, padding=1),
        convolved("convolution of lines", (3, 7, 4), DISTINCT[0], padding=2, stride=3, bias=True),
        convolved("convolution of lines, whole", (3, 7, 6), DISTINCT[0]),
        largest("largest", 2),
        largest("largest, overlapping", 3, stride=1),
        largest("largest, padded", (3, 2), stride=2, padding=1),
        largest("largest, dilated", 2, dilation=2, stride=1),
        largest("largest, apart", 2, stride=3),
        largest("largest of none", 2, NONE),
        averaged("mean", 2),
        averaged("mean, overlapping", 3, stride=2, padding=1),
        averaged("mean inside", 3, stride=2, padding=1, inside=True),
    ),
]
