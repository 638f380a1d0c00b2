"""Linear resampling of axes at places that are known: interpolation, and means over parts of unequal size.

Along an axis each element of the result is a weighted sum of a few elements of the input, its taps. All axes are
read by one gather, in place, and summed at once. The gradient is of the same kind: which elements of the result an
element of the input went into is known too, so it gathers, and no element of the result is searched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import Data, cast, tensor
from tensorgrad.ops.custom import custom_grad
from tensorgrad.ops.indexing import taken_at
from tensorgrad.ops.reduce import sum as sum_
from tensorgrad.ops.views import reshape
from tensorgrad.tensor import Tensor


class Taps(NamedTuple):
    """What elements of the result are made of, along an axis of `size`.

    Attributes:
        places: `[count, taps]`, whole numbers below `size`.
        weights: `[count, taps]`; an element with weight 0 is not read, infinite or not.
        size: of the axis.
    """

    places: Data
    weights: Data
    size: int


def taps(places: np.ndarray, weights: np.ndarray, size: int) -> Taps:
    return Taps(Data(places.astype(np.int32)), Data(weights.astype(np.float32)), size)


def parts(size: int, count: int) -> Taps:
    """Means over `count` parts of an axis, which overlap where they do not divide it: PyTorch's adaptive pools."""
    begin = np.arange(count) * size // count
    end = -(-(np.arange(count) + 1) * size // count)
    places = begin[:, None] + np.arange(max(end - begin, default=0))
    inside = places < end[:, None]
    return taps(np.where(inside, places, 0), np.where(inside, 1 / (end - begin)[:, None], 0), size)


def flat_places(places: Sequence[np.ndarray], sizes: Sequence[int]) -> Tensor:
    """Places `[count, taps]` along each axis as places in all of them: `[count, taps, count, taps, ...]`."""
    flat: Tensor | None = None
    for n, at in enumerate(places):
        axes = [1] * 2 * len(places)
        axes[2 * n : 2 * n + 2] = at.shape
        part = tensor((at * math.prod(sizes[n + 1 :])).astype(np.int32).reshape(axes))
        flat = part if flat is None else flat + part
    assert flat is not None
    return flat


def resampled(x: Tensor, axes: tuple[Taps, ...]) -> Tensor:
    """The last axes of `x` with new elements, which are weighted sums of its own."""
    return custom_grad(_resampled(x, axes), _grad, x, args=(axes,))


def _resampled(x: Tensor, axes: tuple[Taps, ...]) -> Tensor:
    lead, sizes = x.shape[: x.ndim - len(axes)], x.shape[x.ndim - len(axes) :]
    flat = flat_places([t.places.array for t in axes], sizes)
    read = taken_at(reshape(x, *lead, math.prod(sizes)), flat, len(lead))
    sums = []
    for n, t in enumerate(axes):
        weights, after = t.weights.array, 2 * (len(axes) - n - 1)
        if not (weights == 1).all():
            slopes = cast(tensor(weights.reshape(*weights.shape, *(1,) * after)), x.dtype)
            read = read * slopes if (weights != 0).all() else ew.where(ew.equal(slopes, 0), 0, read * slopes)
        if weights.shape[1] > 1:
            sums.append(len(lead) + 2 * n + 1)
    total = sum_(read, tuple(sums)) if sums else read
    return reshape(total, *lead, *(t.places.array.shape[0] for t in axes))


def _grad(g: Tensor, out: Tensor, x: Tensor, axes: tuple[Taps, ...]) -> tuple[Tensor]:
    return (resampled(g, tuple(map(_adjoint, axes))),)


@lru_cache(maxsize=64)
def _adjoint(t: Taps) -> Taps:
    """For each element of the input, the elements of the result that it went into."""
    places, weights = t.places.array, t.weights.array
    found = [list[tuple[int, float]]() for _ in range(t.size)]
    for i, j in np.argwhere(weights != 0).tolist():
        found[places[i, j]].append((i, weights[i, j]))
    most = max(1, *map(len, found))
    rows = [[*row, *[(0, 0.0)] * (most - len(row))] for row in found]
    table = np.array(rows, np.float64).reshape(t.size, most, 2)
    return taps(table[:, :, 0], table[:, :, 1], places.shape[0])
