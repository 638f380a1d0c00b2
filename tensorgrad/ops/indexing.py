"""Reading and adding at indices that the data decides."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorgrad.callsite import call_site
from tensorgrad.dtypes import DType, Shape, bool_, f32, i32, u32
from tensorgrad.errors import DtypeError
from tensorgrad.graph import TensorType
from tensorgrad.lower.expr import Expr, const, expr, from_index, reduce, where
from tensorgrad.lower.index import Indices, dynamic, of_var, unravel
from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import TensorLike, as_shape, cast, tensor
from tensorgrad.ops.reduce import fresh_var
from tensorgrad.ops.views import expand_dims, reshape
from tensorgrad.primitive import primitive
from tensorgrad.shape import check_axis, fail, infer_gather, infer_one_hot, shape_size
from tensorgrad.tensor import Tensor
from tensorgrad.trace import bind, expect_index

# iota ------------------------------------------------------------------------------------


def _iota_eval(xp: Any, shape: Shape, axis: int) -> Any:
    line = xp.arange(shape[axis], dtype=np.int32)
    return xp.broadcast_to(line.reshape([-1 if i == axis else 1 for i in range(len(shape))]), shape)


iota_p = primitive(
    "iota",
    shape=lambda shape, axis: TensorType(shape, i32),
    eval=_iota_eval,
    lower=lambda idx, shape, axis: expr("cast", (from_index(idx[axis]),), i32),
)


def iota(shape: Shape, axis: int) -> Tensor:
    """i32 positions along an axis: `out[..., i, ...] = i`."""
    return bind(iota_p, shape=as_shape((shape,)), axis=check_axis("iota", axis, len(shape)))


def arange(start: float, stop: float | None = None, step: float = 1, dtype: DType | None = None) -> Tensor:
    """Numbers from `start` (0) up to, not including, `stop`; i32 unless a bound is a float."""
    first, end = (0, start) if stop is None else (start, stop)
    if step == 0:
        fail("arange: the step must not be 0")
    if not all(math.isfinite(n) for n in (first, end, step)):
        fail(f"arange: goes from {first} to {end} by {step}, which has no end")
    size = max(0, int(np.ceil((end - first) / step)))
    whole = all(isinstance(n, int | np.integer) for n in (first, end, step))
    if whole and size and dtype in (None, i32) and not -(2**31) <= first + (size - 1) * step < 2**31:
        raise DtypeError(f"arange: {first + (size - 1) * step} does not fit i32", call_site())
    line = iota((size,), 0)
    values = line if (first, step) == (0, 1) and whole else line * step + first
    return cast(values, dtype or (i32 if whole else f32))


# gather and scatter_add -------------------------------------------------------------------


def _missing(dtype: DType) -> float:
    return float("nan") if dtype.is_float else 0


def _gather_eval(xp: Any, x: Any, indices: Any, axis: int, batch: int) -> Any:
    n, before, after = x.shape[axis], axis - batch, x.ndim - axis - 1
    lead, own = indices.shape[:batch], indices.shape[batch:]
    valid = (indices >= 0) & (indices < n)
    shape = (*x.shape[:axis], *own, *x.shape[axis + 1 :])
    if n == 0:
        return xp.full(shape, _missing_of(x), dtype=x.dtype)
    at = xp.where(valid, indices, 0)
    if batch:
        line = at.reshape((*lead, *(1,) * before, shape_size(own), *(1,) * after))
        out = xp.take_along_axis(x, line, axis).reshape(shape)
    else:
        out = xp.take(x, at, axis=axis)
    if valid.all():
        return out
    mask = valid.reshape((*lead, *(1,) * before, *own, *(1,) * after))
    return xp.where(mask, out, xp.asarray(_missing_of(x), dtype=x.dtype))


def _missing_of(x: Any) -> float:
    return float("nan") if x.dtype.kind == "f" else 0


def _at(index: Expr, size: int) -> tuple[Expr, Expr]:
    """A data index as u32, and whether it lies in `0 <= index < size` (a negative one wraps far above)."""
    unsigned = index if index.dtype is u32 else expr("cast", (index,), u32)
    return unsigned, expr("less", (unsigned, const(size, u32)), bool_)


def _gather_lower(idx: Indices, x: Any, indices: Any, axis: int, batch: int) -> Expr:
    rank, n = len(indices.shape) - batch, x.shape[axis]
    if n == 0:
        return const(_missing(x.dtype), x.dtype)
    at, valid = _at(indices((*idx[:batch], *idx[axis : axis + rank])), n)
    value = x((*idx[:axis], dynamic(at, n), *idx[axis + rank :]))
    return where(valid, value, const(_missing(x.dtype), x.dtype))


def _gather_grad(g: Tensor, out: Tensor, x: Tensor, indices: Tensor, axis: int, batch: int) -> tuple[Tensor, None]:
    return summed_at(g, indices, axis, x.shape[axis], batch), None


gather_p = primitive(
    "gather",
    shape=lambda x, indices, axis, batch: TensorType(
        infer_gather("gather", x.shape, indices.shape, axis, batch), x.dtype
    ),
    eval=_gather_eval,
    grad=_gather_grad,
    lower=_gather_lower,
)


def _scatter_shape(updates: TensorType, indices: TensorType, axis: int, size: int, batch: int) -> TensorType:
    rank = len(indices.shape) - batch
    if updates.shape[:batch] + updates.shape[axis : axis + rank] != indices.shape:
        fail(f"scatter_add: the updates {updates} do not hold the indices' shape {indices} at axis {axis}")
    return TensorType((*updates.shape[:axis], size, *updates.shape[axis + rank :]), updates.dtype)


def _scatter_eval(xp: Any, updates: Any, indices: Any, axis: int, size: int, batch: int) -> Any:
    lead, own = indices.shape[:batch], indices.shape[batch:]
    between, after = updates.shape[batch:axis], updates.shape[axis + len(own) :]
    # -1 would be ambiguous where another size is 0
    rows, count = shape_size(lead), shape_size(own)
    flat = xp.moveaxis(updates.reshape((rows, *between, count, *after)), 1 + len(between), 1)
    # as kernels do: an f16 sum of ones would stop at 2048
    wide = xp.float32 if updates.dtype == xp.float16 else updates.dtype
    out = xp.zeros((rows, size, *between, *after), dtype=wide)
    where = indices.reshape((rows, count))
    valid = (where >= 0) & (where < size)
    row = xp.broadcast_to(xp.arange(rows)[:, None], where.shape)
    xp.add.at(out, (row[valid], where[valid]), flat[valid])
    out = xp.moveaxis(out, 1, 1 + len(between)).reshape((*lead, *between, size, *after))
    return out.astype(updates.dtype)


def _scatter_lower(idx: Indices, updates: Any, indices: Any, axis: int, size: int, batch: int) -> Expr:
    """Each element sums the updates that name it: no atomics, and the same order every time."""
    own = indices.shape[batch:]
    if shape_size(own) == 0:
        return const(0, updates.dtype)
    var = fresh_var(idx, shape_size(own))
    at = unravel(of_var(var), own)
    found = expr("cast", (indices((*idx[:batch], *at)),), u32)
    named = expr("equal", (found, from_index(idx[axis])), bool_)
    value = updates((*idx[:axis], *at, *idx[axis + 1 :]))
    return reduce("sum", var, where(named, value, const(0, updates.dtype)))


def _scatter_grad(
    g: Tensor, out: Tensor, updates: Tensor, indices: Tensor, axis: int, size: int, batch: int
) -> tuple[Any, None]:
    """What was dropped gets 0, where reading alone would give NaN."""
    known = (indices < size) if indices.dtype is u32 else (indices >= 0) & (indices < size)
    return ew.where(beside(known, axis, batch, updates.ndim), taken_at(g, indices, axis, batch), 0.0), None


scatter_add_p = primitive(
    "scatter_add",
    shape=_scatter_shape,
    eval=_scatter_eval,
    grad=_scatter_grad,
    lower=_scatter_lower,
)


def beside(indices: Tensor, axis: int, batch: int, ndim: int) -> Tensor:
    """What is known of each index, in a shape that broadcasts against values `[*lead, ..., *own, ...]`."""
    own = indices.shape[batch:]
    after = ndim - axis - len(own)
    return reshape(indices, *indices.shape[:batch], *(1,) * (axis - batch), *own, *(1,) * after)


def taken_at(x: Tensor, indices: Tensor, axis: int, batch: int = 0) -> Tensor:
    """`x` at positions of an axis: `out[*b, ..., *i, ...] = x[*b, ..., indices[*b, *i], ...]`.

    The first `batch` axes are those of both, and come before `axis`. An index outside `0 <= index < size` gives NaN
    (0 for integers), and gets no gradient.
    """
    size = x.shape[axis]
    expect_index(indices, size, f"what it indexes has {size} places", silent=not x.dtype.is_float)
    return bind(gather_p, x, indices, axis=axis, batch=batch)


def summed_at(updates: Tensor, indices: Tensor, axis: int, size: int, batch: int = 0) -> Tensor:
    """Zeros with updates added at positions of an axis of `size`: the adjoint of `taken_at`.

    The indices' own axes stand at `axis` of the updates. Equal indices add up, those outside the size are dropped.
    """
    if shape_size(indices.shape[batch:]) == 1 and updates.size:
        # one update a row: a choice, which fuses with what reads it
        own = indices.ndim - batch
        rows = reshape(updates, (*updates.shape[:axis], 1, *updates.shape[axis + own :]))
        index = beside(reshape(indices, (*indices.shape[:batch], 1)), axis, batch, rows.ndim)
        line = cast(iota((size,), 0), index.dtype)
        hit = ew.equal(index, reshape(line, (size, *(1,) * (rows.ndim - axis - 1))))
        return ew.where(hit, rows, 0)
    return bind(scatter_add_p, updates, indices, axis=axis, size=size, batch=batch)


def integers(name: str, indices: TensorLike) -> Tensor:
    found = tensor(indices)
    if found.dtype.kind not in "iu":
        raise DtypeError(f"{name}: indices must be integers, got {found.type}", call_site())
    return found


def take(x: TensorLike, indices: TensorLike, axis: int | None = None) -> Tensor:
    """`x` at integer positions of an axis, as NumPy's `take`.

    Args:
        indices: i32 or u32, any shape, which takes the place of the axis.
        axis: None takes of the elements in row-major order, as PyTorch does.

    Indices that are known while tracing are checked, and negative ones count from the end. Of a
    tensor's, one outside `0 <= index < size` gives NaN (0 for integers), on every device, and
    receives no gradient: on the GPU there is nobody to raise an error.

    Raises:
        ShapeError: an index that is known is out of range.
    """
    x = tensor(x)
    if axis is None:
        x, axis = reshape(x, x.size), 0
    axis = check_axis("take", axis, x.ndim)
    if not isinstance(indices, Tensor):
        indices = inside("take", np.asarray(indices), x, axis)
    return taken_at(x, integers("take", indices), axis)


def inside(name: str, indices: np.ndarray, x: Tensor, axis: int) -> np.ndarray:
    """Known indices counted from the front."""
    n = x.shape[axis]
    if indices.size == 0:
        return indices.astype(np.int32)
    if indices.dtype.kind not in "iu":
        return indices
    outside = indices[(indices < -n) | (indices >= n)]
    if outside.size:
        fail(f"{name}: index {outside.flat[0]} is out of range for axis {axis} of {x.type}")
    return np.where(indices < 0, indices + n, indices)


def embedding(weight: TensorLike, indices: TensorLike, padding_idx: int | None = None) -> Tensor:
    """Rows of a table `[rows, features]` at integer indices: `[*indices.shape, features]`.

    Args:
        padding_idx: a row that receives no gradient; negative numbers count from the last.

    `nn.functional.embedding` takes the indices first, as PyTorch's.
    """
    rows = take(weight, indices, 0)
    if padding_idx is None:
        return rows
    count = tensor(weight).shape[0]
    if not -count <= padding_idx < count:
        fail(f"embedding: padding_idx {padding_idx} is outside the {count} rows")
    return ew.where(expand_dims(ew.equal(tensor(indices), padding_idx % count), -1), ew.stop_gradient(rows), rows)


def one_hot(indices: TensorLike, num_classes: int, dtype: DType = f32) -> Tensor:
    """A new last axis of `num_classes`, 1 at the index and 0 elsewhere; of one outside the classes all are 0, and a
    warning names it."""
    found = integers("one_hot", indices)
    hits = hits_of(found, num_classes)
    expect_index(found, num_classes, f"one_hot has {num_classes} classes", silent=True)
    return cast(hits, dtype)


def hits_of(indices: Tensor, num_classes: int) -> Tensor:
    """A new last axis of `num_classes`: whether the index is that one."""
    shape = infer_one_hot("one_hot", indices.shape, num_classes)
    return expand_dims(cast(indices, i32), -1) == iota(shape, len(shape) - 1)
