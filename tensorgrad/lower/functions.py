"""Scalar functions that WGSL has not, or not accurately or not safely enough.

Each is defined once, as an expression of operations that every printer has, so that the
GPU and the interpreter compute the same formula. `expand` says what an elementwise
operation is made of; what it returns None for, each printer prints natively: `+ - *`,
f32 division, sqrt, exp, floor, comparisons and the like.

Why not WGSL's own: its accuracy table allows sin and cos an absolute error of 2**-11
and only on [-pi, pi], tanh and log near 1 an error relative to nothing, and compilers
may assume that no NaN occurs, so NaN is found by its bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorgrad.dtypes import DType, bool_, f16, f32, i32, u32
from tensorgrad.lower.expr import Expr, Function, call, const, expr
from tensorgrad.lower.scalar import Scalar, polynomial, select

FUNCTIONS: dict[str, Function] = {}
"""Every function: `tanh`, ...; of several dtypes `maximum_f32`, `floor_divide_i32`, ..."""

INF = math.inf
NAN = math.nan
_SIGN = 0x80000000


def _define(name: str, dtype: DType, body: Callable[..., Scalar], *params: str, of: DType | None = None) -> Function:
    typed = tuple((p, of or dtype) for p in params)
    args = [Scalar(expr("param", (), t, p)) for p, t in typed]
    function = FUNCTIONS[name] = Function(name, typed, dtype, body(*args).expr)
    return function


def _number(value: float) -> Scalar:
    return Scalar(const(value, f32))


def _abs(x: Scalar) -> Scalar:
    return x.apply("abs")


def _bits(x: Scalar) -> Scalar:
    return x.bitcast(u32)


def _magnitude(x: Scalar) -> Scalar:
    return _bits(x) & 0x7FFFFFFF


def _isnan(x: Scalar) -> Scalar:
    return _magnitude(x) > 0x7F800000


def _isfinite(x: Scalar) -> Scalar:
    return _magnitude(x) < 0x7F800000


def _with_sign_of(x: Scalar, magnitude: Scalar) -> Scalar:
    return ((_bits(x) & _SIGN) | _magnitude(magnitude)).bitcast(f32)


def _power_of_two(n: Scalar) -> Scalar:
    """2.0**n for a whole i32 n of -126 <= n <= 127, by its bits."""
    return ((n + 127).cast(u32) << 23).bitcast(f32)


# exp, log and their kin -----------------------------------------------------------------
# Coefficients that name no source are weighted least-maximum fits made for this file;
# the relative error of each, in exact arithmetic, is below 4e-9.


def _expm1(x: Scalar) -> Scalar:
    near = polynomial(
        x, 0.5000000385, 0.1666666399, 0.04166535854, 0.008333579068, 0.001399617818, 0.0001984980394
    )
    return select(_abs(x) < 0.5, near * (x * x) + x, x.apply("exp") - 1.0)


def _log_near_one(f: Scalar) -> Scalar:
    """log(1 + f) for sqrt(1/2) <= 1 + f <= sqrt(2), less `f` itself. Source: S. Moshier, Cephes, logf."""
    square = f * f
    tail = polynomial(
        f, 3.3333331174e-1, -2.4999993993e-1, 2.0000714765e-1, -1.6668057665e-1, 1.4249322787e-1,
        -1.2420140846e-1, 1.1676998740e-1, -1.1514610310e-1, 7.0376836292e-2,
    )  # fmt: skip
    return tail * (square * f) - square * 0.5


def _split_power(x: Scalar) -> tuple[Scalar, Scalar]:
    """(f, e) with `x == (1 + f) * 2**e` and 1 + f around 1; e is a whole f32. For normal x > 0."""
    # sqrt(1/2) is 0x3f3504f3: taking it away first makes the exponent round there
    shifted = _bits(x) - 0x3F3504F3
    exponent = (shifted.bitcast(i32) >> 23).cast(f32)
    mantissa = ((shifted & 0x007FFFFF) + 0x3F3504F3).bitcast(f32)
    return mantissa - 1.0, exponent


LOG2_HIGH = 0.693359375  # of few bits, so that a product with a small whole number is exact
LOG2_LOW = -2.12194440e-4


def _log_edges(x: Scalar, inside: Scalar) -> Scalar:
    """log's values at 0 (-inf), below 0 (NaN), at inf and NaN."""
    positive = select(x < INF, inside, x)
    return select(x > 0.0, positive, select(x.equals(0.0), _number(-INF), NAN))


def _log(x: Scalar) -> Scalar:
    # below 2**-126 a device may flush to 0; one that does not gets the right value
    tiny = x < 1.1754943508222875e-38
    f, e = _split_power(select(tiny, x * 8388608.0, x))
    e = select(tiny, e - 23.0, e)
    return _log_edges(x, e * LOG2_LOW + _log_near_one(f) + f + e * LOG2_HIGH)


def _log1p(x: Scalar) -> Scalar:
    # near 0 the polynomial takes x itself; elsewhere rounding 1 + x costs less than half an ULP of the result's
    near = (x > -0.2928932) & (x < 0.41421356)
    one_more = x + 1.0
    f, e = _split_power(one_more)
    f, e = select(near, x, f), select(near, 0.0, e)
    value = e * LOG2_LOW + _log_near_one(f) + f + e * LOG2_HIGH
    # -0.0 stays -0.0
    return select(x.equals(0.0), x, _log_edges(one_more, value))


def _tanh(x: Scalar) -> Scalar:
    """Source of the polynomial: S. Moshier, Cephes, tanhf. exp gets at most 20: no overflow."""
    size = _abs(x)
    z = x * x
    near = polynomial(z, -3.33332819422e-1, 1.33314422036e-1, -5.37397155531e-2, 2.06390887954e-2, -5.70498872745e-3)
    grown = (select(size < 10.0, size, 10.0) * 2.0).apply("exp")
    far = _with_sign_of(x, 1.0 - 2.0 / (grown + 1.0))
    return select(_isnan(x), x, select(size < 0.625, near * z * x + x, far))


def _sigmoid(x: Scalar) -> Scalar:
    """exp gets no positive argument, so nothing overflows; below -87 it is 0 or a subnormal."""
    e = (-_abs(x)).apply("exp")
    return select(x < 0.0, e, 1.0) / (e + 1.0)


def _erf(x: Scalar) -> Scalar:
    size = _abs(x)
    near = polynomial(
        x * x, 0.1283791657, -0.3761262582, 0.1128358515, -0.02685381179, 0.005188327407, -0.0008010191174,
        7.853853261e-05,
    )  # fmt: skip
    # log(erfc(t)) / -t; erf(4) is 1 in f32
    t = select(size < 4.0, size, 4.0)
    tail = polynomial(
        t, 1.128694345, 0.634969498, 0.1065309204, -0.02401011623, 0.00375749951, -0.0003505976615, 1.396301078e-05
    )
    far = _with_sign_of(x, 1.0 - (-(tail * t)).apply("exp"))
    return select(_isnan(x), x, select(size < 1.0, near * x + x, far))


# sin and cos ----------------------------------------------------------------------------

# pi/2 in four parts of few bits (Cody and Waite): a product with a whole number below
# 2**17 is exact for all but the last, so x - k * pi/2 keeps its digits where it cancels
_HALF_PI = (1.5703125, 0.0004837512969970703125, 7.5495336204767227e-08, 5.1266579254137947e-12)


def _reduced(x: Scalar) -> tuple[Scalar, Scalar]:
    """(r, quadrant) with `x = quadrant * pi/2 + r`, |r| <= pi/4."""
    k = (x * (2 / math.pi)).apply("round")
    r = x
    for part in _HALF_PI:
        r = r - k * part
    # beyond the range the digits are gone: stay on the curve
    r = select(r > 0.8, 0.8, select(r < -0.8, -0.8, r))
    limited = select(_abs(x) < 2.0**30, k, 0.0)
    return r, limited.cast(i32).cast(u32)


def _sin_of(x: Scalar, shift: int) -> Scalar:
    """sin(x + shift * pi/2). Source of the polynomials: S. Moshier, Cephes, sinf and cosf."""
    r, quadrant = _reduced(x)
    quadrant = quadrant + shift if shift else quadrant
    z = r * r
    sine = polynomial(z, -1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4) * z * r + r
    cosine = polynomial(z, 4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5) * (z * z) - z * 0.5 + 1.0
    value = select((quadrant & 1).equals(0), sine, cosine)
    return select(_isfinite(x), select((quadrant & 2).equals(0), value, -value), NAN)


# pow ------------------------------------------------------------------------------------


def _exp2(t: Scalar) -> Scalar:
    """2**t by way of exp of the fraction; the power of two comes in two halves, as 2**128 is inf already."""
    t = select(t < -160.0, -160.0, select(t > 160.0, 160.0, t))
    n = t.apply("round")
    whole = n.cast(i32)
    half = whole >> 1
    return ((t - n) * math.log(2)).apply("exp") * _power_of_two(half) * _power_of_two(whole - half)


def _pow(a: Scalar, b: Scalar) -> Scalar:
    """a**b with C's edges (IEEE 754 `pow`).

    The exponent b * log2(a) is rounded, so the error grows with it: to about
    (1 + |log2(result)|) * 1.2e-7 of the result.
    """
    size = _abs(a)
    tiny = size < 1.1754943508222875e-38
    f, e = _split_power(select(tiny, size * 8388608.0, size))
    e = select(tiny, e - 23.0, e)
    log2 = (_log_near_one(f) + f) * (1 / math.log(2))
    # the exponent's whole part times b may be large where its fraction matters: leave it out of the rounding
    coarse = (b * e).apply("floor")
    fine = b * log2
    value = _exp2_sum(b, e, coarse, fine)
    whole = b.apply("floor").equals(b)
    # from 2**24 on every f32 is even; below, the last bit of the whole number tells
    odd = whole & (_abs(b) < 16777216.0) & ((b.cast(i32) & 1).equals(1))
    zero, infinite = size.equals(0.0), size.equals(INF)
    edge = select(select(zero, b > 0.0, b < 0.0), _number(0.0), INF)
    value = select(zero | infinite, edge, value)
    grows = (size > 1.0).apply("equal", b > 0.0)
    value = select(_abs(b).equals(INF), select(size.equals(1.0), 1.0, select(grows, _number(INF), 0.0)), value)
    negative = (_bits(a) & _SIGN).apply("equal", _SIGN)
    value = select(negative & odd, -value, value)
    value = select((a < 0.0) & (whole ^ True) & _isfinite(a) & _isfinite(b), NAN, value)
    value = select(_isnan(a) | _isnan(b), NAN, value)
    return select(b.equals(0.0) | a.equals(1.0), 1.0, value)


def _exp2_sum(b: Scalar, e: Scalar, coarse: Scalar, fine: Scalar) -> Scalar:
    limit = select(coarse < -300.0, -300.0, select(coarse > 300.0, 300.0, coarse))
    return _exp2(limit + (b * e - coarse + fine))


# NaN-propagating extremes, floor division -----------------------------------------------


def _maximum(a: Scalar, b: Scalar) -> Scalar:
    return select((a > b) | _isnan(a), a, b)


def _minimum(a: Scalar, b: Scalar) -> Scalar:
    return select((a < b) | _isnan(a), a, b)


def _sign(x: Scalar) -> Scalar:
    return select(x > 0.0, 1.0, select(x < 0.0, -1.0, x))


def _floor_parts(a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    """The floored quotient and its remainder, f32; exact while |a / b| < 2**22 and their product needs 24 bits.

    The division may be off by an ULP and so land on the wrong side of a whole number:
    the remainder tells, and both are moved by one.
    """
    q = (a / b).apply("floor")
    wide = _magnitude(b).equals(0x7F800000) & _isfinite(a)
    q, r = select(wide, 0.0, q), select(wide, a, a - q * b)
    below = ((r < 0.0) & (b > 0.0)) | ((r > 0.0) & (b < 0.0))
    above = ((r >= b) & (b > 0.0)) | ((r <= b) & (b < 0.0))
    q = select(below, q - 1.0, select(above, q + 1.0, q))
    r = select(below, r + b, select(above, r - b, r))
    return q, r


def _int_parts(a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    """The floored quotient and its remainder; both 0 where b is 0, as NumPy's (WGSL would give a and 0)."""
    zero = b.equals(0)
    safe = select(zero, 1, b)
    q = a.apply("quotient", safe)
    r = a - q * safe
    if a.expr.dtype is i32:
        down = (r ^ safe < 0) & (r.equals(0) ^ True)
        q, r = select(down, q - 1, q), select(down, r + safe, r)
    return select(zero, 0, q), select(zero, 0, r)


# shifts and the random bits ---------------------------------------------------------------


def _shl(a: Scalar, b: Scalar) -> Scalar:
    """Places from 32 on leave 0, as in NumPy; WGSL takes them modulo 32."""
    return select(b.cast(u32) < 32, a << (b & 31), 0)


def _shr(a: Scalar, b: Scalar) -> Scalar:
    """Places from 32 on leave the sign."""
    gone = a >> 31 if a.expr.dtype is i32 else a & 0
    return select(b.cast(u32) < 32, a >> (b & 31), gone)


def _threefry(key0: Scalar, key1: Scalar, counter0: Scalar, counter1: Scalar) -> Scalar:
    """The first word of Threefry-2x32 with 20 rounds.

    Source: Salmon, Moraes, Dror, Shaw, Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
    """
    keys = (key0, key1, key0 ^ key1 ^ 0x1BD11BDA)
    x, y = counter0 + key0, counter1 + key1
    for group in range(5):
        for r in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            x = x + y
            y = x ^ ((y << r) | (y >> (32 - r)))
        x = x + keys[(group + 1) % 3]
        y = y + keys[(group + 2) % 3] + (group + 1)
    return x


def _define_all() -> None:
    unary = {"expm1": _expm1, "log": _log, "log1p": _log1p, "tanh": _tanh, "sigmoid": _sigmoid, "erf": _erf}
    for name, body in unary.items():
        _define(name, f32, body, "x")
    _define("sin", f32, lambda x: _sin_of(x, 0), "x")
    _define("cos", f32, lambda x: _sin_of(x, 1), "x")
    _define("sign_f32", f32, _sign, "x")
    _define("isnan", bool_, _isnan, "x", of=f32)
    _define("isfinite", bool_, _isfinite, "x", of=f32)
    _define("pow", f32, _pow, "a", "b")
    _define("maximum_f32", f32, _maximum, "a", "b")
    _define("minimum_f32", f32, _minimum, "a", "b")
    _define("floor_divide_f32", f32, lambda a, b: _floor_parts(a, b)[0], "a", "b")
    _define("remainder_f32", f32, lambda a, b: _floor_parts(a, b)[1], "a", "b")
    for dtype in (i32, u32):
        _define(f"floor_divide_{dtype}", dtype, lambda a, b: _int_parts(a, b)[0], "a", "b")
        _define(f"remainder_{dtype}", dtype, lambda a, b: _int_parts(a, b)[1], "a", "b")
        _define(f"shl_{dtype}", dtype, _shl, "a", "b")
        _define(f"shr_{dtype}", dtype, _shr, "a", "b")
    _define("threefry2x32", u32, _threefry, "key0", "key1", "counter0", "counter1")


_define_all()


def expand(e: Expr) -> Expr | None:
    """What an elementwise expression is made of, or None where each printer has it natively.

    An f16 operand is computed in f32 and rounded once.
    """
    dtype = e.args[0].dtype if e.args else e.dtype
    function = FUNCTIONS.get(e.op) or FUNCTIONS.get(f"{e.op}_{f32 if dtype is f16 else dtype}")
    if function is None or (e.op in ("shl", "shr") and _shift_is_safe(e.args[1])):
        return None
    if dtype is not f16:
        return call(function, *e.args)
    wide = call(function, *(expr("cast", (a,), f32) for a in e.args))
    return wide if e.dtype is bool_ else expr("cast", (wide,), f16)


def _shift_is_safe(places: Expr) -> bool:
    if places.op == "and":
        places = places.args[1]
    return places.op == "const" and 0 <= places.data < 32


def erf_reference(xp: Any, x: Any) -> Any:
    raise NotImplementedError
