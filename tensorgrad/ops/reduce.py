"""Reductions over axes, and what is made of them."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from tensorgrad.callsite import call_site
from tensorgrad.dtypes import DType, bool_, f32, i32
from tensorgrad.errors import DtypeError
from tensorgrad.graph import TensorType
from tensorgrad.lower.expr import Expr, const, expr, reduce
from tensorgrad.lower.index import Indices, Var, of_var, unravel
from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import Axis, TensorLike, broadcast_to, cast, either, one_axis, refuse_keywords, tensor
from tensorgrad.ops.views import narrow, pad_ends, permute, reshape
from tensorgrad.primitive import Primitive, primitive
from tensorgrad.shape import check_axes, check_axis, fail, infer_reduce, shape_size
from tensorgrad.tensor import Tensor
from tensorgrad.trace import bind


def fresh_var(idx: Indices, size: int) -> Var:
    """A loop variable that none of the indices uses: numbered by how deep the loops nest."""
    from tensorgrad.lower.index import digits, dynamics

    used = -1
    for index in idx:
        inside = digits(index).union(*(e.digits for e in dynamics(index)))
        used = builtins.max([used, *(int(d.var.name[1:]) for d in inside if d.var.name[0] == "k")])
    return Var(f"k{used + 1}", size)


def keep_axes(x: Tensor, like: Tensor, axes: tuple[int, ...]) -> Tensor:
    """A reduced tensor broadcast back over the axes that its reduction removed."""
    kept = tuple(1 if i in axes else n for i, n in enumerate(like.shape))
    return broadcast_to(reshape(x, *kept), *like.shape)


def _reduction(
    name: str,
    evaluate: Callable[..., Any],
    grad: Callable[..., tuple[Any, ...]],
    identity: Callable[[DType], float],
) -> Primitive:
    def lower(idx: Indices, x: Any, axes: tuple[int, ...]) -> Expr:
        sizes = [x.shape[a] for a in axes]
        size = shape_size(sizes)
        if size == 0:
            return const(identity(x.dtype), x.dtype)
        var = fresh_var(idx, size)
        inner, kept = iter(unravel(of_var(var), sizes)), iter(idx)
        where = tuple(next(inner) if i in axes else next(kept) for i in range(len(x.shape)))
        return reduce(name, var, x(where)) if size > 1 else x(where)

    return primitive(
        name,
        shape=lambda x, axes: TensorType(infer_reduce(name, x.shape, axes), x.dtype),
        eval=evaluate,
        grad=grad,
        lower=lower,
    )


def _extreme_grad(g: Tensor, out: Tensor, x: Tensor, axes: tuple[int, ...]) -> tuple[Tensor]:
    hit = cast(x == keep_axes(out, x, axes), g.dtype)
    share = g / sum(hit, axes)
    return (keep_axes(share, x, axes) * hit,)


def _lowest(dtype: DType) -> float:
    return float("-inf") if dtype.is_float else -(2**31) if dtype is i32 else 0


def _highest(dtype: DType) -> float:
    return float("inf") if dtype.is_float else 2**31 - 1 if dtype is i32 else 2**32 - 1


GROUP = 16
"""Elements of a product that are multiplied out for each of them, for the gradient."""


def _others(x: Tensor) -> Tensor:
    """For each element of a row the product of its other elements: right where some are 0, and so are its gradients.

    A long row is one of groups: those beside the element in its group, times the other groups.
    """
    *lead, size = x.shape
    if size <= GROUP:
        own = ew.equal(_positions(size, 0), _positions(size, 1))
        return prod(ew.where(own, 1, reshape(x, *lead, 1, size)), -1)
    count = -(-size // GROUP)
    groups = reshape(pad_ends(x, (*[(0, 0, 0)] * len(lead), (0, count * GROUP - size, 0)), 1), *lead, count, GROUP)
    outside = reshape(_others(prod(groups, -1)), *lead, count, 1)
    return narrow(reshape(_others(groups) * outside, *lead, count * GROUP), -1, 0, size)


def _positions(size: int, axis: int) -> Tensor:
    from tensorgrad.ops.indexing import iota

    return iota((size, size), axis)


def _prod_grad(g: Tensor, out: Tensor, x: Tensor, axes: tuple[int, ...]) -> tuple[Tensor]:
    order = (*(i for i in range(x.ndim) if i not in axes), *axes)
    turned = permute(x, *order)
    kept = turned.shape[: x.ndim - len(axes)]
    rows = reshape(turned, *kept, shape_size([x.shape[i] for i in axes]))
    others = reshape(_others(rows), *turned.shape)
    return (keep_axes(g, x, axes) * permute(others, *(order.index(i) for i in range(x.ndim))),)


IDENTITY: dict[str, Callable[[DType], float]] = {
    "sum": lambda dtype: 0,
    "prod": lambda dtype: 1,
    "max": _lowest,
    "min": _highest,
}

sum_p = _reduction(
    "sum",
    lambda xp, x, axes: xp.sum(x, axis=axes, dtype=x.dtype),
    lambda g, out, x, axes: (keep_axes(g, x, axes),),
    IDENTITY["sum"],
)
prod_p = _reduction("prod", lambda xp, x, axes: xp.prod(x, axis=axes, dtype=x.dtype), _prod_grad, IDENTITY["prod"])
max_p = _reduction(
    "max",
    lambda xp, x, axes: xp.max(x, axis=axes, initial=_lowest_np(x)),
    _extreme_grad,
    _lowest,
)
min_p = _reduction(
    "min",
    lambda xp, x, axes: xp.min(x, axis=axes, initial=_highest_np(x)),
    _extreme_grad,
    _highest,
)


def _lowest_np(x: Any) -> float:
    return _lowest(_dtype_of(x))


def _highest_np(x: Any) -> float:
    return _highest(_dtype_of(x))


def _dtype_of(x: Any) -> DType:
    from tensorgrad.dtypes import from_numpy

    return from_numpy(x.dtype)


def _arg_reduction(name: str, evaluate: Callable[..., Any]) -> Primitive:
    def lower(idx: Indices, x: Any, axis: int) -> Expr:
        var = fresh_var(idx, x.shape[axis])
        found = reduce(name, var, x((*idx[:axis], of_var(var), *idx[axis:])))
        return expr("cast", (found,), i32)

    return primitive(
        name,
        shape=lambda x, axis: TensorType(infer_reduce(name, x.shape, axis), i32),
        eval=evaluate,
        grad=lambda g, out, x, axis: (None,),
        lower=lower,
    )


argmax_p = _arg_reduction("argmax", lambda xp, x, axis: xp.argmax(x, axis=axis).astype("int32"))
argmin_p = _arg_reduction("argmin", lambda xp, x, axis: xp.argmin(x, axis=axis).astype("int32"))


def over(name: str, x: Tensor, axis: Axis, keepdims: bool, kw: dict[str, Any]) -> tuple[tuple[int, ...], bool]:
    """The axes that a reduction removes (all, where None are given), and whether their sizes stay as 1.

    Args:
        kw: PyTorch's `dim` and `keepdim`.
    """
    axis, keepdims = either("axis", axis, "dim", kw), kw.pop("keepdim", keepdims)
    refuse_keywords(name, kw)
    return check_axes(name, axis, x.ndim), keepdims


def reduction(p: Primitive, x: Tensor, axis: Axis, keepdims: bool, kw: dict[str, Any]) -> Tensor:
    """A reducing primitive over axes; see `over`."""
    axes, keepdims = over(p.name, x, axis, keepdims, kw)
    out = bind(p, x, axes=axes) if axes else x
    return reshape(out, *infer_reduce(p.name, x.shape, axes, True)) if keepdims else out


def _summands(x: TensorLike, kw: dict[str, Any]) -> Tensor:
    """The tensor in the dtype that is asked for; bools are counted in i32."""
    x, dtype = tensor(x), kw.pop("dtype", None)
    return cast(x, dtype) if dtype is not None else cast(x, i32) if x.dtype is bool_ else x


def sum(x: TensorLike, axis: Axis = None, keepdims: bool = False, **kw: Any) -> Tensor:
    """The sum over axes (all by default); of integers it stays i32, of bools it counts.

    Args:
        axis: one axis, several, or None. PyTorch's `dim=` is accepted.
        keepdims: leave the summed axes with size 1. PyTorch's `keepdim=` is accepted.
        dtype: convert the elements first.
    """
    return reduction(sum_p, _summands(x, kw), axis, keepdims, kw)


def prod(x: TensorLike, axis: Axis = None, keepdims: bool = False, **kw: Any) -> Tensor:
    """The product over axes (all by default); of integers it stays i32, and wraps beyond. Of nothing it is 1.

    Its gradient is right where elements are 0.

    Args:
        axis, keepdims, dtype: as `sum`.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([[0.0, 2.0], [3.0, 4.0]], np.float32)
    >>> tg.sync(tg.jit(lambda x: tg.prod(x, 1), device="numpy")(x)).tolist()
    [0.0, 12.0]
    """
    return reduction(prod_p, _summands(x, kw), axis, keepdims, kw)


def mean(x: TensorLike, axis: Axis = None, keepdims: bool = False, **kw: Any) -> Tensor:
    """The mean over axes, in floating point; of no elements it is NaN.

    Args:
        axis, keepdims, dtype: as `sum`.
    """
    x = _summands(x, kw)
    dtype = x.dtype if x.dtype.is_float else f32
    axes, keepdims = over("mean", x, axis, keepdims, kw)
    count = shape_size([x.shape[a] for a in axes])
    total = sum(cast(x, f32), axes, keepdims)  # which an f16 may not hold
    return cast(total * (1 / count) if count else total / 0.0, dtype)


def max(x: TensorLike, axis: Axis | Tensor = None, keepdims: bool = False, **kw: Any) -> Tensor:
    """The largest element over axes; NaN if there is one. Ties share the gradient.

    As NumPy's it gives the values alone; their positions are `argmax`'s. Of two tensors it is `maximum`, as PyTorch's.
    """
    return _extreme(max_p, x, axis, keepdims, kw)


def min(x: TensorLike, axis: Axis | Tensor = None, keepdims: bool = False, **kw: Any) -> Tensor:
    """The smallest element over axes, or of two tensors; see `max`."""
    return _extreme(min_p, x, axis, keepdims, kw)


amax, amin = max, min


def _extreme(p: Primitive, x: TensorLike, axis: Axis | Tensor, keepdims: bool, kw: dict[str, Any]) -> Tensor:
    if isinstance(axis, Tensor):
        return (ew.maximum if p is max_p else ew.minimum)(x, axis)
    x = tensor(x)
    axes, keepdims = over(p.name, x, axis, keepdims, kw)
    if shape_size([x.shape[a] for a in axes]) == 0:
        fail(f"{p.name}: there is no {p.name} of no elements (axes {axes} of {x.type})")
    if x.dtype is bool_:
        return cast(reduction(p, cast(x, i32), axes, keepdims, {}), bool_)
    return reduction(p, x, axes, keepdims, {})


def _arg(p: Primitive, x: TensorLike, axis: int | None, keepdims: bool, kw: dict[str, Any]) -> Tensor:
    x = tensor(x)
    keepdims = kw.pop("keepdim", keepdims)
    axis = one_axis(p.name, axis, kw, None)
    if x.dtype is bool_:
        x = cast(x, i32)
    if axis is None:
        return _arg(p, reshape(x, -1), 0, False, {})
    axis = check_axis(p.name, axis, x.ndim)
    if x.shape[axis] == 0:
        fail(f"{p.name}: there is no {p.name} of no elements (axis {axis} of {x.type})")
    out = bind(p, x, axis=axis)
    return reshape(out, *infer_reduce(p.name, x.shape, axis, True)) if keepdims else out


def argmax(x: TensorLike, axis: int | None = None, keepdims: bool = False, **kw: Any) -> Tensor:
    """The position of the largest element along an axis (of all elements by default), i32.

    The first of several; a NaN counts as the largest.
    """
    return _arg(argmax_p, x, axis, keepdims, kw)


def argmin(x: TensorLike, axis: int | None = None, keepdims: bool = False, **kw: Any) -> Tensor:
    """The position of the smallest element along an axis, i32; as `argmax`."""
    return _arg(argmin_p, x, axis, keepdims, kw)


def require_float(name: str, x: Tensor) -> Tensor:
    """The tensor, if it is of floats; else a DtypeError."""
    if not x.dtype.is_float:
        message = f"{name} needs a floating-point tensor, got {x.type}; convert with .astype(tg.f32)"
        raise DtypeError(message, call_site())
    return x
