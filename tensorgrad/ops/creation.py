"""Tensors made from numbers, and from other tensors' shapes."""

from __future__ import annotations

import math

from tensorgrad.dtypes import DType, as_dtype, f32
from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import TensorLike, cast, full, require, tensor, zeros, zeros_like
from tensorgrad.ops.indexing import iota
from tensorgrad.tensor import Tensor

pi = math.pi
"""The ratio of a circle's circumference to its diameter, a Python float."""

e = math.e
"""The base of natural logarithms, a Python float."""

inf = math.inf
"""Infinity, a Python float."""

nan = math.nan
"""Not a number, a Python float: it is not equal to itself."""

newaxis = None
"""In an index, an axis of size 1 at that place: `x[:, tg.newaxis]`."""


def full_like(x: TensorLike, fill_value: float, dtype: DType | None = None) -> Tensor:
    """One number in a tensor's shape and, by default, its dtype."""
    x = tensor(x)
    return full(x.shape, fill_value, as_dtype(dtype, x.dtype))


empty, empty_like = zeros, zeros_like
"""A value of a graph is computed, so there is none without numbers: these are zeros."""


def linspace(start: float, end: float, steps: int, dtype: DType = f32) -> Tensor:
    """`steps` numbers at equal distances, `start` and `end` among them.

    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(lambda: tg.linspace(-1, 1, 5), device="numpy")()).tolist()
    [-1.0, -0.5, 0.0, 0.5, 1.0]
    """
    require("linspace", "steps", steps, steps >= 0, "0 or more")
    at = cast(iota((steps,), 0), f32)
    # each half from its own end, so that both are exact
    step = (end - start) / max(steps - 1, 1)
    values = ew.where(ew.less(at, steps / 2), at * step + start, (at - (steps - 1)) * step + end)
    return cast(values if steps > 1 else full((steps,), float(start)), as_dtype(dtype, f32))


def logspace(start: float, end: float, steps: int, base: float = 10.0, dtype: DType = f32) -> Tensor:
    """`base` to the powers that `linspace` gives.

    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(lambda: tg.logspace(0, 3, 4, base=2), device="numpy")()).tolist()
    [1.0, 2.0, 4.0, 8.0]
    """
    return cast(ew.pow(full((), float(base)), linspace(start, end, steps)), as_dtype(dtype, f32))


def eye(n: int, m: int | None = None, dtype: DType = f32) -> Tensor:
    """`[n, m]` (by default square) with ones on the diagonal.

    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(lambda: tg.eye(2, 3), device="numpy")()).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    shape = (n, n if m is None else m)
    return cast(ew.equal(iota(shape, 0), iota(shape, 1)), as_dtype(dtype, f32))
