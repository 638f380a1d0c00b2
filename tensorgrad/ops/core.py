"""What every operation needs: turning operands into tensors, and meeting in one shape and dtype."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

import numpy as np

from tensorgrad.callsite import call_site
from tensorgrad.checks import require as require
from tensorgrad.checks import shown
from tensorgrad.dtypes import DType, Shape, as_dtype, bool_, f16, f32, from_numpy, i32, promote, promote_scalar
from tensorgrad.errors import ArgumentError, DtypeError, ShapeError, TraceError
from tensorgrad.graph import TensorType
from tensorgrad.lower.expr import Expr, const
from tensorgrad.lower.index import Indices
from tensorgrad.primitive import primitive
from tensorgrad.shape import broadcast_trailing, check_axes, infer_broadcast_to, infer_elementwise_binop
from tensorgrad.tensor import Tensor
from tensorgrad.trace import bind, own

TensorLike = Any
"""A Tensor of the running trace, a number, or anything that NumPy makes an array of."""

Axis = int | Sequence[int] | None

P = ParamSpec("P")
R = TypeVar("R")


class Data:
    """A constant array as a hashable attribute: equal when shape, dtype and bytes are."""

    __slots__ = ("_key", "array")

    def __init__(self, array: np.ndarray) -> None:
        data = array.tobytes()  # a copy: what the user does to the array later changes no trace
        self.array = np.ndarray(array.shape, array.dtype, data)
        self._key = (array.shape, array.dtype.str, data)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Data) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"<{self.array.size} numbers>"


def _lower_const(idx: Indices, value: Any, dtype: DType) -> Expr:
    return const(value, dtype)


leaf_p = primitive(
    "leaf",
    shape=lambda **attrs: attrs["type"],
    eval=lambda xp, **attrs: None,  # the evaluator supplies leaves
)

const_p = primitive(
    "const",
    shape=lambda value, dtype: TensorType((), dtype),
    eval=lambda xp, value, dtype: xp.asarray(value, dtype=dtype.numpy),
    lower=_lower_const,
)

array_p = primitive(
    "array",
    shape=lambda data, dtype: TensorType(data.array.shape, dtype),
    eval=lambda xp, data, dtype: xp.asarray(data.array, dtype=dtype.numpy),
)

broadcast_to_p = primitive(
    "broadcast_to",
    shape=lambda x, shape: TensorType(infer_broadcast_to("broadcast_to", x.shape, shape), x.dtype),
    eval=lambda xp, x, shape: xp.broadcast_to(x, shape),
    grad=lambda g, out, x, shape: (sum_to_shape(g, x.shape),),
    lower=lambda idx, x, shape: x(
        tuple(i * (n != 1) for i, n in zip(idx[len(idx) - len(x.shape) :], x.shape, strict=True))
    ),
    view=True,
)


def _eval_cast(xp: Any, x: Any, dtype: DType) -> Any:
    if x.dtype.kind != "f" or dtype.kind not in "iu":
        return x.astype(dtype.numpy)
    # as WGSL does, and where NumPy's answer depends on the machine: stopped at the ends, NaN is 0
    info = np.iinfo(dtype.numpy)
    above, below = x >= float(info.max) + 1, x <= float(info.min)
    whole = xp.where(above | below | xp.isnan(x), 0, x).astype(dtype.numpy)
    return xp.where(above, dtype.numpy.type(info.max), xp.where(below, dtype.numpy.type(info.min), whole))


def _lower_cast(idx: Indices, x: Any, dtype: DType) -> Expr:
    from tensorgrad.lower.expr import expr

    value = x(idx)
    if value.op == "const":
        number = np.asarray(value.data).astype(value.dtype.numpy)
        return const(_eval_cast(np, number, dtype).item(), dtype)
    return value if value.dtype is dtype else expr("cast", (value,), dtype)


cast_p = primitive(
    "cast",
    shape=lambda x, dtype: TensorType(x.shape, dtype),
    eval=_eval_cast,
    grad=lambda g, out, x, dtype: (cast(g, x.dtype) if x.dtype.is_float and dtype.is_float else None,),
    lower=_lower_cast,
)


def full(shape: Shape | int, fill_value: float, dtype: DType | None = None) -> Tensor:
    """A tensor of one number.

    Args:
        dtype: by default f32, i32 or bool, as the number is.
    """
    number = fill_value.item() if isinstance(fill_value, np.generic) else fill_value
    require("full", "fill_value", number, isinstance(number, int | float), "a number")
    if dtype is None:
        dtype = bool_ if isinstance(number, bool) else i32 if isinstance(number, int) else f32
    dtype = as_dtype(dtype)
    number = bool(number) if dtype is bool_ else float(number) if dtype.is_float else _integer(number, dtype)
    scalar = bind(const_p, value=number, dtype=dtype)
    return broadcast_to(scalar, shape)


def _integer(number: float, dtype: DType) -> int:
    info = np.iinfo(dtype.numpy)
    if not math.isfinite(number) or not info.min <= int(number) <= info.max:
        raise DtypeError(f"{number} does not fit {dtype}, which goes from {info.min} to {info.max}", call_site())
    return int(number)


def zeros(*shape: Any, dtype: DType = f32) -> Tensor:
    """A tensor of zeros.

    Args:
        shape: one sequence, which a dtype may follow as in NumPy, or several sizes as in PyTorch.

    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(lambda: (tg.zeros(2, 1), tg.zeros((2,), tg.i32)), device="numpy")())
    (array([[0.],
           [0.]], dtype=float32), array([0, 0], dtype=int32))
    """
    return _of_sizes(0, shape, dtype)


def ones(*shape: Any, dtype: DType = f32) -> Tensor:
    """A tensor of ones; see `zeros`."""
    return _of_sizes(1, shape, dtype)


def _of_sizes(number: int, shape: tuple[Any, ...], dtype: DType) -> Tensor:
    if shape and isinstance(shape[-1], DType):
        *sizes, dtype = shape
        shape = tuple(sizes)
    return full(as_shape(shape), number, as_dtype(dtype, f32))


def zeros_like(x: TensorLike, dtype: DType | None = None) -> Tensor:
    """Zeros of a tensor's shape and, by default, its dtype."""
    x = tensor(x)
    return full(x.shape, 0, as_dtype(dtype, x.dtype))


def ones_like(x: TensorLike, dtype: DType | None = None) -> Tensor:
    """Ones of a tensor's shape and, by default, its dtype."""
    x = tensor(x)
    return full(x.shape, 1, as_dtype(dtype, x.dtype))


def host_array(value: Any) -> tuple[np.ndarray, DType]:
    """A host value as an array of a device dtype: float64 narrows, integers are checked to fit.

    Raises:
        DtypeError: for a dtype that no device dtype holds, or integers outside 32 bits.
    """
    try:
        array = np.asarray(value)
    except ValueError as error:  # rows of several lengths
        raise ShapeError(f"this makes no array: {error}", call_site()) from None
    except TraceError:
        if not isinstance(value, list | tuple):
            raise
        raise ArgumentError(
            f"one tensor belongs here, not a {type(value).__name__} of tensors. tg.stack or tg.concat put tensors "
            "together; a recurrent layer returns its output and its state: output, state = lstm(x)"
        ) from None
    try:
        dtype = from_numpy(array.dtype)
    except DtypeError as error:
        raise DtypeError(f"{shown(value)} makes no tensor: {error.message}", call_site()) from None
    if (dtype.kind in "iu" and array.itemsize > 4) or (array.dtype.kind == "u" and dtype is i32):
        info = np.iinfo(dtype.numpy)
        if array.size and (array.min() < info.min or array.max() > info.max):
            raise DtypeError(f"integers from {array.min()} to {array.max()} do not fit {dtype}", call_site())
    return array.astype(dtype.numpy, copy=False), dtype


def tensor(value: Any, dtype: DType | None = None) -> Tensor:
    """A constant of the running trace from a number or an array.

    >>> import tensorgrad as tg
    >>> print(tg.trace(lambda: tg.tensor([1.0, 2.0])))  # doctest: +ELLIPSIS
    %0: f32[2] = array(data=<2 numbers>, dtype=f32)  # ...
    return %0
    """
    if isinstance(value, Tensor):
        own(value)
        return value if dtype is None else cast(value, dtype)
    if isinstance(value, bool | int | float):
        return full((), value, dtype)
    array, found = host_array(value)
    dtype = as_dtype(dtype, found)
    # by their bytes: 0.0 is not -0.0, and NaN is itself
    if array.size and array.tobytes() == array.flat[0].tobytes() * array.size:
        return full(array.shape, array.flat[0], dtype)
    return cast(bind(array_p, data=Data(array), dtype=found), dtype)


asarray = tensor


def cast(x: TensorLike, dtype: DType) -> Tensor:
    """The tensor in another dtype: floats to integers truncate and saturate (NaN is 0), anything not 0 is True.

    Args:
        dtype: one of `tg.f32`, `tg.i32`, `tg.u32`, `tg.bool_`, `tg.f16`, or NumPy's, as arrays of it are taken.
    """
    x, dtype = tensor(x), as_dtype(dtype)
    return x if x.dtype is dtype else bind(cast_p, x, dtype=dtype)


def broadcast_to(x: TensorLike, *shape: Any) -> Tensor:
    """The tensor repeated along axes of size 1 and new leading axes, without a copy."""
    x, target = tensor(x), as_shape(shape)
    return x if x.shape == target else bind(broadcast_to_p, x, shape=target)


def as_shape(args: tuple[Any, ...]) -> Shape:
    """A shape given as one sequence or as several sizes."""
    if len(args) == 1 and isinstance(args[0], list | tuple):
        args = tuple(args[0])
    try:
        return tuple(int(n.__index__()) for n in args)
    except (AttributeError, TypeError):
        raise ShapeError(f"a shape is made of whole numbers, got {args}", call_site()) from None


def either(name: str, first: Any, other: str, kw: dict[str, Any], default: Any = None) -> Any:
    """An argument under NumPy's name or, as a keyword, PyTorch's."""
    if other in kw:
        if first != default:
            raise ArgumentError(f"give {name} or {other}, not both")
        first = kw.pop(other)
    if kw and other != "dim":
        raise ArgumentError(f"unexpected keyword {next(iter(kw))!r}")
    return first


def one_axis(name: str, axis: Any, kw: dict[str, Any], default: int | None) -> Any:
    """The axis, given as `axis` or as PyTorch's `dim`; there may be no other keyword."""
    axis = either("axis", axis, "dim", kw, default)
    refuse_keywords(name, kw)
    return axis


def refuse_keywords(name: str, kw: dict[str, Any]) -> None:
    """Raises ArgumentError where keywords are left over."""
    if kw:
        raise ArgumentError(f"{name}: unexpected keyword {next(iter(kw))!r}")


def meet(*operands: TensorLike) -> tuple[DType, list[Tensor]]:
    """The operands as tensors of their common dtype; Python numbers are weak."""
    tensors = [x if isinstance(x, Tensor | bool | int | float) else tensor(x) for x in operands]
    dtype: DType | None = None
    try:
        for x in tensors:
            if isinstance(x, Tensor):
                dtype = x.dtype if dtype is None else promote(dtype, own(x).dtype)
        for x in tensors:
            if not isinstance(x, Tensor) and dtype is not None:
                dtype = promote_scalar(dtype, x)
    except DtypeError as error:
        raise DtypeError(str(error), call_site()) from None
    if dtype is None:
        made = [full((), x) for x in tensors if not isinstance(x, Tensor)]
        return meet(*made)
    return dtype, [cast(x, dtype) if isinstance(x, Tensor) else full((), x, dtype) for x in tensors]


def spread(name: str, *tensors: Tensor) -> list[Tensor]:
    """The tensors broadcast to their common shape."""
    shape = broadcast_trailing(*(t.shape for t in tensors))
    if shape is None:
        shape = tensors[0].shape
        for t in tensors[1:]:
            shape = infer_elementwise_binop(name, shape, t.shape)
    return [broadcast_to(t, shape) for t in tensors]


def floats(name: str, *operands: TensorLike) -> list[Tensor]:
    """The operands as floats of one dtype and shape; integers and bools become f32."""
    dtype, tensors = meet(*operands)
    return spread(name, *(x if dtype.is_float else cast(x, f32) for x in tensors))


def sum_to_shape(x: Tensor, shape: Shape) -> Tensor:
    """The sum over the axes along which `shape` was broadcast to `x`'s; broadcasting's gradient."""
    from tensorgrad.ops.reduce import sum as sum_
    from tensorgrad.ops.views import reshape
    from tensorgrad.shape import infer_sum_to_shape

    infer_sum_to_shape("sum_to_shape", x.shape, shape)
    lead = len(x.shape) - len(shape)
    axes = tuple(i for i, n in enumerate(x.shape) if i < lead or (shape[i - lead] == 1 and n != 1))
    return reshape(sum_(x, check_axes("sum", axes, len(x.shape))), shape) if axes else x


def named(function: Callable[P, R], name: str, doc: str | None) -> Callable[P, R]:
    """The function, that was made by another, under a name of its own; `callsite.called` reads that of the code."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    function.__code__ = function.__code__.replace(co_name=name)
    return function


def in_f32(function: Callable[P, R]) -> Callable[P, R]:
    """Makes a composite take operands of f16 as f32 and round its result once, as PyTorch's kernels do.

    A square, an exponential or a sum on the way passes f16's largest number, 65504, long before the result does.
    Operands are the parameters that are annotated as tensors; NumPy's numbers for others are plain ones.
    """
    inner: Callable[..., Any] = function  # which takes other arguments of the same meaning
    parameters = signature(function)
    operands = {n for n, p in parameters.parameters.items() if not TENSORS.isdisjoint(str(p.annotation).split(" | "))}

    @wraps(function)
    def wide(*args: P.args, **kwargs: P.kwargs) -> R:
        if not any(getattr(x, "dtype", None) in (f16, HALF) for x in (*args, *kwargs.values())):
            return function(*args, **kwargs)
        given = parameters.bind(*args, **kwargs)
        dtypes: set[DType] = set()
        for name, value in given.arguments.items():
            if name not in operands:
                given.arguments[name] = value.item() if isinstance(value, np.generic) else value
            elif value is not None and not isinstance(value, bool | int | float):
                x = tensor(value)
                dtypes.add(x.dtype)
                given.arguments[name] = cast(x, f32) if x.dtype is f16 else x
        out = inner(*given.args, **given.kwargs)
        return _narrowed(out) if f16 in dtypes and f32 not in dtypes else out

    return named(wide, function.__name__, function.__doc__)


HALF = np.dtype(np.float16)
TENSORS = frozenset({"TensorLike", "Tensor"})


def _narrowed(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(map(_narrowed, x))
    return cast(x, f16) if isinstance(x, Tensor) and x.dtype is f32 else x
