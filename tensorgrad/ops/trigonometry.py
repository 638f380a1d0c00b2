"""Trigonometric and hyperbolic functions that are made of sin, cos, atan, exp and log.

Each keeps its digits near 0 and does not overflow before its result does.
"""

from __future__ import annotations

import math

from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.arithmetic import LOG_2, copysign, signbit
from tensorgrad.ops.core import TensorLike, cast, floats, in_f32
from tensorgrad.ops.custom import custom_grad, with_slope
from tensorgrad.tensor import Tensor

# Angles -----------------------------------------------------------------------------------


def deg2rad(x: TensorLike) -> Tensor:
    """Degrees as radians."""
    return ew.mul(x, math.pi / 180)


def rad2deg(x: TensorLike) -> Tensor:
    """Radians as degrees."""
    return ew.mul(x, 180 / math.pi)


def _beside_one(x: Tensor) -> Tensor:
    """1 - x * x, exact near 1."""
    return (1 - x) * (1 + x)


tan = with_slope("tan", lambda x: ew.sin(x) / ew.cos(x), lambda out, x: out * out + 1, "The tangent of radians.")
asin = with_slope(
    "asin",
    lambda x: ew.atan(x / ew.sqrt(_beside_one(x))),
    lambda out, x: ew.rsqrt(_beside_one(x)),
    "The angle from -pi/2 to pi/2 whose sine this is; NaN beyond 1.",
)
acos = with_slope(
    "acos",
    lambda x: ew.atan(ew.sqrt((1 - x) / (1 + x))) * 2,
    lambda out, x: -ew.rsqrt(_beside_one(x)),
    "The angle from 0 to pi whose cosine this is; NaN beyond 1.",
)


@in_f32
def atan2(y: TensorLike, x: TensorLike) -> Tensor:
    """The angle from -pi to pi of the point (x, y), counted from the x axis; of zeros and infinities as in C.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> y, x = np.array([[1.0, 0.0], [0.0, -2.0]], np.float32)
    >>> tg.sync(tg.jit(tg.atan2, device="numpy")(y, x)).round(4)
    array([1.5708, 3.1416], dtype=float32)
    """
    y, x = floats("atan2", y, x)
    height, width = ew.abs(y), ew.abs(x)
    # 0 of two zeros, 1 of two infinities
    slope = ew.where(ew.equal(height, width), cast(ew.not_equal(height, 0), y.dtype), height / width)
    angle = ew.atan(slope)
    return custom_grad(copysign(ew.where(signbit(x), math.pi - angle, angle), y), _atan2_grad, y, x)


def _atan2_grad(g: Tensor, out: Tensor, y: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Of the point on the unit circle, over the radius, so that no square overflows; 0 at the origin."""
    radius = hypot(y, x)
    by = ew.where(ew.equal(radius, 0), 1.0, radius)
    turn = g / by
    return turn * (x / by), -turn * (y / by)


@in_f32
def hypot(a: TensorLike, b: TensorLike) -> Tensor:
    """sqrt(a * a + b * b) without overflow; inf where one is, whatever the other. The gradient at 0 is 0.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(tg.hypot, device="numpy")(np.array([3.0, np.nan], np.float32), [4.0, np.inf])).tolist()
    [5.0, inf]
    """
    a, b = floats("hypot", a, b)
    long, short = ew.maximum(ew.abs(a), ew.abs(b)), ew.minimum(ew.abs(a), ew.abs(b))
    ratio = ew.where(ew.equal(long, short), 1.0, short / long)
    out = ew.where(ew.isinf(a) | ew.isinf(b), math.inf, long * ew.sqrt(ratio * ratio + 1))
    return custom_grad(out, _hypot_grad, a, b)


def _hypot_grad(g: Tensor, out: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    by = ew.where(ew.equal(out, 0), 1.0, out)
    return g * (a / by), g * (b / by)


# Hyperbolic functions -------------------------------------------------------------------------


def _sinh(x: Tensor) -> Tensor:
    near = ew.less(ew.abs(x), 1.0)
    small = ew.expm1(ew.where(near, x, 0.0))
    return ew.where(near, (small + small / (small + 1)) * 0.5, ew.sign(x) * _half_powers(x, -1))


def _half_powers(x: Tensor, sign: int) -> Tensor:
    """(exp(|x|) + sign * exp(-|x|)) / 2 by the square of exp(|x| / 2), which does not overflow."""
    half = ew.exp(ew.abs(x) * 0.5)
    return half * 0.5 * half + 0.5 * sign / half / half


sinh = with_slope("sinh", _sinh, lambda out, x: cosh(x), "The hyperbolic sine.")
cosh = with_slope("cosh", lambda x: _half_powers(x, 1), lambda out, x: sinh(x), "The hyperbolic cosine.")


def _asinh(x: Tensor) -> Tensor:
    size = ew.abs(x)
    large = ew.greater(size, 1e9)  # where the square may overflow, the function is log(2 |x|)
    square = ew.where(large, 0.0, size * size)
    above = ew.log1p(size + square / (ew.sqrt(square + 1) + 1))
    return ew.sign(x) * (above + cast(large, x.dtype) * LOG_2)


asinh = with_slope("asinh", _asinh, lambda out, x: ew.rsqrt(x * x + 1), "The number whose hyperbolic sine this is.")
acosh = with_slope(
    "acosh",
    lambda x: _asinh(ew.sqrt((x - 1) * 0.5)) * 2,
    lambda out, x: ew.rsqrt((x - 1) * (x + 1)),
    "The number from 0 up whose hyperbolic cosine this is; NaN below 1.",
)
atanh = with_slope(
    "atanh",
    lambda x: (ew.log1p(x) - ew.log1p(-x)) * 0.5,
    lambda out, x: 1 / _beside_one(x),
    "The number whose hyperbolic tangent this is; infinite at -1 and 1, NaN beyond.",
)

# sin(pi x) / (pi x) ------------------------------------------------------------------------------

_SINC_SLOPE = [(-1) ** k * 2 * k / math.factorial(2 * k + 1) for k in range(1, 7)]
"""Of the series of sinc's slope, in odd powers of pi x: enough for those below 1."""


def _sinc(x: Tensor) -> Tensor:
    angle = ew.where(ew.equal(x, 0), 1.0, x * math.pi)
    return ew.where(ew.equal(x, 0), 1.0, ew.sin(angle) / angle)


def _sinc_slope(out: Tensor, x: Tensor) -> Tensor:
    angle = x * math.pi
    square, series = angle * angle, angle * 0.0
    for c in reversed(_SINC_SLOPE):
        series = series * square + c
    near = ew.less(square, 1.0)
    far = (ew.cos(angle) - out) / ew.where(near, 1.0, angle)
    return ew.where(near, series * angle, far) * math.pi


sinc = with_slope("sinc", _sinc, _sinc_slope, "sin(pi x) / (pi x), 1 at 0: NumPy's normalized sinc.")

# Other names of NumPy's and PyTorch's ---------------------------------------------------------

arcsin, arccos, arctan, arctan2 = asin, acos, ew.atan, atan2
arcsinh, arccosh, arctanh = asinh, acosh, atanh
