"""Scalar functions that WGSL has not, or not accurately or not safely enough.

Each is defined once, as an expression of operations that every printer has, so that the
GPU and the interpreter compute the same formula. `expand` says what an elementwise
operation is made of; what it returns None for, each printer prints natively: `+ - *`,
f32 division, sqrt, floor, comparisons and the like.

Why not WGSL's own: its accuracy table allows sin and cos an absolute error of 2**-11
and only on [-pi, pi], tanh and log near 1 an error relative to nothing, exp one that
grows with |x|. And compilers may assume that no NaN occurs: exp(NaN) is 0 on one, and a
NaN is found by its bits.
"""

from __future__ import annotations

from collections.abc import Callable

from tensorgrad.dtypes import DType, bool_, f16, f32, i32, u32
from tensorgrad.lower import transcendental
from tensorgrad.lower.expr import Expr, Function, call, const, expr
from tensorgrad.lower.scalar import Scalar, select
from tensorgrad.lower.transcendental import (
    INF,
    NAN,
    SIGN,
    absolute,
    bits,
    isfinite,
    isnan,
    with_sign_of,
)

FUNCTIONS: dict[str, Function] = {}
"""Every function: `tanh`, ...; of several dtypes `maximum_f32`, `floor_divide_i32`, ..."""


def _define(name: str, dtype: DType, body: Callable[..., Scalar], *params: str, of: DType | None = None) -> None:
    typed = tuple((p, of or dtype) for p in params)
    FUNCTIONS[name] = Function(name, typed, dtype, lambda *args: body(*map(Scalar, args)).expr)


# NaN-propagating extremes, floor division -----------------------------------------------


def _maximum(a: Scalar, b: Scalar) -> Scalar:
    return select((a > b) | isnan(a), a, b)


def _minimum(a: Scalar, b: Scalar) -> Scalar:
    return select((a < b) | isnan(a), a, b)


def _sign(x: Scalar) -> Scalar:
    return select(x > 0.0, 1.0, select(x < 0.0, -1.0, x))


def _zero_product(a: Scalar, b: Scalar) -> Scalar:
    """a * b where one is 0: NaN where the other is infinite or NaN, which compilers that fold the product forget."""
    return select(isfinite(a) & isfinite(b), ((bits(a) ^ bits(b)) & SIGN).bitcast(f32), NAN)


def _zero_quotient(a: Scalar, b: Scalar) -> Scalar:
    """a / b where a is 0: NaN where b is 0 or NaN."""
    return select(isnan(b) | b.equals(0.0), NAN, ((bits(a) ^ bits(b)) & SIGN).bitcast(f32))


def _product_rest(a: Scalar, q: Scalar, b: Scalar) -> Scalar:
    """a - q * b without the product's rounding: of factors of 12 bits every product is exact."""
    qh, bh = ((bits(x) & 0xFFFFF000).bitcast(f32) for x in (q, b))
    ql, bl = q - qh, b - bh
    return a - qh * bh - qh * bl - ql * bh - ql * bl


def _floor_parts(a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    """The floored quotient and its remainder, f32, as Python's; exact where |a / b| < 2**23.

    They are found for the magnitudes. The division may be off by an ULP and so land on
    the wrong side of a whole number: the remainder tells, and both are moved by one.
    From 2**24 on neighbouring values of `a` are further apart than `b`; the remainder is 0.
    """
    x, y = absolute(a), absolute(b)
    q = (x / y).apply("floor")
    r = select(y.equals(INF), x, _product_rest(x, q, y))
    below, above = r < 0.0, r >= y
    q = select(below, q - 1.0, select(above, q + 1.0, q))
    r = select(below, r + y, select(above, r - y, r))
    r = select(q >= 16777216.0, 0.0, r)
    apart = ((bits(a) ^ bits(b)) & SIGN).equals(SIGN)
    up = apart & (r > 0.0)
    q, r = select(up, q + 1.0, q), select(up, y - r, r)
    q, r = select(apart, -q, q), with_sign_of(b, r)
    defined = isfinite(a) & (isnan(b) ^ True)
    zero = b.equals(0.0)
    quotient = select(zero, a / b, select(defined, q, NAN))
    return quotient, select(defined & (zero ^ True), r, NAN)


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


def _order(x: Scalar) -> Scalar:
    """A u32 that is larger the larger x is; the same for 0 and -0, and the largest of all for NaN."""
    u = bits(x)
    u = select((u << 1).equals(0), 0, u)
    return select(isnan(x), 0xFFFFFFFF, select(u < SIGN, u | SIGN, ~u))


# conversion, shifts and the random bits ---------------------------------------------------------------


def _whole(x: Scalar, dtype: DType) -> Scalar:
    """Towards 0, stopping at the ends of the integers; NaN is 0. (WGSL's compilers differ on these.)"""
    least, below, above = (-(2**31), -(2.0**31), 2.0**31) if dtype is i32 else (0, -1.0, 2.0**32)
    ends = select(x > 0.0, Scalar(const(int(above) - 1, dtype)), select(x < 0.0, Scalar(const(least, dtype)), 0))
    return select((x > below) & (x < above), x.apply("truncate", dtype=dtype), ends)


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
    unary = {
        "exp": transcendental.exp,
        "exp_weight": transcendental.exp_weight,
        "expm1": transcendental.expm1,
        "log": transcendental.log,
        "log1p": transcendental.log1p,
        "tanh": transcendental.tanh,
        "sigmoid": transcendental.sigmoid,
        "erf": transcendental.erf,
        "erfc": transcendental.erfc,
        "atan": transcendental.atan,
    }
    for name, body in unary.items():
        _define(name, f32, body, "x")
    _define("sin", f32, lambda x: transcendental.sin_of(x, 0), "x")
    _define("cos", f32, lambda x: transcendental.sin_of(x, 1), "x")
    _define("sign_f32", f32, _sign, "x")
    _define("zero_product", f32, _zero_product, "a", "b")
    _define("zero_quotient", f32, _zero_quotient, "a", "b")
    _define("isnan", bool_, isnan, "x", of=f32)
    _define("isfinite", bool_, isfinite, "x", of=f32)
    _define("order", u32, _order, "x", of=f32)
    _define("pow", f32, transcendental.pow, "a", "b")
    _define("maximum_f32", f32, _maximum, "a", "b")
    _define("minimum_f32", f32, _minimum, "a", "b")
    _define("floor_divide_f32", f32, lambda a, b: _floor_parts(a, b)[0], "a", "b")
    _define("remainder_f32", f32, lambda a, b: _floor_parts(a, b)[1], "a", "b")
    for dtype in (i32, u32):
        _define(f"floor_divide_{dtype}", dtype, lambda a, b: _int_parts(a, b)[0], "a", "b")
        _define(f"remainder_{dtype}", dtype, lambda a, b: _int_parts(a, b)[1], "a", "b")
        _define(f"cast_{dtype}", dtype, lambda x, dtype=dtype: _whole(x, dtype), "x", of=f32)
        _define(f"shl_{dtype}", dtype, _shl, "a", "b")
        _define(f"shr_{dtype}", dtype, _shr, "a", "b")
    _define("threefry2x32", u32, _threefry, "key0", "key1", "counter0", "counter1")


_define_all()


def expand(e: Expr) -> Expr | None:
    """What an elementwise expression is made of, or None where each printer has it natively.

    An f16 operand is computed in f32 and rounded once.
    """
    dtype = e.args[0].dtype if e.args else e.dtype
    if e.op == "cast":
        function = FUNCTIONS.get(f"cast_{e.dtype}") if dtype.is_float else None
    elif e.op == "mul" and dtype.is_float and any(_is_zero(a) for a in e.args):
        function = FUNCTIONS["zero_product"]
    elif e.op == "div" and dtype.is_float and _is_zero(e.args[0]):
        function = FUNCTIONS["zero_quotient"]
    else:
        function = FUNCTIONS.get(e.op) or FUNCTIONS.get(f"{e.op}_{f32 if dtype is f16 else dtype}")
    if function is None or (e.op in ("shl", "shr") and _shift_is_safe(e.args[1])):
        return None
    if dtype is not f16:
        return call(function, *e.args)
    wide = call(function, *(expr("cast", (a,), f32) for a in e.args))
    return wide if wide.dtype is e.dtype else expr("cast", (wide,), f16)


def _is_zero(e: Expr) -> bool:
    return e.op == "const" and e.data == 0


def _shift_is_safe(places: Expr) -> bool:
    if places.op == "and":
        places = places.args[1]
    return places.op == "const" and 0 <= places.data < 32
