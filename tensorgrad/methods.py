"""The bases of Tensor: methods that are operations under the same name, and what a tensor of a trace cannot do."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from tensorgrad.callsite import call_site
from tensorgrad.errors import ArgumentError, TraceError, no_attribute

if TYPE_CHECKING:
    from types import ModuleType

    from tensorgrad import ops
    from tensorgrad.graph import TensorType
    from tensorgrad.tensor import Tensor

_OPERATORS = {
    "add": "__radd__",
    "bitwise_and": "__rand__",
    "bitwise_or": "__ror__",
    "bitwise_xor": "__rxor__",
    "divide": "__rtruediv__",
    "equal": "__eq__",
    "floor_divide": "__rfloordiv__",
    "greater": "__lt__",
    "greater_equal": "__le__",
    "less": "__gt__",
    "less_equal": "__ge__",
    "matmul": "__rmatmul__",
    "multiply": "__rmul__",
    "not_equal": "__ne__",
    "power": "__rpow__",
    "remainder": "__rmod__",
    "subtract": "__rsub__",
    "true_divide": "__rtruediv__",
}
"""What NumPy calls for an operator with an array on its left -> the tensor's method for one on its right."""


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
    scatter_reduce = Method()
    select = Method()
    split = Method()
    take = Method()
    tensor_split = Method()
    tile = Method()
    tril = Method()
    triu = Method()
    unbind = Method()
    unflatten = Method()

    # Products
    addmm = Method()
    addmv = Method()
    baddbmm = Method()
    bmm = Method()
    dot = Method()
    inner = Method()
    kron = Method()
    mm = Method()
    mv = Method()
    outer = Method()
    vdot = Method()

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

    def numel(self: Any) -> builtins.int:
        """PyTorch's name of `size`."""
        return builtins.int(self.size)

    def dim(self: Any) -> builtins.int:
        """PyTorch's name of `ndim`."""
        return self.ndim

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

    def long(self) -> Tensor:
        """The tensor as `tg.i32`, the widest integers of a GPU: what arrays of int64 become."""
        return self._cast("i32")

    def bool(self) -> Tensor:
        """The tensor as `tg.bool_`."""
        return self._cast("bool")

    def _cast(self, dtype: str) -> Tensor:
        from tensorgrad.dtypes import BY_NAME

        return ops.cast(self, BY_NAME[dtype])


class Numberless:
    """What needs numbers that a trace does not have, or names that a tensor does not have: it says what to do."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def type(self) -> TensorType: ...

    else:  # type checkers would take any name for an attribute

        def __getattr__(self, name):
            raise no_attribute(self, name)

    def _no_value(self, what: str) -> NoReturn:
        raise TraceError(
            f"{what} needs the numbers of {self.type}, which do not exist while the function is traced. "
            "Use tg.where for a choice by value; return the tensor, or tg.capture it, to see its numbers.",
            call_site(),
        )

    def __bool__(self) -> bool:
        self._no_value("bool()")

    def __float__(self) -> float:
        self._no_value("float()")

    def __int__(self) -> int:
        self._no_value("int()")

    def __index__(self) -> int:
        self._no_value("use as an index")

    def __format__(self, spec: str) -> str:
        return self._no_value(f"the format {spec!r}") if spec else str(self)

    def __round__(self, digits: int = 0) -> Any:
        return self._no_value("rounding to digits") if digits else ops.round(self)

    def item(self) -> float:
        """Raises TraceError: the number does not exist while a function is traced."""
        self._no_value("item()")

    def numpy(self) -> Any:
        """Raises TraceError: the numbers do not exist while a function is traced."""
        self._no_value("numpy()")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        self._no_value("conversion to an array")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """An operator with an array on its left is the tensor's own; NumPy's functions are refused."""
        name = ufunc.__name__
        if method == "__call__" and name in _OPERATORS and not isinstance(inputs[0], Numberless):
            return getattr(inputs[1], _OPERATORS[name])(inputs[0])
        return self._no_numpy("np", name)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """NumPy's functions are refused, but for those of the shape; outside a trace they get a parameter's array."""
        from tensorgrad.trace import is_tracing

        name = function.__name__
        if name in ("shape", "ndim", "size"):
            return function._implementation(*args, **kwargs)
        if is_tracing():
            self._no_numpy(function.__module__.replace("numpy", "np", 1), name)
        return function(*_arrays(args), **_arrays(kwargs))

    def _no_numpy(self, module: str, name: str) -> NoReturn:
        own = f"tg.{name}" if hasattr(ops, name) else "the functions of tg"
        message = f"{module}.{name} computes with arrays, and {self!r} has no numbers yet; use {own}, which records"
        raise TraceError(f"{message} the operation", call_site())

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise TraceError(
            "tensors do not change: make another one with x = tg.where(mask, value, x), or put parts together with "
            "tg.concat or tg.stack. (A parameter's initial values are an array: parameter.data[...] = value.)",
            call_site(),
        )


def _arrays(value: Any) -> Any:
    """The arguments of a function with arrays in place of parameters."""
    if isinstance(value, Numberless):
        return value.__array__()
    if isinstance(value, dict):
        return {name: _arrays(item) for name, item in value.items()}
    return [*map(_arrays, value)] if isinstance(value, list | tuple) else value


class Size(int):
    """The number of elements, which is no function."""

    def __call__(self, *axis: Any) -> NoReturn:
        raise ArgumentError(
            "a tensor's size is the number of its elements, as in NumPy; PyTorch's x.size() is x.shape, x.size(0) is "
            "x.shape[0]"
        )


def bind_ops(module: ModuleType) -> None:
    """Gives the methods their implementation; see `tensor.bind_ops`."""
    globals()["ops"] = module
