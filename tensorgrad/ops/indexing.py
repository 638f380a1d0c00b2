"""Reading and adding at indices that the data decides."""

from __future__ import annotations

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
from tensorgrad.primitive import primitive
from tensorgrad.shape import check_axis, fail, infer_gather, shape_size
from tensorgrad.tensor import Tensor
from tensorgrad.trace import bind

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
    size = max(0, int(np.ceil((end - first) / step)))
    whole = all(isinstance(n, int | np.integer) for n in (first, end, step))
    line = iota((size,), 0)
    values = line if (first, step) == (0, 1) and whole else line * step + first
    return cast(values, dtype or (i32 if whole else f32))


# gather and scatter_add -------------------------------------------------------------------


def _missing(dtype: DType) -> float:
    return float("nan") if dtype.is_float else 0


def _gather_eval(xp: Any, x: Any, indices: Any, axis: int) -> Any:
    n = x.shape[axis]
    valid = (indices >= 0) & (indices < n)
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    if n == 0:
        return xp.full(shape, _missing_of(x), dtype=x.dtype)
    out = xp.take(x, xp.where(valid, indices, 0), axis=axis)
    if valid.all():
        return out
    mask = valid.reshape((1,) * axis + indices.shape + (1,) * (x.ndim - axis - 1))
    return xp.where(mask, out, xp.asarray(_missing_of(x), dtype=x.dtype))


def _missing_of(x: Any) -> float:
    return float("nan") if x.dtype.kind == "f" else 0


def _at(index: Expr, size: int) -> tuple[Expr, Expr]:
    """A data index as u32, and whether it lies in `0 <= index < size` (a negative one wraps far above)."""
    unsigned = index if index.dtype is u32 else expr("cast", (index,), u32)
    return unsigned, expr("less", (unsigned, const(size, u32)), bool_)


def _gather_lower(idx: Indices, x: Any, indices: Any, axis: int) -> Expr:
    rank, n = len(indices.shape), x.shape[axis]
    if n == 0:
        return const(_missing(x.dtype), x.dtype)
    at, valid = _at(indices(idx[axis : axis + rank]), n)
    value = x((*idx[:axis], dynamic(at, n), *idx[axis + rank :]))
    return where(valid, value, const(_missing(x.dtype), x.dtype))


gather_p = primitive(
    "gather",
    shape=lambda x, indices, axis: TensorType(infer_gather("gather", x.shape, indices.shape, axis), x.dtype),
    eval=_gather_eval,
    grad=lambda g, out, x, indices, axis: (scatter_add(g, indices, axis, x.shape[axis]), None),
    lower=_gather_lower,
)


def _scatter_shape(updates: TensorType, indices: TensorType, axis: int, size: int) -> TensorType:
    rank = len(indices.shape)
    if updates.shape[axis : axis + rank] != indices.shape:
        fail(f"scatter_add: the updates {updates} do not hold the indices' shape {indices} at axis {axis}")
    return TensorType((*updates.shape[:axis], size, *updates.shape[axis + rank :]), updates.dtype)


def _scatter_eval(xp: Any, updates: Any, indices: Any, axis: int, size: int) -> Any:
    rank = indices.ndim
    shape = (*updates.shape[:axis], size, *updates.shape[axis + rank :])
    # -1 would be ambiguous where another size is 0
    line = (*updates.shape[:axis], shape_size(indices.shape), *updates.shape[axis + rank :])
    flat = xp.moveaxis(updates.reshape(line), axis, 0)
    out = xp.zeros((size, *shape[:axis], *shape[axis + 1 :]), dtype=updates.dtype)
    where = indices.reshape(-1)
    valid = (where >= 0) & (where < size)
    xp.add.at(out, where[valid], flat[valid])
    return xp.moveaxis(out, 0, axis)


def _scatter_lower(idx: Indices, updates: Any, indices: Any, axis: int, size: int) -> Expr:
    """Each element sums the updates that name it: no atomics, and the same order every time."""
    count = shape_size(indices.shape)
    if count == 0:
        return const(0, updates.dtype)
    var = fresh_var(idx, count)
    at = unravel(of_var(var), indices.shape)
    named = expr("equal", (expr("cast", (indices(at),), u32), from_index(idx[axis])), bool_)
    value = updates((*idx[:axis], *at, *idx[axis + 1 :]))
    return reduce("sum", var, where(named, value, const(0, updates.dtype)))


def _scatter_grad(g: Tensor, out: Tensor, updates: Tensor, indices: Tensor, axis: int, size: int) -> tuple[Any, None]:
    """What was dropped gets 0, where `take` alone would give NaN."""
    from tensorgrad.ops.views import reshape

    known = (indices < size) if indices.dtype is u32 else (indices >= 0) & (indices < size)
    after = updates.ndim - axis - indices.ndim
    return ew.where(reshape(known, *indices.shape, *(1,) * after), take(g, indices, axis), 0.0), None


scatter_add_p = primitive(
    "scatter_add",
    shape=_scatter_shape,
    eval=_scatter_eval,
    grad=_scatter_grad,
    lower=_scatter_lower,
)


def _integers(name: str, indices: TensorLike) -> Tensor:
    found = tensor(indices)
    if found.dtype.kind not in "iu":
        raise DtypeError(f"{name}: indices must be integers, got {found.type}", call_site())
    return found


def take(x: TensorLike, indices: TensorLike, axis: int = 0) -> Tensor:
    """`x` at integer positions of an axis, as NumPy's `take`.

    Args:
        indices: i32 or u32, any shape, which takes the place of the axis.

    Indices that are known while tracing are checked, and negative ones count from the end. Of a
    tensor's, one outside `0 <= index < size` gives NaN (0 for integers), on every device, and
    receives no gradient: on the GPU there is nobody to raise an error.

    Raises:
        ShapeError: an index that is known is out of range.
    """
    x = tensor(x)
    axis = check_axis("take", axis, x.ndim)
    if not isinstance(indices, Tensor):
        indices = _inside("take", np.asarray(indices), x, axis)
    return bind(gather_p, x, _integers("take", indices), axis=axis)


def _inside(name: str, indices: np.ndarray, x: Tensor, axis: int) -> np.ndarray:
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


def scatter_add(updates: TensorLike, indices: TensorLike, axis: int, size: int) -> Tensor:
    """Zeros with `updates` added at integer positions of an axis: the gradient of `take`.

    Args:
        updates: `[..., *indices.shape, ...]` with the indices' axes at `axis`.
        indices: positions; repeated ones add up, those outside the size are dropped.
        size: of the axis that replaces the indices' axes.
    """
    updates, indices = tensor(updates), _integers("scatter_add", indices)
    if updates.dtype is bool_:
        updates = cast(updates, i32)
    axis = check_axis("scatter_add", axis, updates.ndim - indices.ndim + 1)
    if size < 0:
        fail(f"scatter_add: the size must not be negative, got {size}")
    return bind(scatter_add_p, updates, indices, axis=axis, size=size)


def embedding(weight: TensorLike, indices: TensorLike) -> Tensor:
    """Rows of a table `[rows, features]` at integer indices: `[*indices.shape, features]`."""
    return take(weight, indices, 0)


def one_hot(indices: TensorLike, num_classes: int, dtype: DType = f32) -> Tensor:
    """A new last axis of `num_classes`, 1 at the index and 0 elsewhere."""
    from tensorgrad.ops.views import expand_dims
    from tensorgrad.shape import infer_one_hot

    found = _integers("one_hot", indices)
    shape = infer_one_hot("one_hot", found.shape, num_classes)
    hit = expand_dims(cast(found, i32), -1) == iota(shape, len(shape) - 1)
    return cast(hit, dtype)
