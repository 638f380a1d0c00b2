"""Tensors joined along an axis, and cut into parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tensorgrad.errors import ArgumentError
from tensorgrad.graph import TensorType
from tensorgrad.lower.expr import Expr, below, where
from tensorgrad.lower.index import Indices
from tensorgrad.ops.core import TensorLike, one_axis, tensor
from tensorgrad.ops.views import expand_dims, narrow, reshape
from tensorgrad.primitive import primitive
from tensorgrad.shape import check_axis, fail, infer_concat, one_or_more, whole
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

    axis = one_axis("concat", axis, kw, 0)
    _several("concat", tensors)
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


def _several(name: str, tensors: Any) -> None:
    if isinstance(tensors, Tensor):
        raise ArgumentError(f"{name} takes a list or tuple of tensors, got one, {tensors.type}")


def stack(tensors: Sequence[TensorLike], axis: int = 0, **kw: Any) -> Tensor:
    """Tensors of one shape joined along a new axis."""
    axis = one_axis("stack", axis, kw, 0)
    _several("stack", tensors)
    return concat([expand_dims(t, axis) for t in tensors], axis)


def split(x: TensorLike, size: int | Sequence[int], axis: int = 0, **kw: Any) -> tuple[Tensor, ...]:
    """Parts of an axis, as PyTorch's: of `size` elements each (the last may be smaller), or of the sizes given."""
    x = tensor(x)
    axis = check_axis("split", one_axis("split", axis, kw, 0), x.ndim)
    n = x.shape[axis]
    sizes = [whole("split", "a size", part) for part in one_or_more(size)]
    if not isinstance(size, Iterable):
        (part,) = sizes
        if part <= 0:
            fail(f"split: the size of a part must be positive, got {part}")
        sizes = [min(part, n - i) for i in range(0, n or 1, part)]
    if sum(sizes) != n:
        fail(f"split: sizes {sizes} do not add up to {n}, the size of axis {axis}")
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return tuple(narrow(x, axis, start, part) for start, part in zip(starts, sizes, strict=True))


def chunk(x: TensorLike, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` parts of an axis, equal but for the last, as PyTorch's."""
    x = tensor(x)
    dim = check_axis("chunk", dim, x.ndim)
    if chunks < 1:
        fail(f"chunk: the number of parts must be positive, got {chunks}")
    if not x.shape[dim]:
        return (x,) * chunks
    return split(x, -(-x.shape[dim] // chunks), dim)


def tensor_split(x: TensorLike, indices_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of an axis: so many of nearly equal size, or cut before the indices given."""
    x = tensor(x)
    dim = check_axis("tensor_split", dim, x.ndim)
    n = x.shape[dim]
    if not isinstance(indices_or_sections, Iterable):
        parts = whole("tensor_split", "the number of parts", indices_or_sections)
        if parts < 1:
            fail(f"tensor_split: the number of parts must be positive, got {parts}")
        size, larger = divmod(n, parts)
        return split(x, [size + (i < larger) for i in range(parts)], dim)
    bounds = [slice(None, at).indices(n)[1] for at in indices_or_sections]
    return tuple(
        narrow(x, dim, start, max(0, end - start)) for start, end in zip([0, *bounds], [*bounds, n], strict=True)
    )


def unbind(x: TensorLike, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices of an axis, which goes."""
    x = tensor(x)
    dim = check_axis("unbind", dim, x.ndim)
    shape = (*x.shape[:dim], *x.shape[dim + 1 :])
    return tuple(reshape(narrow(x, dim, i, 1), *shape) for i in range(x.shape[dim]))


def hstack(tensors: Sequence[TensorLike]) -> Tensor:
    """Tensors joined along the second axis, vectors along their only one."""
    xs = [_with_axes(t, 1) for t in tensors]
    return concat(xs, 0 if xs and xs[0].ndim == 1 else 1)


def vstack(tensors: Sequence[TensorLike]) -> Tensor:
    """Tensors joined along the first axis, vectors as rows."""
    return concat([_with_axes(t, 2) for t in tensors], 0)


def dstack(tensors: Sequence[TensorLike]) -> Tensor:
    """Tensors joined along the third axis, which vectors and matrices get."""
    return concat([x if (x := _with_axes(t, 2)).ndim > 2 else expand_dims(x, 2) for t in tensors], 2)


def column_stack(tensors: Sequence[TensorLike]) -> Tensor:
    """Tensors joined along the second axis, vectors as columns."""
    xs = [tensor(t) for t in tensors]
    return concat([x if x.ndim > 1 else reshape(x, x.size, 1) for x in xs], 1)


def _with_axes(x: TensorLike, ndim: int) -> Tensor:
    """The tensor with axes of size 1 in front, at least `ndim` in all."""
    x = tensor(x)
    return reshape(x, *(1,) * (ndim - x.ndim), *x.shape)
