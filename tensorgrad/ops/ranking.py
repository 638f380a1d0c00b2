"""What is read off sorted rows: the k-th value, medians, quantiles, and places between sorted numbers."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from tensorgrad.callsite import call_site
from tensorgrad.dtypes import i32
from tensorgrad.errors import InputError
from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import TensorLike, broadcast_to, cast, either, meet, tensor
from tensorgrad.ops.indexing import take
from tensorgrad.ops.reduce import require_float
from tensorgrad.ops.scan import ValuesAndIndices, axis_of
from tensorgrad.ops.sorting import searchsorted_p, sorted_rows
from tensorgrad.ops.views import narrow, reshape, swapaxes
from tensorgrad.shape import fail, show_shape
from tensorgrad.tensor import Tensor
from tensorgrad.trace import bind


def _picked(name: str, x: Tensor, at: int, axis: int, keepdims: bool) -> ValuesAndIndices:
    """The element that comes at a place of the order along an axis, and where it stands; NaN for a row with one.

    Only medians ask for NaN: of `kthvalue` it is a number like others, the largest.
    """
    found = sorted_rows(swapaxes(x, axis, -1), False)
    parts = [narrow(t, -1, at, 1) for t in found]
    if name == "median" and x.dtype.is_float:
        # the first NaN, if there is any
        last = ew.isnan(narrow(found.values, -1, x.shape[axis] - 1, 1))
        first = cast(ew.isnan(swapaxes(x, axis, -1)), i32).argmax(-1, keepdims=True)
        parts = [ew.where(last, math.nan, parts[0]), ew.where(last, first, parts[1])]
    kept = [swapaxes(t, axis, -1) for t in parts]
    shape = [n for i, n in enumerate(kept[0].shape) if i != axis]
    return ValuesAndIndices(*(kept if keepdims else (reshape(t, *shape) for t in kept)))


def kthvalue(x: TensorLike, k: int, axis: int = -1, keepdims: bool = False, **kw: Any) -> ValuesAndIndices:
    """The k-th smallest element along an axis (`k=1`: the smallest), and where it stands.

    Args:
        axis, keepdims: PyTorch's `dim=` and `keepdim=` are accepted.

    Raises:
        ShapeError: the axis has fewer elements.

    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(lambda x: tg.kthvalue(x, 2), device="numpy")([3.0, 1.0, 2.0]))
    ValuesAndIndices(values=array(2., dtype=float32), indices=array(2, dtype=int32))
    """
    keepdims = kw.pop("keepdim", keepdims)
    given = tensor(x)
    x, axis = axis_of("kthvalue", given, axis, kw)
    if not 1 <= k <= x.shape[axis]:
        fail(f"kthvalue: there is no element number {k} along axis {axis} of {given.type}")
    return _picked("kthvalue", x, k - 1, axis, keepdims and bool(given.shape))


def median(x: TensorLike, axis: int | None = None, keepdims: bool = False, **kw: Any) -> Any:
    """The element in the middle of the order, of two the smaller; NaN where there is one.

    Args:
        axis: along which; None takes all elements. PyTorch's `dim=` and `keepdim=` are accepted.

    Returns:
        Of all elements the value; along an axis `(values, indices)`.

    Raises:
        ShapeError: there is no such axis, or it has no elements.

    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(tg.median, device="numpy")([3.0, 1.0, 2.0, 5.0]))
    array(2., dtype=float32)
    """
    keepdims = kw.pop("keepdim", keepdims)
    given, axis = tensor(x), either("axis", axis, "dim", kw)
    whole = axis is None
    x, axis = axis_of("median", reshape(given, -1) if whole else given, 0 if whole else axis, {})
    if x.shape[axis] == 0:
        fail(f"median: there is no median of no elements (axis {axis} of {x.type})")
    found = _picked("median", x, (x.shape[axis] - 1) // 2, axis, keepdims and bool(given.shape) and not whole)
    return found.values if whole else found


def quantile(
    x: TensorLike,
    q: TensorLike,
    axis: int | None = None,
    keepdims: bool = False,
    interpolation: Literal["linear", "lower", "higher", "midpoint", "nearest"] = "linear",
    **kw: Any,
) -> Tensor:
    """The number below which a part `q` of the elements lies, between the two elements next to it.

    Args:
        q: from 0 to 1: a number, or a line of them, whose axis comes first in the result.
        axis: along which; None takes all elements. PyTorch's `dim=` and `keepdim=` are accepted.
        interpolation: how to choose between two elements.

    Returns:
        The tensor without the axis; NaN where the row has one.

    Raises:
        ShapeError: there is no such axis, or it has no elements.
        DtypeError: a tensor that is not of floats.
        InputError: a `q` outside, or another interpolation.

    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(lambda x: tg.quantile(x, 0.5), device="numpy")([3.0, 1.0, 2.0, 5.0]))
    array(2.5, dtype=float32)
    """
    keepdims = kw.pop("keepdim", keepdims)
    given, axis = require_float("quantile", tensor(x)), either("axis", axis, "dim", kw)
    if not isinstance(q, Tensor) and not np.all((np.asarray(q) >= 0) & (np.asarray(q) <= 1)):
        raise InputError(f"quantile: q must be from 0 to 1, got {q}", call_site())
    part = cast(tensor(q), given.dtype)
    if part.ndim > 1:
        fail(f"quantile: q is a number or a line of numbers, got {part.type}")
    whole = axis is None
    x, at = axis_of("quantile", reshape(given, -1) if whole else given, 0 if whole else axis, {})
    n = x.shape[at]
    if n == 0:
        fail(f"quantile: there is no quantile of no elements (axis {at} of {x.type})")
    line = sorted_rows(swapaxes(x, at, -1), False).values
    out = _between(line, reshape(part, -1) * (n - 1), interpolation)
    out = ew.where(ew.isnan(narrow(line, -1, n - 1, 1)), math.nan, out)
    # the rows' axes, the quantiles' in place of the axis; then those come first
    kept = swapaxes(out, at, -1)
    kept = kept.permute(at, *(i for i in range(kept.ndim) if i != at))
    own = ((1,) * given.ndim if whole else (*x.shape[:at], 1, *x.shape[at + 1 :])) if keepdims else kept.shape[1:]
    return reshape(kept, *part.shape, *own)


def _between(line: Tensor, rank: Tensor, interpolation: str) -> Tensor:
    """The rows' numbers at places between two elements."""
    low, high = ew.floor(rank), ew.ceil(rank)
    weight = {
        "linear": lambda: rank - low,
        "lower": lambda: rank * 0.0,
        "higher": lambda: ew.ceil(rank - low),
        "midpoint": lambda: ew.ceil(rank - low) * 0.5,
        "nearest": lambda: ew.round(rank) - low,
    }.get(interpolation)
    if weight is None:
        raise InputError(
            f"quantile: interpolation is linear, lower, higher, midpoint or nearest, got {interpolation!r}", call_site()
        )
    below, above = (take(line, cast(t, i32), line.ndim - 1) for t in (low, high))
    part = weight()
    # infinity times 0 would be NaN
    return ew.where(ew.equal(part, 0.0), below, below + (above - below) * part)


def searchsorted(
    sorted_sequence: TensorLike,
    values: TensorLike,
    *,
    right: bool = False,
    side: Literal["left", "right"] | None = None,
) -> Tensor:
    """Where values would be inserted into sorted rows so that they stay sorted.

    Args:
        sorted_sequence: `[n]`, or rows `[..., n]` with the leading axes of the values. It is not checked.
        values: any shape for one row, else `[..., m]`; a number gives a scalar.
        right: behind elements equal to the value, not before them.
        side: the same in words, as NumPy has it.

    Returns:
        i32 numbers from 0 to n, of the values' shape.

    Raises:
        ShapeError: leading axes that differ.
        InputError: another side, or one against `right`.

    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(lambda x: tg.searchsorted(x, [2.0, 9.0]), device="numpy")([1.0, 2.0, 3.0]))
    array([1, 3], dtype=int32)
    """
    if side not in (None, "left", "right") or (side == "left" and right):
        raise InputError(f"searchsorted: side is left or right, got {side!r} with right={right}", call_site())
    _, (sequence, sought) = meet(sorted_sequence, values)
    if not sequence.shape:
        fail(f"searchsorted: a sequence has an axis, got {sequence.type}")
    shape = sought.shape
    if sequence.ndim == 1:
        sought = reshape(sought, -1)
    if sequence.shape[:-1] != sought.shape[:-1]:
        fail(
            f"searchsorted: the leading axes of the sequence {show_shape(sequence.shape)} and of the values "
            f"{show_shape(sought.shape)} differ"
        )
    after = broadcast_to(tensor(right or side == "right"), *sought.shape)
    return reshape(bind(searchsorted_p, sequence, sought, after, descending=False), *shape)


def bucketize(x: TensorLike, boundaries: TensorLike, *, right: bool = False) -> Tensor:
    """The number of the interval between sorted boundaries in which each element lies, i32; see `searchsorted`.

    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(lambda x: tg.bucketize(x, [0.0, 10.0]), device="numpy")([-1.0, 5.0, 10.0, 11.0]))
    array([0, 1, 1, 2], dtype=int32)
    """
    return searchsorted(boundaries, x, right=right)
