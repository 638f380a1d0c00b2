"""Arithmetic and exponentials that are made of the elementary operations."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from tensorgrad.dtypes import bool_, f32, i32
from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import TensorLike, cast, floats, in_f32, meet, require, spread, tensor
from tensorgrad.ops.custom import custom_grad, with_slope
from tensorgrad.tensor import Tensor

# Quotients and remainders ---------------------------------------------------------------


def trunc(x: TensorLike) -> Tensor:
    """The next whole number towards 0."""
    x = tensor(x)
    return ew.where(ew.less(x, 0), ew.ceil(x), ew.floor(x)) if x.dtype.is_float else x


fix = trunc


def frac(x: TensorLike) -> Tensor:
    """What `trunc` takes away, with the sign of x."""
    (x,) = floats("frac", x)
    return x - trunc(x)


def reciprocal(x: TensorLike) -> Tensor:
    """One over each element; of integers it is f32."""
    return ew.div(1.0, x)


def div(a: TensorLike, b: TensorLike, *, rounding_mode: Literal["floor", "trunc"] | None = None) -> Tensor:
    """The quotient, elementwise; of integers it is f32 unless it is rounded.

    Args:
        rounding_mode: "floor" rounds down as `floor_divide`, "trunc" towards 0.
    """
    if rounding_mode is None:
        return ew.div(a, b)
    if rounding_mode == "floor":
        return ew.floor_divide(a, b)
    require("div", "rounding_mode", rounding_mode, rounding_mode == "trunc", "None, 'floor' or 'trunc'")
    dtype, (a, b) = meet(a, b)
    if dtype.is_float:
        return trunc(ew.div(a, b))
    down = ew.floor_divide(a, b)
    return ew.where(ew.less(down, 0) & ew.not_equal(ew.remainder(a, b), 0), down + 1, down)


divide = true_divide = div


def fmod(a: TensorLike, b: TensorLike) -> Tensor:
    """What division rounded towards 0 leaves, with the sign of `a` (`remainder` has that of `b`), as C's."""
    dtype, operands = meet(a, b)
    if not dtype.is_float:
        a, b = (cast(x, i32) if dtype is bool_ else x for x in operands)
        rest = ew.remainder(a, b)
        return ew.where(ew.not_equal(rest, 0) & ew.not_equal(ew.less(a, 0), ew.less(b, 0)), rest - b, rest)
    a, b = spread("fmod", *operands)
    size = ew.remainder(ew.abs(a), ew.abs(b))
    return custom_grad(ew.where(ew.less(a, 0), -size, size), _fmod_grad, a, b)


def _fmod_grad(g: Tensor, out: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return g, -g * ew.round((a - out) / b)


# Signs, extremes and blends -----------------------------------------------------------------


def signbit(x: TensorLike) -> Tensor:
    """Where the sign is minus: below 0, and -0.0."""
    x = tensor(x)
    return ew.less(ew.bitcast(cast(x, f32), i32) if x.dtype.is_float else x, 0)


def copysign(a: TensorLike, b: TensorLike) -> Tensor:
    """The size of `a` with the sign of `b`, that of -0.0 included; of integers it is f32."""
    a, b = floats("copysign", a, b)
    size = ew.abs(a)
    return ew.where(signbit(b), -size, size)


def fmax(a: TensorLike, b: TensorLike) -> Tensor:
    """The larger of two elements, or the other where one is NaN. Of a tie, `a` has the gradient."""
    _, (a, b) = meet(a, b)
    return ew.where(ew.greater_equal(a, b) | ew.isnan_or_false(b), a, b)


def fmin(a: TensorLike, b: TensorLike) -> Tensor:
    """The smaller of two elements, or the other where one is NaN. Of a tie, `a` has the gradient."""
    _, (a, b) = meet(a, b)
    return ew.where(ew.less_equal(a, b) | ew.isnan_or_false(b), a, b)


@in_f32
def lerp(start: TensorLike, end: TensorLike, weight: TensorLike) -> Tensor:
    """From `start` (weight 0) to `end` (weight 1) on a straight line; exact at both.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([1.0, 3.0], np.float32)
    >>> tg.sync(tg.jit(lambda x: tg.lerp(x, 5.0, 0.25), device="numpy")(x)).tolist()
    [2.0, 3.5]
    """
    start, end, weight = floats("lerp", start, end, weight)
    way = end - start
    return ew.where(ew.less(ew.abs(weight), 0.5), start + weight * way, end - way * (1 - weight))


@in_f32
def addcmul(x: TensorLike, a: TensorLike, b: TensorLike, *, value: float = 1) -> Tensor:
    """`x + value * a * b`."""
    return ew.add(x, ew.mul(ew.mul(a, b), value))


@in_f32
def addcdiv(x: TensorLike, a: TensorLike, b: TensorLike, *, value: float = 1) -> Tensor:
    """`x + value * a / b`."""
    return ew.add(x, ew.mul(ew.div(a, b), value))


def nan_to_num(x: TensorLike, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """Numbers in the place of NaN and infinities, where the gradient is then 0.

    Args:
        posinf, neginf: by default the largest and the lowest number of the dtype.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([np.nan, -np.inf, 2.0], np.float32)
    >>> tg.sync(tg.jit(lambda x: tg.nan_to_num(x, neginf=-1.0), device="numpy")(x)).tolist()
    [0.0, -1.0, 2.0]
    """
    x = tensor(x)
    if not x.dtype.is_float:
        return x
    most = float(np.finfo(x.dtype.numpy).max)
    x = ew.where(ew.isnan(x), nan, x)
    x = ew.where(ew.equal(x, math.inf), most if posinf is None else posinf, x)
    return ew.where(ew.equal(x, -math.inf), -most if neginf is None else neginf, x)


# Exponentials and logarithms -----------------------------------------------------------------

LOG_2 = math.log(2)

exp2 = with_slope("exp2", lambda x: ew.pow(2.0, x), lambda out, x: out * LOG_2, "2 to the power of each element.")


@in_f32
def log2(x: TensorLike) -> Tensor:
    """The logarithm to base 2; -inf at zero, NaN below."""
    return ew.log(x) * (1 / LOG_2)


@in_f32
def log10(x: TensorLike) -> Tensor:
    """The logarithm to base 10; -inf at zero, NaN below."""
    return ew.log(x) * (1 / math.log(10))


@in_f32
def logaddexp(a: TensorLike, b: TensorLike) -> Tensor:
    """log(exp(a) + exp(b)), without overflow; -inf where both are.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([1000.0, -np.inf], np.float32)
    >>> tg.sync(tg.jit(lambda x: tg.logaddexp(x, x), device="numpy")(x)).round(3).tolist()
    [1000.6929931640625, -inf]
    """
    return _log_of_sum("logaddexp", a, b, 1.0)


@in_f32
def logaddexp2(a: TensorLike, b: TensorLike) -> Tensor:
    """log2(2**a + 2**b), without overflow; -inf where both are."""
    return _log_of_sum("logaddexp2", a, b, LOG_2)


def _log_of_sum(name: str, a: TensorLike, b: TensorLike, scale: float) -> Tensor:
    a, b = floats(name, a, b)
    less = ew.log1p(ew.exp(-ew.abs(_apart(a, b, scale)))) * (1 / scale)
    return custom_grad(ew.maximum(a, b) + less, _log_of_sum_grad, a, b, args=(scale,))


def _apart(a: Tensor, b: Tensor, scale: float) -> Tensor:
    """How far `a` is above `b`; equal infinities are not apart."""
    return ew.where(ew.equal(a, b), 0.0, a - b) * scale


def _log_of_sum_grad(g: Tensor, out: Tensor, a: Tensor, b: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    apart = _apart(a, b, scale)
    return g * ew.sigmoid(apart), g * ew.sigmoid(-apart)


@in_f32
def xlogy(x: TensorLike, y: TensorLike) -> Tensor:
    """x * log(y), which is 0 where x is 0 (NaN if y is).

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(lambda x: tg.xlogy(x, x), device="numpy")(np.array([0.0, 1.0], np.float32))).tolist()
    [0.0, 0.0]
    """
    x, y = floats("xlogy", x, y)
    return custom_grad(ew.where(_weightless(x, y), 0.0, x * ew.log(y)), _xlogy_grad, x, y)


def _weightless(x: Tensor, y: Tensor) -> Tensor:
    return ew.equal(x, 0) & ew.bitwise_not(ew.isnan(y))


def _xlogy_grad(g: Tensor, out: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return ew.where(_weightless(x, y) & ew.less_equal(y, 0), 0.0, g * ew.log(y)), g * x / y


@in_f32
def logit(x: TensorLike, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), whose inverse is `sigmoid`; NaN outside of 0 to 1.

    Args:
        eps: elements are clamped to `eps ... 1 - eps` first.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([0.5, 1.0], np.float32)
    >>> tg.sync(tg.jit(lambda x: tg.logit(x, 0.1), device="numpy")(x)).round(4)
    array([0.    , 2.1972], dtype=float32)
    """
    (x,) = floats("logit", x)
    x = x if eps is None else ew.clamp(x, eps, 1 - eps)
    return custom_grad(ew.log(x / (1 - x)), _logit_grad, x)


def _logit_grad(g: Tensor, out: Tensor, x: Tensor) -> tuple[Tensor]:
    inside = ew.greater_equal(x, 0) & ew.less_equal(x, 1)
    return (ew.where(inside, g / (x * (1 - x)), math.nan),)


# Other names of NumPy's and PyTorch's ---------------------------------------------------------

absolute, negative, subtract, multiply, power, clip = ew.abs, ew.neg, ew.sub, ew.mul, ew.pow, ew.clamp
