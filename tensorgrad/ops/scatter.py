"""Reading and writing element by element along an axis, and at indices: PyTorch's gather, scatter and their kin.

Nothing is written in place: a function gives a new tensor. An index that is out of range, a negative one included
where PyTorch refuses it, reads NaN (0 for integers), writes nothing and gets no gradient; known indices are checked.
Where several updates name one element, additions add up, and of assignments the last one holds, on every device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from tensorgrad.callsite import call_site
from tensorgrad.dtypes import DType, bool_, i32
from tensorgrad.errors import InputError
from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import TensorLike, broadcast_to, cast, full, meet, one_axis, require, tensor
from tensorgrad.ops.custom import custom_grad
from tensorgrad.ops.getitem import flat_index, from_front, refuse_mask
from tensorgrad.ops.indexing import beside, inside, integers, iota, summed_at, taken_at
from tensorgrad.ops.joining import concat
from tensorgrad.ops.padding import pad
from tensorgrad.ops.reduce import max as max_
from tensorgrad.ops.reduce import min as min_
from tensorgrad.ops.reduce import prod
from tensorgrad.ops.reduce import sum as sum_
from tensorgrad.ops.views import expand_dims, movedim, narrow, reshape
from tensorgrad.shape import check_axis, fail, infer_broadcast_to, shape_size, show_shape
from tensorgrad.tensor import Tensor
from tensorgrad.trace import expect_index

# Reading -----------------------------------------------------------------------------------


def gather(x: TensorLike, dim: int, index: TensorLike) -> Tensor:
    """`out[i][j][k] = x[i][index[i][j][k]][k]` for `dim=1`: an element of its own line for each index.

    Args:
        index: integers, with as many axes as `x`, and along axes other than `dim` no longer than it.

    Returns:
        The shape of `index`.

    Raises:
        ShapeError: where the axes do not fit.

    >>> import tensorgrad as tg
    >>> def of_the_labels():
    ...     x, labels = tg.tensor_input("x", (8, 10)), tg.tensor_input("labels", (8,), tg.i32)
    ...     return tg.gather(x, 1, labels[:, None])
    >>> tg.trace(of_the_labels).type(tg.trace(of_the_labels).outputs[0])
    f32[8, 1]
    """
    x = tensor(x)
    dim = check_axis("gather", dim, x.ndim)
    index = _along("gather", x, dim, index)
    return _gathered(_narrowed(x, index.shape, dim), dim, index)


def take_along_axis(x: TensorLike, indices: TensorLike, axis: int | None = -1, **kw: Any) -> Tensor:
    """NumPy's: as `gather`, but sizes of other axes broadcast, and negative indices count from the end.

    Args:
        axis: None reads from the elements in row-major order. PyTorch's `dim=` is accepted.
    """
    x = tensor(x)
    axis = one_axis("take_along_axis", axis, kw, -1)
    if axis is None:
        x, axis = reshape(x, -1), 0
    axis = check_axis("take_along_axis", axis, x.ndim)
    index = from_front(_along("take_along_axis", x, axis, indices), x.shape[axis])
    lead = [max(n, m) if 0 not in (n, m) else 0 for n, m in zip(x.shape, index.shape, strict=True)]
    lead[axis] = 1
    for part in (x, index):
        ones = [1 if a == axis else n for a, n in enumerate(part.shape)]
        infer_broadcast_to("take_along_axis", tuple(ones), lead)
    sizes = [[part.shape[axis] if a == axis else n for a, n in enumerate(lead)] for part in (x, index)]
    return _gathered(broadcast_to(x, sizes[0]), axis, broadcast_to(index, sizes[1]))


def index_select(x: TensorLike, dim: int, index: TensorLike) -> Tensor:
    """The slices of an axis at indices `[k]`, PyTorch's; see `take`."""
    x = tensor(x)
    dim = check_axis("index_select", dim, x.ndim)
    return taken_at(x, _line("index_select", x, dim, index), dim)


# Writing -----------------------------------------------------------------------------------


def scatter(x: TensorLike, dim: int, index: TensorLike, src: TensorLike) -> Tensor:
    """`x` with `out[i][index[i][j][k]][k] = src[i][j][k]` for `dim=1`: the reverse of `gather`.

    Args:
        index: integers with as many axes as `x` and `src`, and no longer than `src`; along axes other than `dim` no
            longer than `x`.
        src: a tensor or a number. Of several that name one element the last holds (PyTorch leaves it open).
    """
    x, index, src, dim = _updates("scatter", x, dim, index, src)
    last = x.ndim - 1
    x, index, src = (movedim(t, dim, -1) for t in (x, index, src))
    return movedim(_overwritten(x, index, src, last, last), -1, dim)


def scatter_add(x: TensorLike, dim: int, index: TensorLike, src: TensorLike) -> Tensor:
    """`x` with `out[i][index[i][j][k]][k] += src[i][j][k]` for `dim=1`; arguments as `scatter`."""
    x, index, src, dim = _updates("scatter_add", x, dim, index, src)
    last = x.ndim - 1
    added = summed_at(movedim(src, dim, -1), movedim(index, dim, -1), last, x.shape[dim], last)
    return x + movedim(added, -1, dim)


def scatter_reduce(
    x: TensorLike,
    dim: int,
    index: TensorLike,
    src: TensorLike,
    reduce: Literal["sum", "prod", "mean", "amax", "amin"],
    *,
    include_self: bool = True,
) -> Tensor:
    """`x` with each element that the index names replaced by the sum (or what else) of itself and what names it.

    Args:
        x, dim, index, src: as `scatter`.
        reduce: of whole numbers the mean is rounded down. Equal extremes share the gradient.
        include_self: False leaves out the element itself.

    All but sums compare every index with every place of the axis.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x, i = np.array([1.0, 1.0, 1.0], np.float32), np.array([0, 0, 2], np.int32)
    >>> largest = tg.jit(lambda x: tg.scatter_reduce(x, 0, i, [5.0, 7.0, -1.0], "amax"), device="numpy")
    >>> tg.sync(largest(x)).tolist()
    [7.0, 1.0, 1.0]
    """
    op = "scatter_reduce"
    require(op, "reduce", reduce, reduce in _REDUCE, "'sum', 'prod', 'mean', 'amax' or 'amin'")
    x, index, src, dim = _updates(op, x, dim, index, src)
    last = x.ndim - 1
    x, index, src = (movedim(t, dim, -1) for t in (x, index, src))
    named = ew.equal(expand_dims(index, -1), iota((x.shape[-1],), 0))
    times = sum_(cast(named, i32), -2)
    counted = ew.equal(times, 0) | include_self
    own = ew.where(counted, x, _neutral(reduce, x.dtype))
    if reduce in ("sum", "mean"):
        out = own + summed_at(src, index, last, x.shape[-1], last)
        if reduce == "mean":
            times = ew.maximum(times + int(include_self), 1)
            out = out / times if x.dtype.is_float else out // times
    else:
        updates = ew.where(named, expand_dims(src, -1), _neutral(reduce, x.dtype))
        parts = concat([expand_dims(own, -2), updates], -2)
        out = _REDUCE[reduce](parts, -2)
        if reduce != "prod":
            out = custom_grad(out, _extreme_grad, parts, concat([expand_dims(counted, -2), named], -2))
    return movedim(out, -1, dim)


def index_add(x: TensorLike, dim: int, index: TensorLike, source: TensorLike, alpha: float = 1) -> Tensor:
    """`x` with `alpha * source` added to the slices of an axis at indices `[k]`; equal ones add up.

    Args:
        source: as `x`, but of size k along `dim`.
    """
    x, index, source, dim = _slices("index_add", x, dim, index, source)
    source = source if alpha == 1 else source * alpha
    return x + summed_at(source, index, dim, x.shape[dim])


def index_copy(x: TensorLike, dim: int, index: TensorLike, source: TensorLike) -> Tensor:
    """`x` with the slices of an axis at indices `[k]` replaced by those of `source`; the last of equal ones holds."""
    x, index, source, dim = _slices("index_copy", x, dim, index, source)
    return _overwritten(x, index, source, dim, 0)


def index_fill(x: TensorLike, dim: int, index: TensorLike, value: float) -> Tensor:
    """`x` with the slices of an axis at indices `[k]` filled with a number."""
    x = tensor(x)
    dim = check_axis("index_fill", dim, x.ndim)
    index = _line("index_fill", x, dim, index)
    _written("index_fill", x, dim, index)
    return _overwritten(x, index, full((), value, x.dtype), dim, 0)


def index_put(x: TensorLike, indices: Sequence[TensorLike], values: TensorLike, accumulate: bool = False) -> Tensor:
    """`x` with `x[indices] = values`, or `+= values` with `accumulate`.

    Args:
        indices: integer tensors or arrays for the first axes; they broadcast, negative ones count from the end.
        values: broadcast to `x[indices]`. Of several for one element the last holds, or all are added.

    Raises:
        DtypeError: a mask that is a tensor: use `tg.where(mask, values, x)`.
    """
    _, (x, values) = meet(x, values)
    known = list[Any]()
    for k in indices:
        if isinstance(k, Tensor):
            known += [k] if k.dtype is not bool_ else [refuse_mask("index_put")]
        else:
            array = np.asarray(k)
            known += array.nonzero() if array.dtype == bool else [array]
    if not 0 < len(known) <= x.ndim:
        fail(f"index_put: {len(known)} indices for {show_shape(x.shape)}")
    keys = [k if isinstance(k, Tensor) else inside("index_put", k, x, axis) for axis, k in enumerate(known)]
    sizes, rest = x.shape[: len(keys)], x.shape[len(keys) :]
    flat = tensor(flat_index("index_put", sizes, keys))
    count = shape_size(flat.shape)
    updates = reshape(broadcast_to(values, *flat.shape, *rest), count, *rest)
    merged, flat = reshape(x, shape_size(sizes), *rest), reshape(flat, count)
    if accumulate:
        out = merged + summed_at(updates, flat, 0, merged.shape[0])
    else:
        out = _overwritten(merged, flat, updates, 0, 0)
    return reshape(out, *x.shape)


# What they share -----------------------------------------------------------------------------


_REDUCE = {"sum": sum_, "mean": sum_, "prod": prod, "amax": max_, "amin": min_}


def _neutral(reduce: str, dtype: DType) -> float:
    """What changes nothing, in a reduction."""
    if reduce in ("amax", "amin"):
        if dtype.is_float:
            return -math.inf if reduce == "amax" else math.inf
        ends = np.iinfo(dtype.numpy)
        return int(ends.min if reduce == "amax" else ends.max)
    return 1 if reduce == "prod" else 0


def _extreme_grad(g: Tensor, out: Tensor, parts: Tensor, counted: Tensor) -> tuple[Tensor, None]:
    # what only fills up is no element: of equal infinite ones it gets nothing
    hit = counted & ew.equal(parts, expand_dims(out, -2))
    share = g / ew.maximum(sum_(cast(hit, g.dtype), -2), 1)
    return ew.where(hit, expand_dims(share, -2), 0.0), None


def _gathered(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """Lines of equal number, those of the index in place of those of `x`."""
    last = x.ndim - 1
    return movedim(taken_at(movedim(x, dim, -1), movedim(index, dim, -1), last, last), -1, dim)


def _overwritten(x: Tensor, index: Tensor, src: Tensor, axis: int, batch: int) -> Tensor:
    """`x` with `src` at positions `[*lead, k]` of an axis: each element looks for the last update that names it."""
    count = index.shape[-1]
    size = x.shape[axis]
    if not count or not x.size:
        return x
    named = ew.equal(expand_dims(cast(index, i32), -1), iota((size,), 0))
    which = max_(ew.where(named, iota((count, 1), 0), -1), -2)
    written = beside(ew.greater_equal(which, 0), axis, batch, x.ndim)
    return ew.where(written, taken_at(src, which, axis, batch) if src.ndim else src, x)


def _known(op: str, x: Tensor, dim: int, index: TensorLike) -> Tensor:
    """Indices as a tensor; those that are known are checked."""
    return integers(op, index if isinstance(index, Tensor) else inside(op, np.asarray(index), x, dim))


def _along(op: str, x: Tensor, dim: int, index: TensorLike) -> Tensor:
    found = _known(op, x, dim, index)
    if found.ndim != x.ndim:
        fail(f"{op}: the index {found.type} must have as many axes as {x.type}")
    return found


def _line(op: str, x: Tensor, dim: int, index: TensorLike) -> Tensor:
    found = _known(op, x, dim, index)
    if found.ndim > 1:
        fail(f"{op}: the index is [k], got {found.type}")
    return reshape(found, -1 if found.size else 0)


def _narrowed(x: Tensor, shape: Sequence[int], dim: int, op: str = "gather") -> Tensor:
    """The first elements of every axis but `dim`, as many as `shape` has."""
    for axis, n in enumerate(shape):
        if axis != dim:
            if n > x.shape[axis]:
                fail(f"{op}: the index {show_shape(shape)} is longer than {x.type} along axis {axis}")
            x = narrow(x, axis, 0, n)
    return x


def _updates(
    op: str, x: TensorLike, dim: int, index: TensorLike, src: TensorLike
) -> tuple[Tensor, Tensor, Tensor, int]:
    """Operands of one size along all axes but `dim`, and index and updates of one shape; a number stays one."""
    _, (x, src) = meet(x, src)
    if x.dtype is bool_ and op != "scatter":
        raise InputError(f"{op}: bools are not added; convert with .astype(tg.i32)", call_site())
    dim = check_axis(op, dim, x.ndim)
    index = _along(op, x, dim, index)
    _written(op, x, dim, index)
    _narrowed(x, index.shape, dim, op)
    if src.ndim not in (0, x.ndim):
        fail(f"{op}: the updates {src.type} must have as many axes as {x.type}")
    src = broadcast_to(src, index.shape) if not src.ndim else src
    src = narrow(_narrowed(src, index.shape, dim, op), dim, 0, min(src.shape[dim], index.shape[dim]))
    if src.shape != index.shape:
        fail(f"{op}: the index {index.type} is longer than the updates along axis {dim}")
    short = [(0, 0) if a == dim else (0, n - m) for a, (n, m) in enumerate(zip(x.shape, index.shape, strict=True))]
    return x, pad(cast(index, i32), short, -1), pad(src, short), dim


def _written(op: str, x: Tensor, dim: int, index: Tensor) -> None:
    """Notes where something is written: what is out of range is not."""
    expect_index(index, x.shape[dim], f"axis {dim} of what {op} writes to has {x.shape[dim]} places", silent=True)


def _slices(
    op: str, x: TensorLike, dim: int, index: TensorLike, source: TensorLike
) -> tuple[Tensor, Tensor, Tensor, int]:
    _, (x, source) = meet(x, source)
    dim = check_axis(op, dim, x.ndim)
    index = _line(op, x, dim, index)
    _written(op, x, dim, index)
    wanted = tuple(index.size if a == dim else n for a, n in enumerate(x.shape))
    if source.shape != wanted:
        fail(f"{op}: the source {source.type} must be {show_shape(wanted)}, for {x.type} and the index {index.type}")
    return x, index, source, dim
