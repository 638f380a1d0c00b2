"""Elementwise operations: unary, binary, comparison and choice."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorgrad.callsite import call_site
from tensorgrad.dtypes import DType, as_dtype, bool_, f32, i32, u32
from tensorgrad.errors import DtypeError, InputError
from tensorgrad.graph import TensorType
from tensorgrad.lower.expr import Expr, expr
from tensorgrad.ops.core import TensorLike, cast, full, meet, named, spread, tensor, zeros_like
from tensorgrad.primitive import Primitive, primitive
from tensorgrad.shape import fail, show_shape
from tensorgrad.tensor import Tensor
from tensorgrad.trace import bind

Grad = Callable[..., tuple[Any, ...]]


def _same(op: str, types: tuple[TensorType, ...]) -> TensorType:
    first = types[0]
    for other in types[1:]:
        if other.shape != first.shape:
            fail(f"{op}: shapes {show_shape(first.shape)} and {show_shape(other.shape)} differ")
        if other.dtype is not first.dtype:
            raise DtypeError(f"{op}: dtypes {first.dtype} and {other.dtype} differ", call_site())
    return first


def _elementwise(
    name: str,
    evaluate: Callable[..., Any],
    grad: Grad | None = None,
    kinds: str = "fiu",
    result: DType | None = None,
) -> Primitive:
    """An operation on equal shapes and dtypes, whose expression has the operation's own name."""

    def shape(*types: TensorType) -> TensorType:
        common = _same(name, types)
        if common.dtype.kind not in kinds:
            raise DtypeError(f"{name} is not defined for {common.dtype}; convert with .astype(...)", call_site())
        return TensorType(common.shape, result or common.dtype)

    def lower(idx: Any, *xs: Any) -> Expr:
        args = tuple(x(idx) for x in xs)
        return expr(name, args, result or args[0].dtype)

    return primitive(name, shape=shape, eval=evaluate, grad=grad, lower=lower)


# Unary ------------------------------------------------------------------------------


def _erf(xp: Any, x: Any) -> Any:
    from tensorgrad.lower.transcendental import erf_reference

    return erf_reference(xp, x)


def _erfc(xp: Any, x: Any) -> Any:
    from tensorgrad.lower.transcendental import erfc_reference

    return erfc_reference(xp, x)


def _sigmoid(xp: Any, x: Any) -> Any:
    e = xp.exp(-xp.abs(x))
    return xp.where(x >= 0, 1 / (1 + e), e / (1 + e)).astype(x.dtype)


BELL = 2 / math.sqrt(math.pi)
"""erf's slope at 0."""

neg_p = _elementwise("neg", lambda xp, x: -x, lambda g, out, x: (-g,))
abs_p = _elementwise("abs", lambda xp, x: xp.abs(x), lambda g, out, x: (g * sign(x),), "fi")
sign_p = _elementwise("sign", lambda xp, x: xp.sign(x), lambda g, out, x: (None,), "fi")
sqrt_p = _elementwise("sqrt", lambda xp, x: xp.sqrt(x), lambda g, out, x: (g * 0.5 / out,), "f")
rsqrt_p = _elementwise("rsqrt", lambda xp, x: 1 / xp.sqrt(x), lambda g, out, x: (g * -0.5 * (out * out * out),), "f")
exp_p = _elementwise("exp", lambda xp, x: xp.exp(x), lambda g, out, x: (g * out,), "f")
expm1_p = _elementwise("expm1", lambda xp, x: xp.expm1(x), lambda g, out, x: (g * (out + 1),), "f")
log_p = _elementwise("log", lambda xp, x: xp.log(x), lambda g, out, x: (g / x,), "f")
log1p_p = _elementwise("log1p", lambda xp, x: xp.log1p(x), lambda g, out, x: (g / (x + 1),), "f")
sin_p = _elementwise("sin", lambda xp, x: xp.sin(x), lambda g, out, x: (g * cos(x),), "f")
cos_p = _elementwise("cos", lambda xp, x: xp.cos(x), lambda g, out, x: (-g * sin(x),), "f")
tanh_p = _elementwise("tanh", lambda xp, x: xp.tanh(x), lambda g, out, x: (g * (1 - out * out),), "f")
sigmoid_p = _elementwise("sigmoid", _sigmoid, lambda g, out, x: (g * (out * (1 - out)),), "f")
erf_p = _elementwise("erf", _erf, lambda g, out, x: (g * BELL * exp(-(x * x)),), "f")
erfc_p = _elementwise("erfc", _erfc, lambda g, out, x: (g * -BELL * exp(-(x * x)),), "f")
atan_p = _elementwise("atan", lambda xp, x: xp.arctan(x), lambda g, out, x: (g / (x * x + 1),), "f")
floor_p = _elementwise("floor", lambda xp, x: xp.floor(x), lambda g, out, x: (None,), "f")
ceil_p = _elementwise("ceil", lambda xp, x: xp.ceil(x), lambda g, out, x: (None,), "f")
round_p = _elementwise("round", lambda xp, x: xp.round(x), lambda g, out, x: (None,), "f")
isnan_p = _elementwise("isnan", lambda xp, x: xp.isnan(x), kinds="f", result=bool_)
isfinite_p = _elementwise("isfinite", lambda xp, x: xp.isfinite(x), kinds="f", result=bool_)
not_p = _elementwise("not", lambda xp, x: xp.logical_not(x) if x.dtype.kind == "b" else ~x, kinds="biu")

# Binary -----------------------------------------------------------------------------


def _ties(g: Tensor, a_loses: Tensor, b_loses: Tensor, tie: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient of a maximum or minimum goes to the operand that it is; ties share it, and a NaN reaches both."""
    share = g * where(tie, 0.5, 1.0)
    return where(a_loses, 0.0, share), where(b_loses, 0.0, share)


def _pow_grad(g: Tensor, out: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    base = where(b == 0, 0.0, b * pow(a, b - 1))
    exponent = where((a == 0) & (b >= 0), 0.0, out * log(a))
    return g * base, g * exponent


def _divide(xp: Any, a: Any, b: Any) -> Any:
    return a / b


add_p = _elementwise("add", lambda xp, a, b: a + b, lambda g, out, a, b: (g, g))
sub_p = _elementwise("sub", lambda xp, a, b: a - b, lambda g, out, a, b: (g, -g))
mul_p = _elementwise("mul", lambda xp, a, b: a * b, lambda g, out, a, b: (g * b, g * a))
div_p = _elementwise("div", _divide, lambda g, out, a, b: (g / b, -g * out / b), "f")
maximum_p = _elementwise(
    "maximum", lambda xp, a, b: xp.maximum(a, b), lambda g, out, a, b: _ties(g, a < b, b < a, a == b)
)
minimum_p = _elementwise(
    "minimum", lambda xp, a, b: xp.minimum(a, b), lambda g, out, a, b: _ties(g, b < a, a < b, a == b)
)
pow_p = _elementwise("pow", lambda xp, a, b: xp.power(a, b), _pow_grad, "f")
floor_divide_p = _elementwise("floor_divide", lambda xp, a, b: xp.floor_divide(a, b), lambda g, out, a, b: (None, None))
remainder_p = _elementwise(
    "remainder", lambda xp, a, b: xp.remainder(a, b), lambda g, out, a, b: (g, -g * floor_divide(a, b))
)
less_p = _elementwise("less", lambda xp, a, b: a < b, result=bool_)
less_equal_p = _elementwise("less_equal", lambda xp, a, b: a <= b, result=bool_)
equal_p = _elementwise("equal", lambda xp, a, b: a == b, kinds="fiub", result=bool_)
and_p = _elementwise("and", lambda xp, a, b: a & b, kinds="biu")
or_p = _elementwise("or", lambda xp, a, b: a | b, kinds="biu")
xor_p = _elementwise("xor", lambda xp, a, b: a ^ b, kinds="biu")
shl_p = _elementwise("shl", lambda xp, a, b: xp.left_shift(a, b), kinds="iu")
shr_p = _elementwise("shr", lambda xp, a, b: xp.right_shift(a, b), kinds="iu")


def _where_shape(condition: TensorType, a: TensorType, b: TensorType) -> TensorType:
    if condition.dtype is not bool_:
        raise DtypeError(f"where: the condition must be bool, got {condition.dtype}", call_site())
    _same("where", (TensorType(condition.shape, a.dtype), a, b))
    return a


def _where_lower(idx: Any, condition: Any, a: Any, b: Any) -> Expr:
    from tensorgrad.lower.expr import where as choose

    return choose(condition(idx), a(idx), b(idx))


where_p = primitive(
    "where",
    shape=_where_shape,
    eval=lambda xp, condition, a, b: xp.where(condition, a, b),
    grad=lambda g, out, condition, a, b: (
        None,
        where(condition, g, zeros_like(g)),
        where(condition, zeros_like(g), g),
    ),
    lower=_where_lower,
)


def _bitcast_eval(xp: Any, x: Any, dtype: DType) -> Any:
    x = xp.asarray(x)
    if x.dtype.itemsize == 8:  # a derivative is being compared in float64
        x = x.astype("float32")
    return x.view(dtype.numpy)  # of one size, so any strides will do


bitcast_p = primitive(
    "bitcast",
    shape=lambda x, dtype: TensorType(x.shape, dtype),
    eval=_bitcast_eval,
    lower=lambda idx, x, dtype: expr("bitcast", (x(idx),), dtype),
)

stop_gradient_p = primitive(
    "stop_gradient",
    shape=lambda x: x,
    eval=lambda xp, x: x,
    lower=lambda idx, x: x(idx),
    view=True,
)


# The functions ------------------------------------------------------------------------


def _unary(p: Primitive, doc: str, floats_only: bool = True) -> Callable[[TensorLike], Tensor]:
    def function(x: TensorLike) -> Tensor:
        x = tensor(x)
        if x.dtype.kind == "b" or (floats_only and not x.dtype.is_float):
            x = cast(x, f32 if floats_only else i32)
        return bind(p, x)

    return named(function, p.name, doc)


neg = _unary(neg_p, "The negative of each element.", False)
sqrt = _unary(sqrt_p, "The square root; NaN below zero.")
rsqrt = _unary(rsqrt_p, "One over the square root.")
exp = _unary(exp_p, "e to the power of each element.")
expm1 = _unary(expm1_p, "exp(x) - 1, exact near zero.")
log = _unary(log_p, "The natural logarithm; -inf at zero, NaN below.")
log1p = _unary(log1p_p, "log(1 + x), exact near zero.")
sin = _unary(sin_p, "The sine of radians.")
cos = _unary(cos_p, "The cosine of radians.")
tanh = _unary(tanh_p, "The hyperbolic tangent.")
sigmoid = _unary(sigmoid_p, "1 / (1 + exp(-x)).")
erf = _unary(erf_p, "The error function.")
erfc = _unary(erfc_p, "1 - erf(x), whose digits it keeps where erf is close to 1.")
atan = _unary(atan_p, "The angle from -pi/2 to pi/2 whose tangent this is.")
isnan = _unary(isnan_p, "Where an element is NaN.")
isfinite = _unary(isfinite_p, "Where an element is neither infinite nor NaN.")


def _keeps_integers(p: Primitive, doc: str) -> Callable[[TensorLike], Tensor]:
    def function(x: TensorLike) -> Tensor:
        x = tensor(x)
        return bind(p, x) if x.dtype.is_float else x

    return named(function, p.name, doc)


floor = _keeps_integers(floor_p, "The next whole number below.")
ceil = _keeps_integers(ceil_p, "The next whole number above.")
round = _keeps_integers(round_p, "The nearest whole number; halves go to the even one.")


def _signed(p: Primitive, doc: str) -> Callable[[TensorLike], Tensor]:
    def function(x: TensorLike) -> Tensor:
        x = tensor(x)
        if x.dtype is u32:
            return x if p is abs_p else cast(x != 0, u32)
        return bind(p, cast(x, i32) if x.dtype is bool_ else x)

    return named(function, p.name, doc)


abs = _signed(abs_p, "The absolute value.")
sign = _signed(sign_p, "-1, 0 or 1 by the sign, NaN of NaN (as NumPy; PyTorch's is 0); its gradient is 0.")


def isinf(x: TensorLike) -> Tensor:
    """Where an element is infinite."""
    return bitwise_not(isfinite(x) | isnan(x))


def square(x: TensorLike) -> Tensor:
    """Each element times itself."""
    x = tensor(x)
    return mul(x, x)


def _binary(p: Primitive, doc: str, at_least: DType | None = i32) -> Callable[[TensorLike, TensorLike], Tensor]:
    def function(a: TensorLike, b: TensorLike) -> Tensor:
        dtype, operands = meet(a, b)
        if at_least is not None and (dtype is bool_ or (at_least is f32 and not dtype.is_float)):
            operands = [cast(x, at_least) for x in operands]
        return bind(p, *spread(p.name, *operands))

    return named(function, p.name, doc)


add = _binary(add_p, "The sum, elementwise.")
sub = _binary(sub_p, "The difference, elementwise.")
mul = _binary(mul_p, "The product, elementwise.")
div = _binary(div_p, "The quotient, elementwise; of integers it is f32.", f32)
maximum = _binary(maximum_p, "The larger of two elements; NaN if one is. Ties share the gradient.")
minimum = _binary(minimum_p, "The smaller of two elements; NaN if one is. Ties share the gradient.")
floor_divide = _binary(floor_divide_p, "The quotient rounded down, as Python's `//`.")
remainder = _binary(remainder_p, "What `floor_divide` leaves, with the divisor's sign, as Python's `%`.")
less = _binary(less_p, "Where a < b.")
less_equal = _binary(less_equal_p, "Where a <= b.")
equal = _binary(equal_p, "Where a == b; NaN is not equal to itself.", None)
bitwise_and = _binary(and_p, "And, of bits or of truth values.", None)
bitwise_or = _binary(or_p, "Or, of bits or of truth values.", None)
bitwise_xor = _binary(xor_p, "Exclusive or, of bits or of truth values.", None)
left_shift = _binary(shl_p, "The bits moved up by b places.")
right_shift = _binary(shr_p, "The bits moved down by b places.")


def greater(a: TensorLike, b: TensorLike) -> Tensor:
    """Where a > b."""
    return less(b, a)


def greater_equal(a: TensorLike, b: TensorLike) -> Tensor:
    """Where a >= b."""
    return less_equal(b, a)


def not_equal(a: TensorLike, b: TensorLike) -> Tensor:
    """Where a != b; NaN is not equal to itself."""
    return bitwise_not(equal(a, b))


def bitwise_not(x: TensorLike) -> Tensor:
    """Not, of bits or of truth values: `~x`."""
    return bind(not_p, tensor(x))


def where(condition: TensorLike, a: TensorLike | None = None, b: TensorLike | None = None) -> Tensor:
    """`a` where the condition holds, else `b`; all three broadcast.

    The gradient reaches only the side that was chosen, so a NaN of the other side's
    value does no harm (a NaN of its derivative does: guard the argument as well).
    """
    if a is None or b is None:
        raise InputError(
            "where(condition, a, b) needs both values: how many elements a condition alone selects is not known "
            "while tracing",
            call_site(),
        )
    condition = tensor(condition)
    _, (a, b) = meet(a, b)
    condition = condition if condition.dtype is bool_ else not_equal(condition, 0)
    return bind(where_p, *spread("where", condition, a, b))


def pow(a: TensorLike, b: TensorLike) -> Tensor:
    """`a ** b`; a negative base needs a whole exponent, else the result is NaN.

    A small whole exponent, and any of an integer, is a product: integers stay exact, and wrap. A negative or
    fractional number as the power of an integer makes it f32; with an integer tensor as the exponent it stays one.
    """
    b = b.item() if isinstance(b, np.generic) else b
    if isinstance(b, int | float) and not isinstance(b, bool) and float(b).is_integer():
        base, exponent = tensor(a), int(b)
        if not base.dtype.is_float:
            whole = i32 if base.dtype is bool_ else base.dtype
            base = cast(base, f32 if exponent < 0 or isinstance(b, float) else whole)
        if builtins.abs(exponent) <= 8 or not base.dtype.is_float:
            power = _whole_power(base, builtins.abs(exponent))
            return div(1.0, power) if exponent < 0 else power
        a = base
    dtype, operands = meet(a, b)
    base, exponent = spread("pow", *operands)
    return bind(pow_p, base, exponent) if dtype.is_float else _integer_power(base, exponent)


def _integer_power(base: Tensor, exponent: Tensor) -> Tensor:
    """The product of `base ** 2**k` over the bits k of the exponent; of a negative one, 1 over it, rounded to 0."""
    whole = i32 if base.dtype is bool_ else base.dtype
    base, exponent = cast(base, whole), cast(exponent, whole)
    size = exponent if whole is u32 else abs(exponent)
    out, square = full(base.shape, 1, whole), base
    for k in range(32):
        out = where(equal(bitwise_and(right_shift(size, k), 1), 0), out, mul(out, square))
        square = mul(square, square)
    # of a negative exponent, the others have no integer beside 0
    return out if whole is u32 else where(greater_equal(exponent, 0) | less_equal(abs(base), 1), out, 0)


def _whole_power(base: Tensor, exponent: int) -> Tensor:
    if exponent < 2:
        return base if exponent else full(base.shape, 1, base.dtype)
    half = _whole_power(base, exponent // 2)
    return mul(mul(half, half), base) if exponent % 2 else mul(half, half)


def clamp(x: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """Elements below `min` become `min`, above `max` become `max`; NaN stays.

    The gradient is 1 from bound to bound, bounds included, as in PyTorch.
    """
    x = tensor(x)
    if max is not None:
        x = where(less_equal(x, max) | isnan_or_false(x), x, max)
    if min is not None:
        x = where(greater_equal(x, min) | isnan_or_false(x), x, min)
    return x


def isnan_or_false(x: Tensor) -> Tensor:
    """Where an element is NaN; integers never are."""
    return isnan(x) if x.dtype.is_float else full(x.shape, False)


def stop_gradient(x: TensorLike) -> Tensor:
    """The same numbers, through which no gradient flows: PyTorch's `detach`."""
    return bind(stop_gradient_p, tensor(x))


def bitcast(x: TensorLike, dtype: DType) -> Tensor:
    """The same bits read as another dtype, of the same width.

    Raises:
        DtypeError: the widths differ, or one of the dtypes is bool.
    """
    x, dtype = tensor(x), as_dtype(dtype)
    if bool_ in (x.dtype, dtype) or x.dtype.itemsize != dtype.itemsize:
        raise DtypeError(f"bitcast: the bits of {x.type} are no {dtype}: their widths differ", call_site())
    return bind(bitcast_p, x, dtype=dtype)
