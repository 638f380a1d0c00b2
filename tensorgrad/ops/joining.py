"""Tensors joined along an axis, and cut into parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorgrad.graph import TensorType
from tensorgrad.lower.expr import Expr, below, where
from tensorgrad.lower.index import Indices
from tensorgrad.ops.core import TensorLike, tensor
from tensorgrad.ops.views import expand_dims, narrow
from tensorgrad.primitive import primitive
from tensorgrad.shape import check_axis, fail, infer_concat
from tensorgrad.tensor import Tensor
from tensorgrad.trace import bind

MAX_PARTS = 6
"""Tensors joined by one kernel, which can bind 8 buffers on any device."""


def _concat_shape(*xs: TensorType, axis: int) -> TensorType:
    return TensorType(infer_concat("concat", [x.shape for x in xs], axis), xs[0].dtype)


def _concat_grad(g: Tensor, out: Tensor, *xs: Tensor, axis: int) -> tuple[Tensor, ...]:
    parts, start = [], 0
    for x in xs:
        parts.append(narrow(g, axis, start, x.shape[axis]))
        start += x.shape[axis]
    return tuple(parts)


def _concat_lower(idx: Indices, *xs: Any, axis: int) -> Expr:
    value, start = None, sum(x.shape[axis] for x in xs)
    for x in reversed(xs):
        start -= x.shape[axis]
        part = x((*idx[:axis], idx[axis] + -start, *idx[axis + 1 :]))
        value = part if value is None else where(below(idx[axis], start + x.shape[axis]), part, value)
    assert value is not None
    return value


concat_p = primitive(
    "concat",
    shape=_concat_shape,
    eval=lambda xp, *xs, axis: xp.concatenate(xs, axis=axis),
    grad=_concat_grad,
    lower=_concat_lower,
)


def concat(tensors: Sequence[TensorLike], axis: int = 0, **kw: Any) -> Tensor:
    """Tensors joined along an axis; their other sizes agree."""
    from tensorgrad.ops.core import meet

    axis = kw.pop("dim", axis)
    if not tensors:
        infer_concat("concat", [], axis)
    _, xs = meet(*tensors)
    infer_concat("concat", [x.shape for x in xs], axis)
    axis = check_axis("concat", axis, xs[0].ndim)
    full = [x for x in xs if x.shape[axis]] or xs[:1]
    while len(full) > MAX_PARTS:
        full = [concat(full[i : i + MAX_PARTS], axis) for i in range(0, len(full), MAX_PARTS)]
    return full[0] if len(full) == 1 else bind(concat_p, *full, axis=axis)


cat = concat


def stack(tensors: Sequence[TensorLike], axis: int = 0, **kw: Any) -> Tensor:
    """Tensors of one shape joined along a new axis."""
    axis = kw.pop("dim", axis)
    return concat([expand_dims(t, axis) for t in tensors], axis)


def split(x: TensorLike, size: int | Sequence[int], axis: int = 0, **kw: Any) -> tuple[Tensor, ...]:
    """Parts of an axis, as PyTorch's: of `size` elements each (the last may be smaller), or of the sizes given."""
    x = tensor(x)
    axis = check_axis("split", kw.pop("dim", axis), x.ndim)
    n = x.shape[axis]
    if isinstance(size, int) and size <= 0:
        fail(f"split: the size of a part must be positive, got {size}")
    sizes = [min(size, n - i) for i in range(0, n, size)] if isinstance(size, int) else list(size)
    if sum(sizes) != n:
        fail(f"split: sizes {sizes} do not add up to {n}, the size of axis {axis}")
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return tuple(narrow(x, axis, start, part) for start, part in zip(starts, sizes, strict=True))
