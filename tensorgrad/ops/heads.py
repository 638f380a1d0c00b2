"""What a transformer does around its attention: heads split and merged, and positions as rotations."""

from __future__ import annotations

import numpy as np

from tensorgrad.callsite import call_site
from tensorgrad.dtypes import f32
from tensorgrad.errors import DtypeError
from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.arrange import roll
from tensorgrad.ops.core import TensorLike, cast, tensor
from tensorgrad.ops.indexing import iota
from tensorgrad.ops.joining import concat
from tensorgrad.ops.reduce import require_float
from tensorgrad.ops.views import expand_dims, narrow, reshape, swapaxes
from tensorgrad.shape import fail
from tensorgrad.tensor import Tensor


def split_heads(x: TensorLike, heads: int) -> Tensor:
    """Features cut into heads: `[..., T, heads * D]` as `[..., heads, T, D]`; a view.

    >>> import tensorgrad as tg
    >>> def by_head():
    ...     return tg.split_heads(tg.tensor_input("x", (2, 16, 64)), 8)
    >>> tg.trace(by_head).type(tg.trace(by_head).outputs[0])
    f32[2, 8, 16, 8]
    """
    x = tensor(x)
    if x.ndim < 2 or heads < 1 or x.shape[-1] % heads:
        fail(f"split_heads: {heads} heads do not divide the last axis of {x.type}")
    return swapaxes(reshape(x, *x.shape[:-1], heads, x.shape[-1] // heads), -2, -3)


def merge_heads(x: TensorLike) -> Tensor:
    """The reverse of `split_heads`: `[..., heads, T, D]` as `[..., T, heads * D]`; a view."""
    x = tensor(x)
    if x.ndim < 3:
        fail(f"merge_heads: needs at least three axes, heads, positions and features, got {x.type}")
    *lead, heads, length, size = x.shape
    return reshape(swapaxes(x, -2, -3), *lead, length, heads * size)


def rope(x: TensorLike, offset: TensorLike = 0, base: float = 10000.0, dim: int | None = None) -> Tensor:
    """Rotary position embedding: pairs of features turned by an angle that grows with the position.

    Feature i and feature i + dim / 2 are a pair, as in Llama and GPT-NeoX (not neighbours, as in the paper), and
    are turned by `position * base ** (-2 * i / dim)`.

    Args:
        x: queries or keys `[..., T, D]`.
        offset: the position of the first row; a number, or an i32 tensor without axes.
        dim: how many features are turned, from the first on; the rest stay. All by default.

    Known angles are computed in float64 and kept as a table of T rows, those of a tensor in f32.

    Source: Su et al., RoFormer: Enhanced transformer with rotary position embedding (2021).
    """
    x = require_float("rope", tensor(x))
    size = x.shape[-1] if dim is None and x.ndim else dim or 0
    if x.ndim < 2 or not 0 < size <= x.shape[-1] or size % 2:
        fail(f"rope: turns an even number of features of [..., T, D], got {size} of {x.type}")
    if size < x.shape[-1]:
        turned, rest = narrow(x, -1, 0, size), narrow(x, -1, size, x.shape[-1] - size)
        return concat([rope(turned, offset, base), rest], -1)
    length, half = x.shape[-2], size // 2
    rates = base ** (-np.arange(half) / half)
    # the second of a pair adds what the first subtracts
    rates, signs = np.concatenate([rates, rates]), np.repeat([-1.0, 1.0], half)
    if isinstance(offset, Tensor):
        if offset.dtype.is_float or offset.shape:
            raise DtypeError(f"rope: the offset is a whole number, got {offset.type}", call_site())
        angles = expand_dims(cast(iota((length,), 0) + offset, f32), 1) * rates
        cos, sin = ew.cos(angles), ew.sin(angles) * signs
    else:
        known = (np.arange(length) + offset)[:, None] * rates
        cos, sin = (tensor(table.astype(np.float32)) for table in (np.cos(known), np.sin(known) * signs))
    return x * cast(cos, x.dtype) + roll(x, half, -1) * cast(sin, x.dtype)
