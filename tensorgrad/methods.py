"""Methods of Tensor that are operations under the same name, with the tensor as their first argument."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorgrad.tensor import Tensor


class Method:
    """The operation of the attribute's name; what it says of itself stands there."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, tensor: Tensor | None, owner: type) -> Callable[..., Tensor]:
        from tensorgrad import ops  # which imports Tensor

        function = getattr(ops, self.name)
        return function if tensor is None else functools.partial(function, tensor)


class Methods:
    """The base of Tensor that has them."""

    __slots__ = ()

    # Elementwise
    abs = Method()
    absolute = Method()
    acos = Method()
    acosh = Method()
    add = Method()
    addcdiv = Method()
    addcmul = Method()
    arccos = Method()
    arccosh = Method()
    arcsin = Method()
    arcsinh = Method()
    arctan = Method()
    arctan2 = Method()
    arctanh = Method()
    asin = Method()
    asinh = Method()
    atan = Method()
    atan2 = Method()
    atanh = Method()
    ceil = Method()
    clip = Method()
    copysign = Method()
    cos = Method()
    cosh = Method()
    deg2rad = Method()
    div = Method()
    divide = Method()
    erf = Method()
    erfc = Method()
    exp = Method()
    exp2 = Method()
    expm1 = Method()
    fix = Method()
    floor = Method()
    floor_divide = Method()
    fmax = Method()
    fmin = Method()
    fmod = Method()
    frac = Method()
    hardshrink = Method()
    hypot = Method()
    lerp = Method()
    log = Method()
    log10 = Method()
    log1p = Method()
    log2 = Method()
    logaddexp = Method()
    logaddexp2 = Method()
    logit = Method()
    maximum = Method()
    minimum = Method()
    mul = Method()
    multiply = Method()
    nan_to_num = Method()
    neg = Method()
    negative = Method()
    pow = Method()
    prelu = Method()
    rad2deg = Method()
    reciprocal = Method()
    relu = Method()
    remainder = Method()
    round = Method()
    rsqrt = Method()
    sigmoid = Method()
    sign = Method()
    sin = Method()
    sinc = Method()
    sinh = Method()
    sqrt = Method()
    square = Method()
    sub = Method()
    subtract = Method()
    tan = Method()
    tanh = Method()
    true_divide = Method()
    trunc = Method()
    xlogy = Method()

    # Truth and bits
    allclose = Method()
    bitwise_and = Method()
    bitwise_not = Method()
    bitwise_or = Method()
    bitwise_xor = Method()
    eq = Method()
    ge = Method()
    greater = Method()
    greater_equal = Method()
    gt = Method()
    isclose = Method()
    isfinite = Method()
    isinf = Method()
    isnan = Method()
    isneginf = Method()
    isposinf = Method()
    le = Method()
    less = Method()
    less_equal = Method()
    logical_and = Method()
    logical_not = Method()
    logical_or = Method()
    logical_xor = Method()
    lt = Method()
    ne = Method()
    not_equal = Method()
    signbit = Method()

    # Reductions
    all = Method()
    amax = Method()
    amin = Method()
    any = Method()
    count_nonzero = Method()
    logsumexp = Method()
    nanmean = Method()
    nansum = Method()
    norm = Method()
    prod = Method()

    def aminmax(self, axis: Any = None, keepdims: Any = False, **kw: Any) -> tuple[Tensor, Tensor]:
        from tensorgrad import ops

        return ops.aminmax(self, axis, keepdims, **kw)

    def where(self, condition: Any, other: Any) -> Tensor:
        """The elements where the condition holds, else those of `other`, as PyTorch's."""
        from tensorgrad import ops

        return ops.where(condition, self, other)

    # PyTorch's conversions -------------------------------------------------------------

    def float(self) -> Tensor:
        return self._cast("f32")

    def half(self) -> Tensor:
        return self._cast("f16")

    def int(self) -> Tensor:
        return self._cast("i32")

    def bool(self) -> Tensor:
        return self._cast("bool")

    def _cast(self, dtype: str) -> Tensor:
        from tensorgrad.dtypes import BY_NAME
        from tensorgrad.ops import cast

        return cast(self, BY_NAME[dtype])
