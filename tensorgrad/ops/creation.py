"""Tensors made from numbers, shapes and other tensors' shapes."""

from __future__ import annotations

import math
from typing import Literal

from tensorgrad.dtypes import DType, Shape, f32
from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import TensorLike, broadcast_to, cast, full, require, tensor, zeros, zeros_like
from tensorgrad.ops.indexing import iota
from tensorgrad.ops.views import reshape, swapaxes
from tensorgrad.shape import fail
from tensorgrad.tensor import Tensor

pi, e, inf, nan, newaxis = math.pi, math.e, math.inf, math.nan, None


def full_like(x: TensorLike, fill_value: float, dtype: DType | None = None) -> Tensor:
    """One number in a tensor's shape and, by default, its dtype."""
    x = tensor(x)
    return full(x.shape, fill_value, dtype or x.dtype)


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
    return cast(values if steps > 1 else full((steps,), float(start)), dtype)


def logspace(start: float, end: float, steps: int, base: float = 10.0, dtype: DType = f32) -> Tensor:
    """`base` to the powers that `linspace` gives.

    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(lambda: tg.logspace(0, 3, 4, base=2), device="numpy")()).tolist()
    [1.0, 2.0, 4.0, 8.0]
    """
    return cast(ew.pow(full((), float(base)), linspace(start, end, steps)), dtype)


def eye(n: int, m: int | None = None, dtype: DType = f32) -> Tensor:
    """`[n, m]` (by default square) with ones on the diagonal.

    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(lambda: tg.eye(2, 3), device="numpy")()).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    shape = (n, n if m is None else m)
    return cast(ew.equal(iota(shape, 0), iota(shape, 1)), dtype)


def meshgrid(*tensors: TensorLike, indexing: Literal["ij", "xy"] = "ij") -> list[Tensor]:
    """Every combination of the elements of vectors: a grid for each of them, with an axis for each.

    Args:
        tensors: vectors or scalars; or one list of them.
        indexing: "ij", where the first axis is the first vector's (PyTorch's default), or "xy", where the first
            two axes are swapped (NumPy's).

    >>> import tensorgrad as tg
    >>> a, b = tg.sync(tg.jit(lambda: tg.meshgrid(tg.arange(2), tg.arange(3)), device="numpy")())
    >>> a.tolist(), b.tolist()
    ([[0, 0, 0], [1, 1, 1]], [[0, 1, 2], [0, 1, 2]])
    """
    require("meshgrid", "indexing", indexing, indexing in ("ij", "xy"), "'ij' or 'xy'")
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    lines = [tensor(x) for x in given]
    for x in lines:
        if x.ndim > 1:
            fail(f"meshgrid: needs vectors, got {x.type}")
    shape: Shape = tuple(x.size for x in lines)
    rank = len(shape)
    grids = [
        broadcast_to(reshape(x, *(n if i == at else 1 for i, n in enumerate(shape))), shape)
        for at, x in enumerate(lines)
    ]
    return [swapaxes(x, 0, 1) for x in grids] if indexing == "xy" and rank > 1 else grids
