"""Reductions that are made of sums and extremes: variances, norms, truth of several, counts."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np

from tensorgrad.dtypes import bool_, f32, u32
from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import Axis, TensorLike, cast, in_f32, require, tensor
from tensorgrad.ops.custom import custom_grad
from tensorgrad.ops.reduce import keep_axes, max_p, mean, min_p, over, reduction
from tensorgrad.ops.reduce import max as max_
from tensorgrad.ops.reduce import min as min_
from tensorgrad.ops.reduce import sum as sum_
from tensorgrad.shape import shape_size, whole
from tensorgrad.tensor import Tensor


def _floating(x: TensorLike) -> Tensor:
    x = tensor(x)
    return x if x.dtype.is_float else cast(x, f32)


# Variances --------------------------------------------------------------------------------


@in_f32
def var(x: TensorLike, axis: Axis = None, correction: int = 1, keepdims: bool = False, **kw: Any) -> Tensor:
    """The variance over axes, PyTorch's: divided by the count less `correction`.

    Args:
        axis, keepdims: as `sum`.
        correction: PyTorch's older `unbiased=` (True for 1, False for 0) and NumPy's `ddof=` are accepted.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([1.0, 3.0], np.float32)
    >>> tg.sync(tg.jit(lambda x: (tg.var(x), tg.var(x, correction=0)), device="numpy")(x))
    (array(2., dtype=float32), array(1., dtype=float32))
    """
    return var_mean(x, axis, correction, keepdims, **kw)[0]


@in_f32
def std(x: TensorLike, axis: Axis = None, correction: int = 1, keepdims: bool = False, **kw: Any) -> Tensor:
    """The square root of `var`; where it is 0, so is the gradient."""
    return _root(var(x, axis, correction, keepdims, **kw))


@in_f32
def var_mean(
    x: TensorLike, axis: Axis = None, correction: int = 1, keepdims: bool = False, **kw: Any
) -> tuple[Tensor, Tensor]:
    """`var` and `mean`."""
    x = _floating(x)
    correction = whole("var", "correction", kw.pop("ddof", kw.pop("unbiased", correction)))
    axes, keepdims = over("var", x, axis, keepdims, kw)
    freedom = shape_size([x.shape[a] for a in axes]) - correction
    total = sum_(ew.square(x - mean(x, axes, True)), axes, keepdims)
    out = total * (1 / freedom) if freedom > 0 else total / 0.0
    return custom_grad(out, _var_grad, x, args=(axes, freedom)), mean(x, axes, keepdims)


@in_f32
def std_mean(
    x: TensorLike, axis: Axis = None, correction: int = 1, keepdims: bool = False, **kw: Any
) -> tuple[Tensor, Tensor]:
    """`std` and `mean`."""
    square, middle = var_mean(x, axis, correction, keepdims, **kw)
    return _root(square), middle


def _var_grad(g: Tensor, out: Tensor, x: Tensor, axes: tuple[int, ...], freedom: int) -> tuple[Tensor]:
    """Without the mean's part, which is 0."""
    slope = g * (2 / freedom if freedom > 0 else math.nan)
    return (keep_axes(slope, x, axes) * (x - mean(x, axes, True)),)


def _root(x: Tensor) -> Tensor:
    return custom_grad(ew.sqrt(x), _root_grad, x)


def _root_grad(g: Tensor, out: Tensor, x: Tensor) -> tuple[Tensor]:
    at_zero = ew.equal(out, 0)
    return (ew.where(at_zero, 0.0, g * 0.5 / ew.where(at_zero, 1.0, out)),)


# Norms --------------------------------------------------------------------------------------


@in_f32
def norm(x: TensorLike, p: float | Literal["fro"] = 2, axis: Axis = None, keepdims: bool = False, **kw: Any) -> Tensor:
    """The p-norm of the elements over axes: `sum(|x| ** p) ** (1 / p)`. At zeros the gradient is 0.

    Args:
        p: 2 (or "fro") for the length, 1 for the sum of sizes, inf and -inf for the largest and the smallest
            size, 0 for the number of elements that are not 0, or any other number.
        axis, keepdims: as `sum`.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([[3.0, -4.0], [0.0, 2.0]], np.float32)
    >>> tg.sync(tg.jit(lambda x: (tg.norm(x, dim=1), tg.norm(x, 1, dim=1)), device="numpy")(x))
    (array([5., 2.], dtype=float32), array([7., 2.], dtype=float32))
    """
    x = _floating(x)
    axes, keepdims = over("norm", x, axis, keepdims, kw)
    p = float(p) if isinstance(p, np.generic) else p
    require("norm", "p", p, isinstance(p, int | float) or (isinstance(p, str) and p == "fro"), "a number or 'fro'")
    if p in (2, "fro"):
        return _root(sum_(ew.square(x), axes, keepdims))
    assert p != "fro"
    size = ew.abs(x)
    if p in (math.inf, -math.inf):
        return (max_ if p == math.inf else min_)(size, axes, keepdims)
    if p == 0:
        return sum_(cast(ew.not_equal(x, 0), x.dtype), axes, keepdims)
    total = sum_(size if p == 1 else ew.pow(size, p), axes, keepdims)
    return total if p == 1 else custom_grad(ew.pow(total, 1 / p), _norm_grad, x, args=(axes, p))


def _norm_grad(g: Tensor, out: Tensor, x: Tensor, axes: tuple[int, ...], p: float) -> tuple[Tensor]:
    inside = ew.not_equal(x, 0)
    share = ew.where(inside, ew.abs(x) / keep_axes(out, x, axes), 1.0)
    return (ew.where(inside, keep_axes(g, x, axes) * ew.sign(x) * ew.pow(share, p - 1), 0.0),)


# Truth, counts, and what leaves NaN out -------------------------------------------------------


def _truth(x: TensorLike) -> Tensor:
    """1 where an element is not 0, as u32: of no elements the largest is 0 then, and the smallest is not."""
    x = tensor(x)
    return cast(x if x.dtype is bool_ else ew.not_equal(x, 0), u32)


def any(x: TensorLike, axis: Axis = None, keepdims: bool = False, **kw: Any) -> Tensor:
    """Whether some element over axes is not 0 (NaN is not); of none, False.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([[0.0, 2.0], [0.0, 0.0]], np.float32)
    >>> tg.sync(tg.jit(lambda x: tg.any(x, 1), device="numpy")(x)).tolist()
    [True, False]
    """
    truth = _truth(x)
    axes, keepdims = over("any", truth, axis, keepdims, kw)
    return cast(reduction(max_p, truth, axes, keepdims, {}), bool_)


def all(x: TensorLike, axis: Axis = None, keepdims: bool = False, **kw: Any) -> Tensor:
    """Whether no element over axes is 0; of none, True.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([[1.0, 2.0], [0.0, 2.0]], np.float32)
    >>> tg.sync(tg.jit(lambda x: tg.all(x, 1), device="numpy")(x)).tolist()
    [True, False]
    """
    truth = _truth(x)
    axes, keepdims = over("all", truth, axis, keepdims, kw)
    return cast(reduction(min_p, truth, axes, keepdims, {}), bool_)


def count_nonzero(x: TensorLike, axis: Axis = None, keepdims: bool = False, **kw: Any) -> Tensor:
    """The number of elements over axes that are not 0, i32; NaN is not."""
    return sum_(ew.not_equal(x, 0), axis, keepdims, **kw)


def nansum(x: TensorLike, axis: Axis = None, keepdims: bool = False, **kw: Any) -> Tensor:
    """The sum over axes of what is not NaN."""
    x = tensor(x)
    return sum_(ew.where(ew.isnan_or_false(x), 0, x), axis, keepdims, **kw)


@in_f32
def nanmean(x: TensorLike, axis: Axis = None, keepdims: bool = False, **kw: Any) -> Tensor:
    """The mean over axes of what is not NaN; NaN where nothing is.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(tg.nanmean, device="numpy")(np.array([1.0, np.nan, 4.0], np.float32))).item()
    2.5
    """
    x = _floating(x)
    axes, keepdims = over("nanmean", x, axis, keepdims, kw)
    count = sum_(cast(ew.bitwise_not(ew.isnan(x)), x.dtype), axes, keepdims)
    return nansum(x, axes, keepdims) / count


class MinMax(NamedTuple):
    """What `aminmax` gives."""

    min: Tensor
    max: Tensor


def aminmax(x: TensorLike, axis: Axis = None, keepdims: bool = False, **kw: Any) -> MinMax:
    """The smallest and the largest element over axes, as `(min, max)`."""
    x = tensor(x)
    axes, keepdims = over("aminmax", x, axis, keepdims, kw)
    return MinMax(min_(x, axes, keepdims), max_(x, axes, keepdims))
