"""Methods of Tensor that are operations under the same name, with the tensor as their first argument."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

    from tensorgrad import ops
    from tensorgrad.tensor import Tensor


class Method:
    """The operation of the attribute's name; what it says of itself stands there."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, tensor: Tensor | None, owner: type) -> Callable[..., Any]:
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

    # Places and axes
    chunk = Method()
    diag = Method()
    diag_embed = Method()
    diagonal = Method()
    flip = Method()
    gather = Method()
    index_add = Method()
    index_copy = Method()
    index_fill = Method()
    index_put = Method()
    index_select = Method()
    masked_fill = Method()
    masked_select = Method()
    moveaxis = Method()
    movedim = Method()
    narrow = Method()
    repeat_interleave = Method()
    roll = Method()
    rot90 = Method()
    scatter = Method()
    scatter_add = Method()
    select = Method()
    split = Method()
    tensor_split = Method()
    tile = Method()
    tril = Method()
    triu = Method()
    unbind = Method()
    unflatten = Method()

    # Products
    bmm = Method()
    dot = Method()
    inner = Method()
    mm = Method()
    mv = Method()
    outer = Method()

    def aminmax(self, axis: Any = None, keepdims: Any = False, **kw: Any) -> tuple[Tensor, Tensor]:
        return ops.aminmax(self, axis, keepdims, **kw)

    def where(self, condition: Any, other: Any) -> Tensor:
        """The elements where the condition holds, else those of `other`, as PyTorch's."""
        return ops.where(condition, self, other)

    # Under other names than the functions

    def repeat(self, *sizes: Any) -> Tensor:
        """PyTorch's: the whole tensor repeated along each axis (NumPy's `repeat` is `repeat_interleave`)."""
        return ops.tile(self, *sizes)

    def expand_as(self, other: Tensor) -> Tensor:
        """`tg.broadcast_to` the shape of another tensor."""
        return ops.broadcast_to(self, other.shape)

    def reshape_as(self, other: Tensor) -> Tensor:
        """`tg.reshape` to the shape of another tensor."""
        return ops.reshape(self, other.shape)

    view_as = reshape_as

    def trace(self) -> Tensor:
        """The sum of a matrix's diagonal (`tg.trace` traces a function)."""
        return ops.sum(ops.diagonal(self))

    def contiguous(self) -> Tensor:
        """Itself: a kernel that needs elements in order sees to it."""
        return ops.asarray(self)

    # PyTorch's conversions -------------------------------------------------------------

    def float(self) -> Tensor:
        """The tensor as `tg.f32`."""
        return self._cast("f32")

    def half(self) -> Tensor:
        """The tensor as `tg.f16`."""
        return self._cast("f16")

    def int(self) -> Tensor:
        """The tensor as `tg.i32`."""
        return self._cast("i32")

    def bool(self) -> Tensor:
        """The tensor as `tg.bool_`."""
        return self._cast("bool")

    def _cast(self, dtype: str) -> Tensor:
        from tensorgrad.dtypes import BY_NAME

        return ops.cast(self, BY_NAME[dtype])


def bind_ops(module: ModuleType) -> None:
    """Gives the methods their implementation; see `tensor.bind_ops`."""
    globals()["ops"] = module
