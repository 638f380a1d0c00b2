"""Running results along an axis: sums, products, extremes, and the recurrence `h[t] = a[t] * h[t-1] + b[t]`.

The primitives run along the last axis, forward or in reverse, in rows of at most `LONGEST` elements. A longer row is
cut into parts: each is scanned by itself, then the parts' last results are, and what stands before a part is combined
with all of its results. So there is enough to do at once, and f32 sums lose fewer digits.

The gradients are scans again. Those of a product and of an extreme are recurrences, which divide by nothing:
zeros in a product are no special case.

Source: Blelloch, Prefix sums and their applications (1990), whose section on recurrences has their combination.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tensorgrad.callsite import call_site
from tensorgrad.dtypes import DType, bool_, f16, f32, i32
from tensorgrad.errors import ArgumentError, DtypeError
from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import Axis, TensorLike, broadcast_to, cast, meet, one_axis, spread, tensor
from tensorgrad.ops.custom import custom_grad
from tensorgrad.ops.indexing import iota
from tensorgrad.ops.joining import concat
from tensorgrad.ops.padding import pad
from tensorgrad.ops.reduce import IDENTITY, require_float
from tensorgrad.ops.views import expand_dims, narrow, reshape, swapaxes
from tensorgrad.primitive import Primitive, primitive
from tensorgrad.shape import check_axis, fail
from tensorgrad.tensor import Tensor
from tensorgrad.trace import bind

LONGEST = 1 << 14
"""Elements of a row that is scanned in one go: by a workgroup on a GPU, in turn by one lane on a CPU."""

FEW = 64
"""Up to so many rows, twice as long ones are cut: they would leave the device idle."""


class ValuesAndIndices(NamedTuple):
    """What PyTorch returns from a choice along an axis: the elements, and their positions as i32."""

    values: Tensor
    indices: Tensor


# The primitives ---------------------------------------------------------------------------


def _scan(
    name: str, evaluate: Callable[..., Any], grad: Callable[..., tuple[Tensor | None, ...]] | None = None
) -> Primitive:
    def eval_(xp: Any, *xs: Any, reverse: bool) -> Any:
        xs = tuple(x[..., ::-1] for x in xs) if reverse else xs
        out = evaluate(xp, *xs)
        return out[..., ::-1] if reverse else out

    return primitive(name, shape=lambda *xs, reverse: xs[-1], eval=eval_, grad=grad)


def _linear_eval(xp: Any, a: Any, b: Any) -> Any:
    out = xp.array(b, dtype=xp.result_type(a, b))
    for t in range(1, out.shape[-1]):
        out[..., t] += xp.where(a[..., t] == 0, 0, a[..., t] * out[..., t - 1])
    return out


def _product_grad(g: Tensor, out: Tensor, x: Tensor, reverse: bool) -> tuple[Tensor]:
    """Each factor's share: the product before it, times the sum of what follows, of which it is no part."""
    later = bind(linear_scan_p, _shift(x, not reverse, 0), g, reverse=not reverse)
    return (later * _shift(out, reverse, 1),)


def _linear_grad(g: Tensor, out: Tensor, a: Tensor, b: Tensor, reverse: bool) -> tuple[Tensor, Tensor]:
    later = bind(linear_scan_p, _shift(a, not reverse, 0), g, reverse=not reverse)
    return later * _shift(out, reverse, 0), later


def _taken(x: Tensor, out: Tensor) -> Tensor:
    """Whether each element is the extreme so far; of a NaN all that follows is NaN."""
    found = ew.equal(x, out)
    return found | ew.isnan(x) if x.dtype.is_float else found


def _extreme_grad(g: Tensor, out: Tensor, x: Tensor, reverse: bool) -> tuple[Tensor]:
    """Every element gets the gradients from where it was taken on until the next one was."""
    taken = cast(_taken(x, out), g.dtype)
    return (_along(linear_scan_p, 1.0 - _shift(taken, not reverse, 1), g, reverse=not reverse) * taken,)


cumsum_p = _scan(
    "cumsum",
    lambda xp, x: xp.cumsum(x, axis=-1, dtype=x.dtype),
    lambda g, out, x, reverse: (bind(cumsum_p, g, reverse=not reverse),),
)
cumprod_p = _scan("cumprod", lambda xp, x: xp.cumprod(x, axis=-1, dtype=x.dtype), _product_grad)
cummax_p = _scan("cummax", lambda xp, x: xp.maximum.accumulate(x, axis=-1), _extreme_grad)
cummin_p = _scan("cummin", lambda xp, x: xp.minimum.accumulate(x, axis=-1), _extreme_grad)
linear_scan_p = _scan("linear_scan", _linear_eval, _linear_grad)

_COMBINE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cumsum": ew.add,
    "cumprod": ew.mul,
    "cummax": ew.maximum,
    "cummin": ew.minimum,
}


def identity(op: str, dtype: DType) -> float:
    """What a scan's result is before its first element."""
    reduction = {"cumsum": "sum", "cummax": "max", "cummin": "min"}
    return IDENTITY[reduction[op]](dtype) if op in reduction else 1 if op == "cumprod" else 0


def _shift(x: Tensor, reverse: bool, fill: float) -> Tensor:
    """What stands before each element of a scan; `fill` before the first."""
    n = x.shape[-1]
    if n == 0:
        return x
    return pad_last(narrow(x, -1, int(reverse), n - 1), int(not reverse), int(reverse), fill)


def pad_last(x: Tensor, before: int, after: int, fill: float) -> Tensor:
    """The tensor with a number put before and after each row."""
    return pad(x, (*((0, 0),) * (x.ndim - 1), (before, after)), fill)


# Long rows --------------------------------------------------------------------------------


def _along(p: Primitive, *xs: Tensor, reverse: bool = False) -> Tensor:
    """The scan along the last axis, of rows of any length."""
    n = xs[0].shape[-1]
    few = math.prod(xs[0].shape[:-1]) <= FEW
    if n <= (LONGEST if few else 2 * LONGEST):
        return bind(p, *xs, reverse=reverse)
    size = builtins.min(LONGEST, 1 << (n.bit_length() // 2))
    parts = -(-n // size)
    lead = xs[0].shape[:-1]
    # what is filled up changes no result
    fills = (1, 0) if p is linear_scan_p else (identity(p.name, xs[0].dtype),)
    cut = [
        reshape(pad_last(x, 0, parts * size - n, fill), *lead, parts, size) for x, fill in zip(xs, fills, strict=True)
    ]
    own = bind(p, *cut, reverse=reverse)
    if p is linear_scan_p:
        decay = bind(cumprod_p, cut[0], reverse=reverse)
        before = _shift(_along(p, _last(decay, reverse), _last(own, reverse), reverse=reverse), reverse, 0)
        out = own + ew.where(ew.equal(decay, 0), 0, decay * expand_dims(before, -1))
    else:
        before = _shift(_along(p, _last(own, reverse), reverse=reverse), reverse, fills[0])
        out = _COMBINE[p.name](expand_dims(before, -1), own)
    return narrow(reshape(out, *lead, parts * size), -1, 0, n)


def _last(x: Tensor, reverse: bool) -> Tensor:
    return x[..., 0 if reverse else -1]


def _on_axis(p: Primitive, x: Tensor, axis: int) -> Tensor:
    return swapaxes(_along(p, swapaxes(x, axis, -1)), axis, -1)


def axis_of(name: str, x: Tensor, axis: Axis, kw: dict[str, Any], default: int | None = -1) -> tuple[Tensor, int]:
    """The tensor, with an axis if it has none, and the axis counted from the front; PyTorch's `dim=` is accepted."""
    axis = one_axis(name, axis, kw, default)
    if axis is None or isinstance(axis, Iterable):
        raise ArgumentError(f"{name} runs along one axis, got {axis!r}")
    return (x, check_axis(name, axis, x.ndim)) if x.shape else (reshape(x, 1), check_axis(name, axis, 1))


def _cumulated(p: Primitive, x: TensorLike, axis: int | None, dtype: DType | None, kw: dict[str, Any]) -> Tensor:
    x = tensor(x)
    x, shape = (cast(x, dtype) if dtype is not None else cast(x, i32) if x.dtype is bool_ else x), x.shape
    x, axis = axis_of(p.name, x, axis, kw, None)
    # an f16 sum of many terms would stop growing
    out = _on_axis(p, cast(x, f32) if x.dtype is f16 else x, axis)
    return reshape(cast(out, x.dtype), *shape)


# The public functions -----------------------------------------------------------------------


def cumsum(x: TensorLike, axis: int | None = None, dtype: DType | None = None, **kw: Any) -> Tensor:
    """The sums of all elements up to each one, along an axis.

    Args:
        axis: which; PyTorch's `dim=` is accepted.
        dtype: of the result and of the sums; by default the tensor's, of bools i32. Integers wrap around.

    Returns:
        The tensor's shape.

    Raises:
        ShapeError: there is no such axis.
        TypeError: no axis is given.

    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(lambda x: tg.cumsum(x, 1), device="numpy")([[1.0, 2.0, 3.0], [0.5, 0.5, 0.5]]))
    array([[1. , 3. , 6. ],
           [0.5, 1. , 1.5]], dtype=float32)
    """
    return _cumulated(cumsum_p, x, axis, dtype, kw)


def cumprod(x: TensorLike, axis: int | None = None, dtype: DType | None = None, **kw: Any) -> Tensor:
    """The products of all elements up to each one, along an axis; see `cumsum`. Zeros have their right gradients.

    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(tg.grad(lambda x: tg.cumprod(x, 0).sum()), device="numpy")([2.0, 0.0, 3.0]))
    array([1., 8., 0.], dtype=float32)
    """
    return _cumulated(cumprod_p, x, axis, dtype, kw)


def linear_scan(a: TensorLike, b: TensorLike, axis: int = -1, reverse: bool = False, **kw: Any) -> Tensor:
    """The recurrence `h[t] = a[t] * h[t-1] + b[t]` along an axis, from h = 0: decaying sums, filters, returns.

    Where a is 0 the recurrence begins anew, also after infinity or NaN: so it adds up segments.

    Args:
        a, b: broadcast to each other; `a` at the first element has no effect.
        axis: along which; `dim=` is accepted.
        reverse: from the last element to the first: `h[t] = a[t] * h[t+1] + b[t]`.

    Raises:
        ShapeError: shapes that do not broadcast, or there is no such axis.
        DtypeError: bools, which have no products.

    Infinite `a` give NaN in long rows, where factors are multiplied with each other first.

    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(lambda x: tg.linear_scan(0.5, x), device="numpy")([8.0, 0.0, 0.0, 1.0]))
    array([8., 4., 2., 2.], dtype=float32)
    """
    dtype, operands = meet(a, b)
    if dtype is bool_:
        raise DtypeError("linear_scan is not defined for bool tensors; convert with .astype(tg.f32)", call_site())
    a, b = spread("linear_scan", *operands)
    shape = b.shape
    b, axis = axis_of("linear_scan", b, axis, kw)
    wide = f32 if dtype is f16 else dtype
    a, b = (swapaxes(cast(reshape(x, *b.shape), wide), axis, -1) for x in (a, b))
    first = b.shape[-1] - 1 if reverse else 0
    a = ew.where(ew.equal(iota(b.shape[-1:], 0), first), 0, a)  # times the 0 before it, infinity would be NaN
    return reshape(cast(swapaxes(_along(linear_scan_p, a, b, reverse=reverse), axis, -1), dtype), *shape)


def _extreme(p: Primitive, x: TensorLike, axis: int | None, kw: dict[str, Any]) -> ValuesAndIndices:
    given = tensor(x)
    x, axis = axis_of(p.name, cast(given, i32) if given.dtype is bool_ else given, axis, kw, None)
    line = swapaxes(x, axis, -1)
    # the parts of a long row meet in a maximum, among whose ties the gradient would be shared
    values = custom_grad(_along(p, ew.stop_gradient(line)), _extreme_grad, line, args=(False,))
    # the last of equal ones, as in PyTorch
    indices = _along(cummax_p, ew.where(_taken(line, values), iota(line.shape, line.ndim - 1), 0))
    found = (swapaxes(cast(values, given.dtype), axis, -1), swapaxes(indices, axis, -1))
    return ValuesAndIndices(*(reshape(t, *given.shape) for t in found))


def cummax(x: TensorLike, axis: int | None = None, **kw: Any) -> ValuesAndIndices:
    """The largest element up to each one, along an axis, and its position: of equal ones the last.

    Args:
        axis: which; PyTorch's `dim=` is accepted.

    Returns:
        `(values, indices)` of the tensor's shape, the indices i32. After a NaN all values are NaN. The gradient goes
        to the elements at the indices.

    Raises:
        ShapeError: there is no such axis.

    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(lambda x: tg.cummax(x, 0).indices, device="numpy")([1.0, 3.0, 2.0, 3.0]))
    array([0, 1, 1, 3], dtype=int32)
    """
    return _extreme(cummax_p, x, axis, kw)


def cummin(x: TensorLike, axis: int | None = None, **kw: Any) -> ValuesAndIndices:
    """The smallest element up to each one, along an axis, and its position; see `cummax`."""
    return _extreme(cummin_p, x, axis, kw)


def logcumsumexp(x: TensorLike, axis: int | None = None, **kw: Any) -> Tensor:
    """`log(cumsum(exp(x)))` along an axis, without overflow, and without underflow beside a later maximum.

    Args:
        axis: which; PyTorch's `dim=` is accepted.

    Raises:
        ShapeError: there is no such axis.
        DtypeError: a tensor that is not of floats.

    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(lambda x: tg.logcumsumexp(x, 0), device="numpy")([-1000.0, 0.0, 1000.0]))
    array([-1000.,     0.,  1000.], dtype=float32)
    """
    given = require_float("logcumsumexp", tensor(x))
    x, axis = axis_of("logcumsumexp", given, axis, kw, None)
    line = swapaxes(cast(ew.stop_gradient(x), f32) if x.dtype is f16 else ew.stop_gradient(x), axis, -1)
    top = _along(cummax_p, line)
    top = ew.where(ew.equal(ew.abs(top), math.inf), 0.0, top)  # a row may begin with -inf
    decay = ew.exp(_shift(top, False, 0) - top)
    total = ew.log(_along(linear_scan_p, ew.minimum(decay, 1.0), ew.exp(line - top))) + top
    out = cast(swapaxes(total, axis, -1), x.dtype)
    return reshape(custom_grad(out, _log_grad, x, args=(axis,)), *given.shape)


def _log_grad(g: Tensor, out: Tensor, x: Tensor, axis: int) -> tuple[Tensor]:
    """The sum of `g[t] * exp(x - out[t])` over t from the element's own on; `out` grows, so no factor is above 1."""
    g, out, x = (swapaxes(t, axis, -1) for t in (g, out, x))
    low = ew.where(ew.equal(out, -math.inf), 0.0, out)
    decay = ew.where(ew.equal(out, -math.inf), 0.0, ew.exp(out - _shift(low, True, math.inf)))
    total = _along(linear_scan_p, decay, g, reverse=True)
    return (swapaxes(ew.exp(x - low) * total, axis, -1),)


def diff(
    x: TensorLike,
    n: int = 1,
    axis: int = -1,
    prepend: TensorLike | None = None,
    append: TensorLike | None = None,
    **kw: Any,
) -> Tensor:
    """The differences of neighbours along an axis, `n` times over.

    Args:
        axis: along which; PyTorch's `dim=` is accepted.
        prepend, append: what is put before and after the tensor first; they broadcast along the other axes.

    Raises:
        ShapeError: there is no such axis, or `n` is negative.

    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(tg.diff, device="numpy")([1.0, 4.0, 9.0]))
    array([3., 5.], dtype=float32)
    """
    x = tensor(x)
    axis = check_axis("diff", one_axis("diff", axis, kw, -1), x.ndim)
    if n < 0 or not x.shape:
        fail(f"diff: takes differences a number of times along an axis, got n={n} and {x.type}")
    parts = [_end(tensor(e), x, axis) for e in (prepend, x, append) if e is not None]
    x = concat(parts, axis) if len(parts) > 1 else x
    for _ in range(builtins.min(n, x.shape[axis])):
        size = builtins.max(x.shape[axis] - 1, 0)
        last, first = narrow(x, axis, x.shape[axis] - size, size), narrow(x, axis, 0, size)
        x = ew.not_equal(last, first) if x.dtype is bool_ else last - first
    return x


def _end(e: Tensor, x: Tensor, axis: int) -> Tensor:
    """What is put at an end: a number counts as one element."""
    size = e.shape[axis] if e.ndim == x.ndim else 1
    return broadcast_to(e, *(size if i == axis else n for i, n in enumerate(x.shape)))
