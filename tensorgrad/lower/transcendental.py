"""The formulas of tanh, erf, log, sin, atan, pow and their kin, in operations that every printer has.

A formula takes and gives `Scalar`s; `functions` makes a `Function` of each. sqrt and
division are the device's own.
"""

from __future__ import annotations

import math
from typing import Any

from tensorgrad.dtypes import f32, i32, u32
from tensorgrad.lower.expr import const
from tensorgrad.lower.scalar import Scalar, polynomial, select

INF = math.inf
NAN = math.nan
SIGN = 0x80000000


def number(value: float) -> Scalar:
    return Scalar(const(value, f32))


def absolute(x: Scalar) -> Scalar:
    return x.apply("abs")


def bits(x: Scalar) -> Scalar:
    return x.bitcast(u32)


def magnitude(x: Scalar) -> Scalar:
    return bits(x) & 0x7FFFFFFF


def isnan(x: Scalar) -> Scalar:
    return magnitude(x) > 0x7F800000


def isfinite(x: Scalar) -> Scalar:
    return magnitude(x) < 0x7F800000


def with_sign_of(x: Scalar, size: Scalar) -> Scalar:
    return ((bits(x) & SIGN) | magnitude(size)).bitcast(f32)


def power_of_two(n: Scalar) -> Scalar:
    """2.0**n for a whole i32 n of -126 <= n <= 127, by its bits."""
    return ((n + 127).cast(u32) << 23).bitcast(f32)


# Coefficients, from the lowest power ------------------------------------------------------
# _EXP, _LOG, _TANH, _SIN and _COS: S. Moshier, Cephes (expf, logf, ...). The others are
# weighted least-maximum fits made for this file; in exact arithmetic each one's relative
# error is below 4e-9.

_EXP = (
    5.0000001201e-1, 1.6666665459e-1, 4.1665795894e-2, 8.3334519073e-3, 1.3981999507e-3, 1.9875691500e-4,
)  # fmt: skip
_TANH = (-3.33332819422e-1, 1.33314422036e-1, -5.37397155531e-2, 2.06390887954e-2, -5.70498872745e-3)
_LOG = (
    3.3333331174e-1, -2.4999993993e-1, 2.0000714765e-1, -1.6668057665e-1, 1.4249322787e-1,
    -1.2420140846e-1, 1.1676998740e-1, -1.1514610310e-1, 7.0376836292e-2,
)  # fmt: skip
_SIN = (-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4)
_COS = (4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5)
# (expm1(x) - x) / x**2 for |x| < 0.5
_EXPM1 = (0.5000000385, 0.1666666399, 0.04166535854, 0.008333579068, 0.001399617818, 0.0001984980394)
# erf(x) / x - 1 in powers of x * x, for |x| < 1
_ERF = (
    0.1283791657, -0.3761262582, 0.1128358515, -0.02685381179, 0.005188327407, -0.0008010191174,
    7.853853261e-05,
)  # fmt: skip
# log(erfc(t)) / -t for 1 <= t <= 4
_ERFC = (
    1.128694345, 0.634969498, 0.1065309204, -0.02401011623, 0.00375749951, -0.0003505976615,
    1.396301078e-05,
)  # fmt: skip
# erfc(x) * exp(x * x) / t in powers of t = 1 / (1 + x / 2), for 0.5 <= x <= 10.2
_ERFC_SCALED = (
    0.282086623, 0.2823153134, 0.2442899951, 0.1926646622, 0.01977825939, 0.149392221,
    -0.267855659, 0.05936839176, 0.06870411584, -0.03077242996,
)  # fmt: skip
# (atan(t) - t) / t**3 in powers of t * t, for |t| <= 1
_ATAN = (
    -0.3333329909, 0.199985482, -0.1426424079, 0.109521811, -0.08403436649, 0.05795735951,
    -0.03117761299, 0.01091448100, -0.001793593887,
)  # fmt: skip

# exp, log and their kin -----------------------------------------------------------------

LOG2_HIGH = 0.693359375  # of few bits, so that a product with a small whole number is exact
LOG2_LOW = -2.12194440e-4


def exp(x: Scalar) -> Scalar:
    """e**x to 2 ULP; inf from 88.73 on, below -103.97 zero (where a device flushes, from -87.34 down).

    WGSL's own may be off by 2 * |x| ULP, and some devices' make 0 of NaN.
    """
    x = select(x > 89.0, 89.0, select(x < -105.0, -105.0, x))
    n = (x * (1 / math.log(2))).apply("round")
    r = x - n * LOG2_HIGH - n * LOG2_LOW
    return times_power_of_two(polynomial(r, *_EXP) * (r * r) + r + 1.0, n)


def exp_weight(x: Scalar) -> Scalar:
    """e**x to 2 ULP for x of -87 up to 80, and 0 below, as for a softmax's weights: half the work of `exp`."""
    n = (x * (1 / math.log(2))).apply("round")
    r = x - n * LOG2_HIGH - n * LOG2_LOW
    value = (polynomial(r, *_EXP) * (r * r) + r + 1.0) * power_of_two(n.apply("truncate", dtype=i32))
    return select(x < -87.0, 0.0, value)


def times_power_of_two(x: Scalar, n: Scalar) -> Scalar:
    """x * 2**n for a whole f32 n of -250 <= n <= 250, in two halves: 2**128 is inf already."""
    whole = n.apply("truncate", dtype=i32)
    half = whole >> 1
    return x * power_of_two(half) * power_of_two(whole - half)


def expm1(x: Scalar) -> Scalar:
    return select(absolute(x) < 0.5, polynomial(x, *_EXPM1) * (x * x) + x, x.apply("exp") - 1.0)


def _log_near_one(f: Scalar) -> Scalar:
    """log(1 + f) for sqrt(1/2) <= 1 + f <= sqrt(2), less `f` itself."""
    square = f * f
    return polynomial(f, *_LOG) * (square * f) - square * 0.5


def _split_power(x: Scalar) -> tuple[Scalar, Scalar]:
    """(f, e) with `x == (1 + f) * 2**e` and 1 + f around 1; e is a whole f32. For normal x > 0."""
    # sqrt(1/2) is 0x3f3504f3: taking it away first makes the exponent round there
    shifted = bits(x) - 0x3F3504F3
    exponent = (shifted.bitcast(i32) >> 23).cast(f32)
    mantissa = ((shifted & 0x007FFFFF) + 0x3F3504F3).bitcast(f32)
    return mantissa - 1.0, exponent


def _log_edges(x: Scalar, inside: Scalar) -> Scalar:
    """log's values at 0 (-inf), below 0 (NaN), at inf and NaN."""
    positive = select(x < INF, inside, x)
    return select(x > 0.0, positive, select(x.equals(0.0), number(-INF), NAN))


def log(x: Scalar) -> Scalar:
    # below 2**-126 a device may flush to 0; one that does not gets the right value
    tiny = x < 1.1754943508222875e-38
    f, e = _split_power(select(tiny, x * 8388608.0, x))
    e = select(tiny, e - 23.0, e)
    return _log_edges(x, e * LOG2_LOW + _log_near_one(f) + f + e * LOG2_HIGH)


def log1p(x: Scalar) -> Scalar:
    # near 0 the polynomial takes x itself; elsewhere the rounding of 1 + x costs an ULP or two
    near = (x > -0.2928932) & (x < 0.41421356)
    one_more = x + 1.0
    f, e = _split_power(one_more)
    f, e = select(near, x, f), select(near, 0.0, e)
    value = e * LOG2_LOW + _log_near_one(f) + f + e * LOG2_HIGH
    # -0.0 stays -0.0
    return select(x.equals(0.0), x, _log_edges(one_more, value))


def tanh(x: Scalar) -> Scalar:
    """exp gets at most 20: it cannot overflow."""
    size = absolute(x)
    z = x * x
    grown = (select(size < 10.0, size, 10.0) * 2.0).apply("exp")
    far = with_sign_of(x, 1.0 - 2.0 / (grown + 1.0))
    return select(isnan(x), x, select(size < 0.625, polynomial(z, *_TANH) * z * x + x, far))


def sigmoid(x: Scalar) -> Scalar:
    """exp gets no positive argument, so nothing overflows; below -87 it is 0 or a subnormal."""
    e = (-absolute(x)).apply("exp")
    return select(x < 0.0, e, 1.0) / (e + 1.0)


def erf(x: Scalar) -> Scalar:
    size = absolute(x)
    # erf(4) is 1 in f32
    t = select(size < 4.0, size, 4.0)
    far = with_sign_of(x, 1.0 - (-(polynomial(t, *_ERFC) * t)).apply("exp"))
    return select(isnan(x), x, select(size < 1.0, polynomial(x * x, *_ERF) * x + x, far))


def erfc(x: Scalar) -> Scalar:
    """1 - erf(x), whose digits it keeps where erf is close to 1."""
    size = absolute(x)
    t = select(size < 11.0, size, 11.0)  # erfc(11) is 0 in f32
    # exp(-t * t) of a square without rounding, and of the rest
    high = (bits(t) & 0xFFFFF000).bitcast(f32)
    scale = (-(high * high)).apply("exp") * ((high - t) * (high + t)).apply("exp")
    u = 1.0 / (t * 0.5 + 1.0)
    far = polynomial(u, *_ERFC_SCALED) * u * scale
    near = 1.0 - (polynomial(x * x, *_ERF) * x + x)
    return select(isnan(x), x, select(size < 0.5, near, select(x < 0.0, 2.0 - far, far)))


# sin, cos and atan ----------------------------------------------------------------------

# pi/2 in four parts, three of them of 7 bits (Cody and Waite): a product with a whole number
# below 2**17 is exact for all but the last, so x - k * pi/2 keeps its digits where it cancels
_HALF_PI = (1.578125, -0.00732421875, -4.470348358154297e-06, 1.5893254776e-08)


def _reduced(x: Scalar) -> tuple[Scalar, Scalar]:
    """(r, quadrant) with `x = quadrant * pi/2 + r`, |r| <= pi/4."""
    k = (x * (2 / math.pi)).apply("round")
    r = x
    for part in _HALF_PI:
        r = r - k * part
    # beyond the range the digits are gone: stay on the curve
    r = select(r > 0.8, 0.8, select(r < -0.8, -0.8, r))
    limited = select(absolute(x) < 2.0**30, k, 0.0)
    return r, limited.apply("truncate", dtype=i32).cast(u32)


def sin_of(x: Scalar, shift: int) -> Scalar:
    """sin(x + shift * pi/2)."""
    r, quadrant = _reduced(x)
    quadrant = quadrant + shift if shift else quadrant
    z = r * r
    sine = polynomial(z, *_SIN) * z * r + r
    cosine = polynomial(z, *_COS) * (z * z) - z * 0.5 + 1.0
    value = select((quadrant & 1).equals(0), sine, cosine)
    return select(isfinite(x), select((quadrant & 2).equals(0), value, -value), NAN)


def atan(x: Scalar) -> Scalar:
    size = absolute(x)
    t = select(size > 1.0, 1.0 / size, size)
    z = t * t
    angle = polynomial(z, *_ATAN) * z * t + t
    return select(isnan(x), x, with_sign_of(x, select(size > 1.0, math.pi / 2 - angle, angle)))


# pow ------------------------------------------------------------------------------------


def pow(a: Scalar, b: Scalar) -> Scalar:
    """a**b with C's edges (IEEE 754 `pow`).

    The exponent b * log2(a) is rounded, so the error grows with it: to about
    (1 + |log2(result)|) * 1.2e-7 of the result.
    """
    size = absolute(a)
    tiny = size < 1.1754943508222875e-38
    f, e = _split_power(select(tiny, size * 8388608.0, size))
    e = select(tiny, e - 23.0, e)
    log2 = (_log_near_one(f) + f) * (1 / math.log(2))
    # beyond 1e12 every power of a base other than 1 is 0 or inf anyway
    power = select(b < -1e12, -1e12, select(b > 1e12, 1e12, b))
    t = power * e + power * log2
    t = select(t < -160.0, -160.0, select(t > 160.0, 160.0, t))
    n = t.apply("round")
    value = times_power_of_two(((t - n) * math.log(2)).apply("exp"), n)
    whole = b.apply("floor").equals(b)
    # from 2**24 on every f32 is even; below, the last bit of the whole number tells
    odd = whole & (absolute(b) < 16777216.0) & ((b.apply("truncate", dtype=i32) & 1).equals(1))
    zero, infinite = size.equals(0.0), size.equals(INF)
    edge = select(select(zero, b > 0.0, b < 0.0), number(0.0), INF)
    value = select(zero | infinite, edge, value)
    grows = (size > 1.0).equals(b > 0.0)
    value = select(absolute(b).equals(INF), select(size.equals(1.0), 1.0, select(grows, number(INF), 0.0)), value)
    negative = (bits(a) & SIGN).equals(SIGN)
    value = select(negative & odd, -value, value)
    value = select((a < 0.0) & (whole ^ True) & isfinite(a) & isfinite(b), NAN, value)
    value = select(isnan(a) | isnan(b), NAN, value)
    return select(b.equals(0.0) | a.equals(1.0), 1.0, value)


# The references of erf and erfc, for array libraries that have none ---------------------

# erfc(x) * exp(x * x) * x in powers of (x - 3) / (x + 3), 1 <= x <= 28: a weighted least-maximum
# fit to 40-digit values, whose relative error is 4e-17
_ERFC_TAIL = (
    0.53700345354416985, 0.095306226959227573, -0.14658304803289051, 0.13988054760183304,
    -0.095469750306666509, 0.046350263328632398, -0.014019825624531418, 0.00091082274075787366,
    0.0012428761198888305, -0.00041254433647833864, -8.460768430846457e-05, 6.89833066819106e-05,
    6.4598677937357054e-06, -1.1122296730082947e-05, -9.7416473986191268e-07, 1.905648188332494e-06,
    2.5111371168468002e-07, -3.374273588893868e-07, -3.9019857135082668e-08, 4.2219442619775877e-08,
)  # fmt: skip
# erf(x) / x in powers of x * x (Abramowitz and Stegun 7.1.5)
_ERF_SERIES = tuple(2 / math.sqrt(math.pi) * (-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(19))


def _erf_parts(xp: Any, x: Any) -> tuple[Any, Any]:
    """erf(x) for |x| < 1, erfc(|x|) for |x| >= 1; each is something else beyond."""

    def horner(t: Any, coefficients: tuple[float, ...]) -> Any:
        total = 0.0 * t
        for c in reversed(coefficients):
            total = total * t + c
        return total

    size = xp.abs(x)
    near = xp.where(size < 1, x, xp.zeros_like(x))
    # from 28 on erfc is 0 in float64 too; NaN stays NaN
    t = xp.where(size < 1, xp.ones_like(x), xp.where(size > 28, xp.full_like(x, 28), size))
    return near * horner(near * near, _ERF_SERIES), xp.exp(-t * t) * horner((t - 3) / (t + 3), _ERFC_TAIL) / t


def erf_reference(xp: Any, x: Any) -> Any:
    """The error function on a NumPy-like namespace, good to a few ULPs of the array's own float width."""
    near, tail = _erf_parts(xp, x)
    return xp.where(xp.abs(x) < 1, near, xp.sign(x) * (1 - tail))


def erfc_reference(xp: Any, x: Any) -> Any:
    """1 - erf; beyond 1 its relative error grows with x * x, by the exponential's."""
    near, tail = _erf_parts(xp, x)
    return xp.where(xp.abs(x) < 1, 1 - near, xp.where(x < 0, 2 - tail, tail))
