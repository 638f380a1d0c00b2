"""Elements chosen by a condition. Shapes do not depend on data, so what is not chosen is replaced."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import TensorLike, broadcast_to, tensor
from tensorgrad.ops.getitem import getitem, refuse_mask
from tensorgrad.ops.indexing import iota
from tensorgrad.ops.views import reshape
from tensorgrad.shape import broadcast_trailing, fail, show_shape
from tensorgrad.tensor import Tensor


def masked_fill(x: TensorLike, mask: TensorLike, value: Any) -> Tensor:
    """`x` with `value` where the mask is True; the mask broadcasts to `x`."""
    x, mask = tensor(x), tensor(mask)
    if broadcast_trailing(mask.shape, x.shape) != x.shape:
        fail(f"masked_fill: the mask {show_shape(mask.shape)} does not broadcast to {show_shape(x.shape)}")
    if isinstance(value, Tensor) and value.shape:
        fail(f"masked_fill: the value is a number, got {value.type}; use tg.where(mask, value, x)")
    return ew.where(mask, value, x)


def masked_select(x: TensorLike, mask: TensorLike) -> Tensor:
    """The elements where a mask that is known while tracing, a NumPy array of bools, is True: `[count]`.

    Raises:
        DtypeError: the mask is a tensor, so that the count is not known.
    """
    if isinstance(mask, Tensor):
        refuse_mask("masked_select")
    x, known = tensor(x), np.asarray(mask, bool)
    shape = broadcast_trailing(x.shape, known.shape)
    if shape is None:
        fail(f"masked_select: {show_shape(x.shape)} and the mask {show_shape(known.shape)} do not broadcast")
    return getitem(reshape(broadcast_to(x, shape), -1), np.broadcast_to(known, shape).reshape(-1))


def tril(x: TensorLike, diagonal: int = 0) -> Tensor:
    """The last two axes with zeros above the diagonal `column = row + diagonal`."""
    x = tensor(x)
    return ew.where(_columns_less_rows("tril", x) <= diagonal, x, 0)


def triu(x: TensorLike, diagonal: int = 0) -> Tensor:
    """The last two axes with zeros below the diagonal `column = row + diagonal`."""
    x = tensor(x)
    return ew.where(_columns_less_rows("triu", x) >= diagonal, x, 0)


def _columns_less_rows(op: str, x: Tensor) -> Tensor:
    if x.ndim < 2:
        fail(f"{op}: needs a tensor with at least two axes, got {x.type}")
    square = x.shape[-2:]
    return iota(square, 1) - iota(square, 0)
