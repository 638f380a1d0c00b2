"""Order along an axis: sorting, and what is read off sorted rows.

Primitives along the last axis: `sort` gives the positions of a row's elements in order, `reorder` reads elements at
positions and `unsort` puts them back there, `searchsorted` looks places up in sorted rows. A row of more than
`LONGEST` elements is sorted in parts, which are merged: the place of an element in the union of two sorted parts is
its own place plus that in the other part. Every sort is stable; NaN counts as larger than any number.

Values are read at the positions, and their gradient goes back where they came from.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from tensorgrad.callsite import call_site
from tensorgrad.dtypes import bool_, f32, i32, u32
from tensorgrad.errors import InputError
from tensorgrad.graph import TensorType
from tensorgrad.lower.expr import Expr, both, call, const, expr, where
from tensorgrad.lower.functions import FUNCTIONS
from tensorgrad.lower.index import Indices, dynamic
from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import TensorLike, broadcast_to, cast, either, meet, tensor
from tensorgrad.ops.custom import custom_grad
from tensorgrad.ops.indexing import iota, take
from tensorgrad.ops.reduce import require_float
from tensorgrad.ops.scan import ValuesAndIndices, axis_of, pad_last
from tensorgrad.ops.views import expand_dims, flip, narrow, reshape, swapaxes
from tensorgrad.primitive import primitive
from tensorgrad.shape import fail, show_shape
from tensorgrad.tensor import Tensor
from tensorgrad.trace import bind

LONGEST = 1 << 8
"""Elements of a row that is sorted in one go, in the memory of a workgroup, which a CPU's lane does by itself."""

# The primitives ---------------------------------------------------------------------------


def sort_key(e: Expr, descending: bool = False) -> Expr:
    """A u32 in the order of an expression's values; 0 and -0 have the same, NaN the largest."""
    if e.dtype.is_float:
        key = call(FUNCTIONS["order"], e if e.dtype is f32 else expr("cast", (e,), f32))
    elif e.dtype is i32:
        key = expr("xor", (expr("bitcast", (e,), u32), const(2**31, u32)), u32)
    else:
        key = e if e.dtype is u32 else expr("cast", (e,), u32)
    return expr("not", (key,), u32) if descending else key


def _sort_eval(xp: Any, x: Any, descending: bool) -> Any:
    if descending:  # from the back, so that equal elements keep their order
        return x.shape[-1] - 1 - _sort_eval(xp, x[..., ::-1], False)[..., ::-1]
    return xp.argsort(x, axis=-1, kind="stable").astype(np.int32)


sort_p = primitive(
    "sort",
    shape=lambda x, descending: TensorType(x.shape, i32),
    eval=_sort_eval,
    grad=lambda g, out, x, descending: (None,),
)


def _unsort_eval(xp: Any, x: Any, indices: Any) -> Any:
    out = xp.empty_like(x)
    xp.put_along_axis(out, indices, x, axis=-1)
    return out


unsort_p = primitive(
    "unsort",
    shape=lambda x, indices: x,
    eval=_unsort_eval,
    grad=lambda g, out, x, indices: (bind(reorder_p, g, indices), None),
)
"""`out[..., indices[..., i]] = x[..., i]`, where each row of indices is a permutation."""

reorder_p = primitive(
    "reorder",
    shape=lambda x, indices: TensorType(indices.shape, x.dtype),
    eval=lambda xp, x, indices: xp.take_along_axis(x, indices, axis=-1),
    grad=lambda g, out, x, indices: (bind(unsort_p, g, indices), None),
    lower=lambda idx, x, indices: x((*idx[:-1], dynamic(expr("cast", (indices(idx),), u32), x.shape[-1]))),
)
"""`out[..., i] = x[..., indices[..., i]]`; as for its gradient, each row of indices is a permutation."""


def _searched_shape(sequence: TensorType, values: TensorType, right: TensorType, descending: bool) -> TensorType:
    return TensorType(values.shape, i32)


def _searched_eval(xp: Any, sequence: Any, values: Any, right: Any, descending: bool) -> Any:
    out = xp.empty(values.shape, dtype=np.int32)
    for row in np.ndindex(values.shape[:-1]):
        line, sought, after = sequence[row], values[row], right[row]
        if descending:
            n = line.shape[0]
            left, past = (n - xp.searchsorted(line[::-1], sought, side=side) for side in ("right", "left"))
        else:
            left, past = (xp.searchsorted(line, sought, side=side) for side in ("left", "right"))
        out[row] = xp.where(after, past, left)
    return out


def _searched_lower(idx: Indices, sequence: Any, values: Any, right: Any, descending: bool) -> Expr:
    """A binary search without branches: steps of halving powers of two, taken where all before is smaller."""
    size = const(sequence.shape[-1], u32)
    sought, after = sort_key(values(idx), descending), right(idx)
    place = const(0, u32)
    for bit in reversed(range(size.data.bit_length())):
        step, inside = const(1 << bit, u32), const(True, bool_)
        end = step
        if place.op != "const":  # the first step is never too long
            end = expr("add", (place, step), u32)
            inside = expr("less_equal", (end, size), bool_)
        last = expr("sub", (expr("minimum", (end, size), u32), const(1, u32)), u32)
        found = sort_key(sequence((*idx[:-1], dynamic(last, size.data))), descending)
        smaller = where(after, expr("less_equal", (found, sought), bool_), expr("less", (found, sought), bool_))
        place = where(both(inside, smaller), end, place)
    return expr("cast", (place,), i32)


searchsorted_p = primitive(
    "searchsorted",
    shape=_searched_shape,
    eval=_searched_eval,
    grad=lambda g, out, sequence, values, right, descending: (None, None, None),
    lower=_searched_lower,
)
"""How many elements of a sorted row come before each value: smaller ones, and equal ones where `right` holds."""


# Rows of any length -----------------------------------------------------------------------------


def _order(x: Tensor, descending: bool) -> Tensor:
    """The positions of the last axis's elements in order, i32, of rows of any length."""
    *lead, n = x.shape
    if n <= LONGEST:
        return bind(sort_p, x, descending=descending)
    parts = 1 << (-(-n // LONGEST) - 1).bit_length()
    size = -(-n // parts)
    # what is filled up comes last: it is as large as any, and stands behind its equals
    line = reshape(pad_last(x, 0, parts * size - n, _last_of(x, descending)), *lead, parts, size)
    order = bind(sort_p, line, descending=descending)
    line, order = bind(reorder_p, line, order), order + reshape(iota((parts,), 0) * size, parts, 1)
    while parts > 1:
        parts, pair = parts // 2, (*lead, parts // 2, 2, size)
        line, order = reshape(line, *pair), reshape(order, *pair)
        second = broadcast_to(ew.equal(iota((2, 1), 0), 1), *pair)
        place = bind(searchsorted_p, flip(line, -2), line, second, descending=descending) + iota((size,), 0)
        size *= 2
        place, line, order = (reshape(t, *lead, parts, size) for t in (place, line, order))
        line, order = bind(unsort_p, line, place), bind(unsort_p, order, place)
    return narrow(reshape(order, *lead, size), -1, 0, n)


def _last_of(x: Tensor, descending: bool) -> float:
    """A number that none comes after."""
    if x.dtype.is_float:
        return -math.inf if descending else math.nan
    info = np.iinfo(np.uint8 if x.dtype is bool_ else x.dtype.numpy)
    return bool(not descending) if x.dtype is bool_ else int(info.min if descending else info.max)


def _sorted(x: Tensor, descending: bool) -> ValuesAndIndices:
    """The last axis in order."""
    order = _order(ew.stop_gradient(x), descending)
    return ValuesAndIndices(bind(reorder_p, x, order), order)


# The public functions -----------------------------------------------------------------------


def sort(x: TensorLike, axis: int = -1, descending: bool = False, stable: bool = True, **kw: Any) -> ValuesAndIndices:
    """The elements in order along an axis, and where they stood.

    Args:
        axis: which; PyTorch's `dim=` is accepted.
        descending: the largest first.
        stable: accepted as PyTorch has it; equal elements always keep their order.

    Returns:
        `(values, indices)` of the tensor's shape, the indices i32. NaN counts as larger than any number. The gradient
        of a value goes to the element that it is.

    Raises:
        ShapeError: there is no such axis.

    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(lambda x: tg.sort(x, descending=True).indices, device="numpy")([3.0, 1.0, 2.0, 3.0]))
    array([0, 3, 2, 1], dtype=int32)
    """
    given = tensor(x)
    line, axis = axis_of("sort", given, axis, kw)
    found = _sorted(swapaxes(line, axis, -1), descending)
    return ValuesAndIndices(*(reshape(swapaxes(t, axis, -1), *given.shape) for t in found))


def argsort(x: TensorLike, axis: int = -1, descending: bool = False, stable: bool = True, **kw: Any) -> Tensor:
    """The positions of the elements in order along an axis, i32; see `sort`."""
    return sort(x, axis, descending, stable, **kw).indices


def topk(
    x: TensorLike, k: int, axis: int = -1, largest: bool = True, sorted: bool = True, **kw: Any
) -> ValuesAndIndices:
    """The `k` largest (or smallest) elements along an axis, in order, and where they stand; of equal ones the first.

    Args:
        axis: which; PyTorch's `dim=` is accepted.
        largest: False gives the smallest.
        sorted: accepted as PyTorch has it; they always are.

    Returns:
        `(values, indices)` with `k` elements in place of the axis's.

    Raises:
        ShapeError: the axis has fewer elements.

    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(lambda x: tg.topk(x, 2).values, device="numpy")([3.0, 1.0, 2.0, 5.0]))
    array([5., 3.], dtype=float32)
    """
    x, axis = axis_of("topk", tensor(x), axis, kw)
    if not 0 <= k <= x.shape[axis]:
        fail(f"topk: there are no {k} elements along axis {axis} of {x.type}")
    line = swapaxes(x, axis, -1)
    if _is_whole(line, k):
        found = tuple(narrow(t, -1, 0, k) for t in _sorted(line, largest))
    else:
        indices = _first(ew.stop_gradient(line), k, largest)
        found = _chosen(line, indices), indices
    return ValuesAndIndices(*(swapaxes(t, axis, -1) for t in found))


def _is_whole(x: Tensor, k: int) -> bool:
    """Whether the first `k` elements of the rows take sorting them whole."""
    return x.shape[-1] <= LONGEST or 4 * k > LONGEST


def _first(x: Tensor, k: int, descending: bool) -> Tensor:
    """The positions of the first `k` elements in order: of a long row the first of its parts' first ones."""
    *lead, n = x.shape
    if _is_whole(x, k):
        return narrow(_order(x, descending), -1, 0, k)
    parts = -(-n // LONGEST)
    size = -(-n // parts)
    line = reshape(pad_last(x, 0, parts * size - n, _last_of(x, descending)), *lead, parts, size)
    own = narrow(bind(sort_p, line, descending=descending), -1, 0, k)
    places = reshape(own + reshape(iota((parts,), 0) * size, parts, 1), *lead, parts * k)
    best = _first(reshape(bind(reorder_p, line, own), *lead, parts * k), k, descending)
    return bind(reorder_p, places, best)


def _chosen(x: Tensor, indices: Tensor) -> Tensor:
    """The elements at different places of each row; their gradient goes there."""
    return custom_grad(bind(reorder_p, ew.stop_gradient(x), indices), _chosen_grad, x, indices)


def _chosen_grad(g: Tensor, out: Tensor, x: Tensor, indices: Tensor) -> tuple[Tensor, None]:
    hit = ew.equal(expand_dims(indices, -1), iota(x.shape[-1:], 0))
    return ew.where(hit, expand_dims(g, -1), 0.0).sum(-2), None


def _picked(name: str, x: Tensor, at: int, axis: int, keepdims: bool) -> ValuesAndIndices:
    """The element that comes at a place of the order along an axis, and where it stands; NaN for a row with one.

    Only medians ask for NaN: of `kthvalue` it is a number like others, the largest.
    """
    found = _sorted(swapaxes(x, axis, -1), False)
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
    line = _sorted(swapaxes(x, at, -1), False).values
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
