"""Random numbers: Threefry-2x32, keyed by the seed and the number of the call.

The bits of an element depend on (seed, call, ordinal of the operation in the trace,
element), so every device draws the same numbers, and a run can be repeated or resumed.
Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorgrad.dtypes import DType, Shape, f32, i32, u32
from tensorgrad.errors import ArgumentError
from tensorgrad.graph import TensorType
from tensorgrad.lower.expr import Expr, call, const, from_index
from tensorgrad.lower.index import Indices, constant, ravel
from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import TensorLike, as_shape, cast, require, tensor
from tensorgrad.ops.reduce import require_float
from tensorgrad.ops.views import narrow, reshape
from tensorgrad.primitive import primitive
from tensorgrad.shape import fail, shape_size
from tensorgrad.tensor import Tensor
from tensorgrad.trace import bind, current_graph, current_trace, step_row, step_slot

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def threefry2x32(xp: Any, key: Any, counter: Any, ordinal: int) -> Any:
    """The first word of the 20-round block cipher for each counter, u32."""
    keys = [key[0], key[1], key[0] ^ key[1] ^ xp.asarray(PARITY, dtype="uint32")]
    x, y = counter + keys[0], xp.asarray(ordinal, dtype="uint32") + keys[1]
    for group in range(5):
        for r in ROTATIONS[group % 2]:
            x = x + y
            y = xp.left_shift(y, r) | xp.right_shift(y, 32 - r)
            y = x ^ y
        x = x + keys[(group + 1) % 3]
        y = y + keys[(group + 2) % 3] + xp.asarray(group + 1, dtype="uint32")
    return x


def _bits_eval(xp: Any, key: Any, shape: Shape, ordinal: int) -> Any:
    counter = xp.arange(shape_size(shape), dtype=np.uint32)
    return xp.reshape(threefry2x32(xp, key, counter, ordinal), shape)


def _bits_lower(idx: Indices, key: Any, shape: Shape, ordinal: int) -> Expr:
    from tensorgrad.lower.functions import FUNCTIONS

    counter = from_index(ravel(idx, shape))
    return call(FUNCTIONS["threefry2x32"], key((constant(0),)), key((constant(1),)), counter, const(ordinal, u32))


random_bits_p = primitive(
    "random_bits",
    shape=lambda key, shape, ordinal: TensorType(shape, u32),
    eval=_bits_eval,
    grad=lambda g, out, key, shape, ordinal: (None,),
    lower=_bits_lower,
)


def step_scalar(name: str) -> Tensor:
    """A number that the host sends anew with every step, as an f32 scalar: a learning rate, a loss scale."""
    return reshape(ew.bitcast(narrow(step_row(), 0, step_slot(name), 1), f32))


def random_bits(shape: Shape | int) -> Tensor:
    """Random u32 words, other ones at every step and for every operation."""
    ordinal = sum(node.op == "random_bits" for node in current_graph().nodes)
    return bind(random_bits_p, narrow(step_row(), 0, 0, 2), shape=as_shape((shape,)), ordinal=ordinal)


def uniform(shape: Shape | int, low: float = 0.0, high: float = 1.0) -> Tensor:
    """f32 numbers of `low <= x < high`, each of 2**23 equally likely steps."""
    _check_order("uniform", shape, low, high)
    mantissa = ew.right_shift(random_bits(shape), 9) | 0x3F800000
    unit = ew.bitcast(mantissa, f32) - 1.0
    return unit if (low, high) == (0.0, 1.0) else unit * (high - low) + low


def _check_order(name: str, shape: Any, a: Any, b: Any) -> None:
    """PyTorch's and NumPy's functions have the shape last."""
    if isinstance(b, tuple | list):
        raise ArgumentError(f"{name}: the shape comes first, tg.{name}({b}, {shape}, {a})")


def normal(shape: Shape | int, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """f32 numbers of the normal distribution, by Box and Muller's transform."""
    _check_order("normal", shape, mean, std)
    radius = ew.sqrt(ew.log(1.0 - uniform(shape)) * -2.0)
    standard = radius * ew.cos(uniform(shape) * (2 * math.pi))
    return standard if (mean, std) == (0.0, 1.0) else standard * std + mean


def rand(*shape: Any) -> Tensor:
    """f32 numbers of `0 <= x < 1`; the shape is one sequence or several sizes. See `uniform`."""
    return uniform(as_shape(shape))


def randn(*shape: Any) -> Tensor:
    """f32 numbers of mean 0 and variance 1; the shape is one sequence or several sizes. See `normal`."""
    return normal(as_shape(shape))


def rand_like(x: TensorLike) -> Tensor:
    """`rand` of a tensor's shape and dtype."""
    x = require_float("rand_like", tensor(x))
    return cast(uniform(x.shape), x.dtype)


def randn_like(x: TensorLike) -> Tensor:
    """`randn` of a tensor's shape and dtype."""
    x = require_float("randn_like", tensor(x))
    return cast(normal(x.shape), x.dtype)


def randint(low: int, high: int, shape: Shape | int, dtype: DType = i32) -> Tensor:
    """Whole numbers of `low <= x < high`, each equally likely to one part in 2**32 / (high - low)."""
    if high <= low:
        fail(f"randint: there is no whole number from {low} up to {high}")
    return cast(cast(ew.remainder(random_bits(shape), tensor(np.uint32(high - low))), i32) + low, dtype)


def bernoulli(p: TensorLike, shape: Shape | int | None = None) -> Tensor:
    """True with probability `p` (a number, or a tensor of them), as bools."""
    if isinstance(p, Tensor):
        shape = p.shape if shape is None else shape
    return ew.less(uniform(() if shape is None else shape), p)


def dropout(x: TensorLike, p: float = 0.5, training: bool | None = None, inplace: bool = False) -> Tensor:
    """Zeroes elements with probability `p` and scales the others by `1 / (1 - p)`.

    Args:
        training: False returns `x`; None asks the running trace (True in `tg.compile`).
        inplace: has no effect.
    """
    x = tensor(x)
    return _dropped("dropout", x, p, training, x.shape)


def dropout1d(x: TensorLike, p: float = 0.5, training: bool | None = None, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of `[N, C, L]` or `[C, L]`."""
    x = tensor(x)
    require("dropout1d", "the number of axes", x.ndim, x.ndim in (2, 3), "2 or 3")
    return _dropped("dropout1d", x, p, training, (*x.shape[:-1], 1))


def dropout2d(x: TensorLike, p: float = 0.5, training: bool | None = None, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of images `[N, C, H, W]` (or, as PyTorch has it, of `[N, C, L]`).

    Source: Tompson et al., Efficient object localization using convolutional networks (2015).
    """
    x = tensor(x)
    require("dropout2d", "the number of axes", x.ndim, x.ndim in (3, 4), "3 or 4")
    return _dropped("dropout2d", x, p, training, (*x.shape[:2], *[1] * (x.ndim - 2)))


def alpha_dropout(x: TensorLike, p: float = 0.5, training: bool | None = None, inplace: bool = False) -> Tensor:
    """Sets elements to SELU's limit with probability `p`, then shifts and scales all back to mean 0 and variance 1.

    Source: Klambauer et al., Self-normalizing neural networks (2017).
    """
    x = tensor(x)
    if not _drops("alpha_dropout", p, training):
        return x
    if p == 1:
        return x * 0.0
    limit = -1.0507009873554805 * 1.6732632423543772
    scale = 1 / math.sqrt((1 - p) * (1 + p * limit * limit))
    return ew.where(bernoulli(1 - p, x.shape), x, limit) * scale - limit * scale * p


def _drops(name: str, p: float, training: bool | None) -> bool:
    if not 0 <= p <= 1:
        fail(f"{name}: the probability must be from 0 to 1, got {p}")
    return (current_trace().training if training is None else training) and p > 0


def _dropped(name: str, x: Tensor, p: float, training: bool | None, shape: Shape) -> Tensor:
    """`x` with what a mask of a shape that broadcasts to it drops."""
    if not _drops(name, p, training):
        return x
    if p == 1:
        return x * 0.0
    return ew.where(bernoulli(1 - p, shape), x * (1 / (1 - p)), 0.0)
