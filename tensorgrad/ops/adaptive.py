"""Adaptive pools: a fixed number of parts, however long an axis is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import TensorLike, in_f32, tensor
from tensorgrad.ops.custom import custom_grad
from tensorgrad.ops.indexing import iota, taken_at
from tensorgrad.ops.pooling import max_pool
from tensorgrad.ops.reduce import argmax, mean, require_float
from tensorgrad.ops.reduce import max as max_
from tensorgrad.ops.resample import flat_places, parts, resampled
from tensorgrad.ops.views import expand_dims, permute, reshape
from tensorgrad.ops.windows import numbers
from tensorgrad.shape import fail, show_shape
from tensorgrad.tensor import Tensor

OutputSize = int | None | Sequence[int | None]
"""A number of parts for every axis, or one for each; None keeps an axis."""


@in_f32
def adaptive_avg_pool1d(x: TensorLike, output_size: OutputSize) -> Tensor:
    """The means of `output_size` parts of the last axis; see `adaptive_avg_pool2d`."""
    return _avg("adaptive_avg_pool1d", 1, x, output_size)


@in_f32
def adaptive_avg_pool2d(x: TensorLike, output_size: OutputSize) -> Tensor:
    """The means of `output_size` parts of the last two axes, as PyTorch's.

    Part i of n of an axis with L elements is those from `floor(i * L / n)` up to `ceil((i + 1) * L / n)`: parts overlap
    where n does not divide L.

    Args:
        x: `[..., H, W]`, floats.
        output_size: a number, or one for each axis; None keeps it.
    """
    return _avg("adaptive_avg_pool2d", 2, x, output_size)


def adaptive_max_pool1d(x: TensorLike, output_size: OutputSize) -> Tensor:
    """The largest elements of `output_size` parts of the last axis; see `adaptive_max_pool2d`."""
    return _max("adaptive_max_pool1d", 1, x, output_size)


def adaptive_max_pool2d(x: TensorLike, output_size: OutputSize) -> Tensor:
    """The largest elements of the parts that `adaptive_avg_pool2d` averages.

    The first of equal ones, row by row, gets the gradient.
    """
    return _max("adaptive_max_pool2d", 2, x, output_size)


def _sizes(op: str, rank: int, x: TensorLike, output_size: OutputSize) -> tuple[Tensor, tuple[int, ...]]:
    x = require_float(op, tensor(x))
    sizes = tuple(output_size) if isinstance(output_size, Sequence) else (output_size,) * rank
    if len(sizes) != rank or x.ndim < rank + 1:
        fail(f"{op}: needs {rank} sizes and an input with {rank + 1} axes or more, got {output_size} and {x.type}")
    wanted = [n if size is None else size for n, size in zip(x.shape[-rank:], sizes, strict=True)]
    found = numbers(op, "output_size", wanted, rank)
    if min(found) < 1 or 0 in x.shape[-rank:]:
        fail(f"{op}: {list(found)} parts of the last axes of {show_shape(x.shape)} have no elements")
    return x, found


def _even(x: Tensor, counts: Sequence[int]) -> bool:
    return not any(n % count for n, count in zip(x.shape[-len(counts) :], counts, strict=True))


def _avg(op: str, rank: int, x: TensorLike, output_size: OutputSize) -> Tensor:
    x, counts = _sizes(op, rank, x, output_size)
    lead, sizes = x.shape[:-rank], x.shape[-rank:]
    if not _even(x, counts):
        return resampled(x, tuple(map(parts, sizes, counts)))
    split = reshape(x, *lead, *(m for n, count in zip(sizes, counts, strict=True) for m in (count, n // count)))
    return mean(split, tuple(len(lead) + 1 + 2 * n for n in range(rank)))


def _max(op: str, rank: int, x: TensorLike, output_size: OutputSize) -> Tensor:
    x, counts = _sizes(op, rank, x, output_size)
    lead, sizes = x.shape[:-rank], x.shape[-rank:]
    if _even(x, counts):
        kernel = [n // count for n, count in zip(sizes, counts, strict=True)]
        return max_pool(op, rank, x, kernel, None, 0, 1, False)
    axes = [parts(n, count) for n, count in zip(sizes, counts, strict=True)]
    read = taken_at(reshape(x, *lead, math.prod(sizes)), flat_places([t.places.array for t in axes], sizes), len(lead))
    inside = np.ones((), bool)
    for t in axes:
        inside = np.multiply.outer(inside, t.weights.array != 0)
    order = [*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)]
    largest = math.prod(t.places.array.shape[1] for t in axes)
    flat = reshape(permute(read, *range(len(lead)), *(len(lead) + a for a in order)), *lead, *counts, largest)
    kept = inside.transpose(order).reshape(*counts, -1)
    return custom_grad(max_(ew.where(kept, flat, -math.inf), -1), _max_grad, flat, tensor(kept))


def _max_grad(g: Tensor, out: Tensor, flat: Tensor, kept: Tensor) -> tuple[Tensor, None]:
    # what fills a part up is no element: where all are -inf, the first of them gets the gradient
    elements = ew.where(kept, ew.maximum(flat, np.finfo(flat.dtype.numpy).min), -math.inf)
    first = ew.equal(iota(flat.shape, flat.ndim - 1), expand_dims(argmax(elements, -1), -1))
    return ew.where(first, expand_dims(g, -1), 0.0), None
