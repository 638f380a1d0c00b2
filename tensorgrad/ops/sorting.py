"""Order along an axis: sorting, and what is read off sorted rows.

Primitives along the last axis: `sort` gives the positions of a row's elements in order, `unsort` puts elements where
positions say, `searchsorted` looks places up in sorted rows. A row of more than
`LONGEST` elements is sorted in parts, which are merged: the place of an element in the union of two sorted parts is
its own place plus that in the other part. Every sort is stable; NaN counts as larger than any number.

Values are read at the positions, and their gradient goes back where they came from.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorgrad.checks import require_whole
from tensorgrad.dtypes import bool_, f32, i32, u32
from tensorgrad.graph import TensorType
from tensorgrad.lower.expr import Expr, both, call, const, expr, where
from tensorgrad.lower.functions import FUNCTIONS
from tensorgrad.lower.index import Indices, dynamic
from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import TensorLike, broadcast_to, tensor
from tensorgrad.ops.custom import custom_grad
from tensorgrad.ops.indexing import iota, taken_at
from tensorgrad.ops.scan import ValuesAndIndices, axis_of, pad_last
from tensorgrad.ops.views import flip, narrow, reshape, swapaxes
from tensorgrad.primitive import primitive
from tensorgrad.shape import fail
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
)


def _unsort_eval(xp: Any, x: Any, indices: Any) -> Any:
    out = xp.empty_like(x)
    xp.put_along_axis(out, indices, x, axis=-1)
    return out


unsort_p = primitive(
    "unsort",
    shape=lambda x, indices: x,
    eval=_unsort_eval,
    grad=lambda g, out, x, indices: (_permuted(g, indices), None),
)
"""`out[..., indices[..., i]] = x[..., i]`, where each row of indices is a permutation."""


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
    lower=_searched_lower,
)
"""How many elements of a sorted row come before each value: smaller ones, and equal ones where `right` holds."""


# Rows of any length -----------------------------------------------------------------------------


def _at(x: Tensor, indices: Tensor) -> Tensor:
    """The elements at positions of each row."""
    return taken_at(x, indices, x.ndim - 1, x.ndim - 1)


def _permuted(x: Tensor, indices: Tensor) -> Tensor:
    """The same for permutations, of which the gradient needs no sums."""
    return custom_grad(_at(ew.stop_gradient(x), indices), _permuted_grad, x, indices)


def _permuted_grad(g: Tensor, out: Tensor, x: Tensor, indices: Tensor) -> tuple[Tensor, None]:
    return bind(unsort_p, g, indices), None


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
    line, order = _at(line, order), order + reshape(iota((parts,), 0) * size, parts, 1)
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


def sorted_rows(x: Tensor, descending: bool) -> ValuesAndIndices:
    """The last axis in order."""
    order = _order(ew.stop_gradient(x), descending)
    return ValuesAndIndices(_permuted(x, order), order)


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
    found = sorted_rows(swapaxes(line, axis, -1), descending)
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
    require_whole("topk", "k", k)
    x, axis = axis_of("topk", tensor(x), axis, kw)
    if not 0 <= k <= x.shape[axis]:
        fail(f"topk: there are no {k} elements along axis {axis} of {x.type}")
    line = swapaxes(x, axis, -1)
    if _is_whole(line, k):
        found = tuple(narrow(t, -1, 0, k) for t in sorted_rows(line, largest))
    else:
        indices = _first(ew.stop_gradient(line), k, largest)
        found = _at(line, indices), indices
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
    best = _first(reshape(_at(line, own), *lead, parts * k), k, descending)
    return _at(places, best)
