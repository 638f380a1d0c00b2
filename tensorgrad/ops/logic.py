"""Truth values of whatever is not 0, comparisons under PyTorch's short names, and closeness."""

from __future__ import annotations

import math

from tensorgrad.dtypes import bool_
from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import TensorLike, floats, full, tensor
from tensorgrad.ops.statistics import all as all_
from tensorgrad.tensor import Tensor

eq, ne, lt, le, gt, ge = ew.equal, ew.not_equal, ew.less, ew.less_equal, ew.greater, ew.greater_equal


def _truth(x: TensorLike) -> Tensor:
    x = tensor(x)
    return x if x.dtype is bool_ else ew.not_equal(x, 0)


def logical_not(x: TensorLike) -> Tensor:
    """Where an element is 0 or False; NaN is neither."""
    return ew.bitwise_not(_truth(x))


def logical_and(a: TensorLike, b: TensorLike) -> Tensor:
    """Where neither element is 0 or False."""
    return ew.bitwise_and(_truth(a), _truth(b))


def logical_or(a: TensorLike, b: TensorLike) -> Tensor:
    """Where an element is neither 0 nor False."""
    return ew.bitwise_or(_truth(a), _truth(b))


def logical_xor(a: TensorLike, b: TensorLike) -> Tensor:
    """Where one element is 0 or False and the other is not."""
    return ew.bitwise_xor(_truth(a), _truth(b))


def isposinf(x: TensorLike) -> Tensor:
    """Where an element is inf."""
    x = tensor(x)
    return ew.equal(x, math.inf) if x.dtype.is_float else full(x.shape, False)


def isneginf(x: TensorLike) -> Tensor:
    """Where an element is -inf."""
    x = tensor(x)
    return ew.equal(x, -math.inf) if x.dtype.is_float else full(x.shape, False)


def isclose(a: TensorLike, b: TensorLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Where `|a - b| <= atol + rtol * |b|`. An infinity is close to itself alone.

    Args:
        a, b: numbers of any dtype, which broadcast.
        equal_nan: whether NaN is close to NaN.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([1.0, 1.1], np.float32)
    >>> tg.sync(tg.jit(lambda x: tg.isclose(x, 1.000001), device="numpy")(x)).tolist()
    [True, False]
    """
    a, b = floats("isclose", a, b)
    distance = ew.abs(a - b)
    near = (ew.less_equal(distance, ew.abs(b) * rtol + atol) & ew.isfinite(distance)) | ew.equal(a, b)
    return near | (ew.isnan(a) & ew.isnan(b)) if equal_nan else near


def allclose(a: TensorLike, b: TensorLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether all elements are close, as a bool scalar of the trace; see `isclose`."""
    return all_(isclose(a, b, rtol, atol, equal_nan))
