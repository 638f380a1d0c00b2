"""Pools: reductions over windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import TensorLike, in_f32, tensor
from tensorgrad.ops.custom import custom_grad
from tensorgrad.ops.indexing import iota
from tensorgrad.ops.reduce import argmax, require_float
from tensorgrad.ops.reduce import max as max_
from tensorgrad.ops.reduce import sum as sum_
from tensorgrad.ops.views import expand_dims, reshape
from tensorgrad.ops.windows import Numbers, Slide, Slides, numbers, overlap_add, slides, window_p
from tensorgrad.shape import fail, show_shape
from tensorgrad.tensor import Tensor
from tensorgrad.trace import bind


def max_pool1d(
    x: TensorLike,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window over the last axis; see `max_pool2d`."""
    return max_pool("max_pool1d", 1, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    x: TensorLike,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window over the last two axes, as PyTorch's.

    Of equal elements the first, row by row, gets the gradient. Padding counts as -inf; NaN is the largest.

    Args:
        x: `[..., H, W]`, floats.
        kernel_size, stride, padding, dilation: a number, or one for each axis. The stride is by default the
            kernel's size.
        ceil_mode: whether windows that begin inside and end outside count too.
        return_indices: give a pair, the largest elements and where each is among the `H * W` of its image, row by row.

    >>> import tensorgrad as tg
    >>> def halved():
    ...     return tg.max_pool2d(tg.tensor_input("x", (8, 16, 28, 28)), 2)
    >>> tg.trace(halved).type(tg.trace(halved).outputs[0])
    f32[8, 16, 14, 14]
    """
    return max_pool("max_pool2d", 2, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@in_f32
def avg_pool1d(
    x: TensorLike,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window over the last axis; see `avg_pool2d`."""
    return _avg_pool("avg_pool1d", 1, x, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@in_f32
def avg_pool2d(
    x: TensorLike,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window over the last two axes, as PyTorch's.

    Args:
        x: `[..., H, W]`, floats.
        kernel_size, stride, padding: a number, or one for each axis. The stride is by default the kernel's size.
        ceil_mode: whether windows that begin inside and end outside count too; what lies outside is no element.
        count_include_pad: whether the zeros of the padding count as elements.
        divisor_override: divide the sums by this.
    """
    return _avg_pool("avg_pool2d", 2, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@in_f32
def lp_pool1d(
    x: TensorLike, norm_type: float, kernel_size: Numbers, stride: Numbers | None = None, ceil_mode: bool = False
) -> Tensor:
    """`sum(x ** p) ** (1 / p)` of each window over the last axis; see `lp_pool2d`."""
    return _lp_pool("lp_pool1d", 1, x, norm_type, kernel_size, stride, ceil_mode)


@in_f32
def lp_pool2d(
    x: TensorLike, norm_type: float, kernel_size: Numbers, stride: Numbers | None = None, ceil_mode: bool = False
) -> Tensor:
    """`sum(x ** p) ** (1 / p)` of each window over the last two axes, as PyTorch's: 0 where the sum is negative."""
    return _lp_pool("lp_pool2d", 2, x, norm_type, kernel_size, stride, ceil_mode)


def _moves(
    op: str,
    x: Tensor,
    size: Numbers,
    stride: Numbers | None,
    padding: Numbers,
    dilation: Numbers,
    ceil_mode: bool,
    rank: int,
) -> Slides:
    if x.ndim < rank + 1:
        fail(f"{op}: needs an input with {rank + 1} axes or more, got {x.type}")
    sizes = numbers(op, "kernel_size", size, rank)
    found = slides(op, sizes, sizes if stride is None else stride, dilation, padding)
    for s in found:
        if not 0 <= min(s.low, s.high) <= max(s.low, s.high) <= s.size // 2:
            fail(f"{op}: padding must be from 0 to half of the kernel size {s.size}, got {s.low} and {s.high}")
    if ceil_mode:
        found = tuple(map(_whole, x.shape[-rank:], found))
    for n, s in zip(x.shape[-rank:], found, strict=True):
        if not (s.fits(n) and s.count(n)):
            fail(f"{op}: a kernel over {s.span} places does not fit the last axes of {show_shape(x.shape)}")
    return found


def _whole(n: int, s: Slide) -> Slide:
    """With room for the last window that begins inside or in the padding before."""
    count = -(-(n + s.low + s.high - s.span) // s.stride) + 1
    count -= (count - 1) * s.stride >= n + s.low
    return s._replace(high=(count - 1) * s.stride + s.span - n - s.low)


def max_pool(
    op: str,
    rank: int,
    x: TensorLike,
    size: Numbers,
    stride: Numbers | None,
    padding: Numbers,
    dilation: Numbers,
    ceil_mode: bool,
    return_indices: bool = False,
) -> Any:
    x = require_float(op, tensor(x))
    moves = _moves(op, x, size, stride, padding, dilation, ceil_mode, rank)
    largest = custom_grad(max_(_flat(x, moves), -1), _max_pool_grad, x, args=(moves,))
    return (largest, _places(_first(x, moves), x.shape[-rank:], moves)) if return_indices else largest


def _flat(x: Tensor, moves: Slides) -> Tensor:
    """The windows' elements as the last axis."""
    windows = bind(window_p, x, slides=moves, value=-math.inf)
    return reshape(windows, *windows.shape[: x.ndim], math.prod(s.size for s in moves))


def _first(x: Tensor, moves: Slides) -> Tensor:
    """Which element of each window is the first of the largest. Padding is no element, even where all are -inf."""
    return argmax(_flat(ew.maximum(x, np.finfo(x.dtype.numpy).min), moves), -1)


def _places(which: Tensor, sizes: Sequence[int], moves: Slides) -> Tensor:
    """Where in the image elements of windows are."""
    places: Any = 0
    below = math.prod(s.size for s in moves)
    for axis, (n, s) in enumerate(zip(sizes, moves, strict=True), which.ndim - len(moves)):
        below //= s.size
        element = which // below % s.size
        places = places * n + iota(which.shape, axis) * s.stride - s.low + element * s.dilation
    return places


def _max_pool_grad(g: Tensor, out: Tensor, x: Tensor, moves: Slides) -> tuple[Tensor]:
    shape = (*g.shape, math.prod(s.size for s in moves))
    first = ew.equal(iota(shape, g.ndim), expand_dims(_first(x, moves), -1))
    parts = ew.where(first, expand_dims(g, -1), 0.0)
    windows = reshape(parts, *g.shape, *(s.size for s in moves))
    return (overlap_add(windows, x.shape[x.ndim - len(moves) :], moves),)


def _avg_pool(
    op: str,
    rank: int,
    x: TensorLike,
    size: Numbers,
    stride: Numbers | None,
    padding: Numbers,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> Tensor:
    x = require_float(op, tensor(x))
    if divisor == 0:
        fail(f"{op}: divisor_override must not be 0")
    moves = _moves(op, x, size, stride, padding, 1, ceil_mode, rank)
    windows = bind(window_p, x, slides=moves, value=0)
    total = sum_(windows, tuple(range(x.ndim, x.ndim + rank)))
    if divisor is None and (ceil_mode or (not count_include_pad and any(s.low or s.high for s in moves))):
        margin = numbers(op, "padding", padding, rank) if count_include_pad else (0,) * rank
        return total / _counts(x.shape[-rank:], moves, margin).astype(x.dtype.numpy)
    return total * (1 / (math.prod(s.size for s in moves) if divisor is None else divisor))


def _counts(sizes: Sequence[int], moves: Slides, margin: Sequence[int]) -> np.ndarray:
    """How many elements of each window lie inside, or in a margin that counts as inside."""
    counts: Any = 1
    for n, s, m in zip(sizes, moves, margin, strict=True):
        begin = np.arange(s.count(n)) * s.stride - s.low
        counts = np.multiply.outer(counts, np.minimum(begin + s.size, n + m) - np.maximum(begin, -m))
    return counts


def _lp_pool(
    op: str, rank: int, x: TensorLike, p: float, size: Numbers, stride: Numbers | None, ceil_mode: bool
) -> Tensor:
    x = require_float(op, tensor(x))
    if p <= 0:
        fail(f"{op}: norm_type must be positive, got {p}")
    # through the mean, as PyTorch, which so counts a window that ends outside as a whole one
    area = math.prod(numbers(op, "kernel_size", size, rank))
    total = _avg_pool(op, rank, ew.pow(x, p), size, stride, 0, ceil_mode, True, None) * area
    return ew.pow(ew.where(ew.less_equal(total, 0), 0, total), 1 / p)
