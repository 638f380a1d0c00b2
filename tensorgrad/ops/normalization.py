"""Normalization by root mean square, in groups of channels, and to length 1. Fusion gives each its single kernel."""

from __future__ import annotations

import math

import numpy as np

from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.composite import layer_norm
from tensorgrad.ops.core import TensorLike, in_f32, require, tensor
from tensorgrad.ops.custom import custom_grad
from tensorgrad.ops.padding import pad
from tensorgrad.ops.reduce import mean, require_float
from tensorgrad.ops.statistics import norm
from tensorgrad.ops.views import narrow, reshape
from tensorgrad.shape import fail, one_or_more
from tensorgrad.tensor import Tensor


@in_f32
def rms_norm(
    x: TensorLike,
    normalized_shape: int | tuple[int, ...],
    weight: TensorLike | None = None,
    eps: float | None = None,
) -> Tensor:
    """Rows over their root mean square over the last axes, then `* weight`.

    Args:
        normalized_shape: the sizes of those axes.
        weight: of that shape.
        eps: added to the mean square; by default the dtype's own, as PyTorch's.

    Source: Zhang and Sennrich, Root mean square layer normalization (2019).

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([[1.0, 7.0]], np.float32)
    >>> tg.sync(tg.jit(lambda x: tg.rms_norm(x, 2), device="numpy")(x)).round(4)
    array([[0.2, 1.4]], dtype=float32)
    """
    x = require_float("rms_norm", tensor(x))
    sizes = one_or_more(normalized_shape)
    if not sizes or x.shape[-len(sizes) :] != sizes:
        fail(f"rms_norm: the last axes of {x.type} are not the normalized shape {list(sizes)}")
    axes = tuple(range(x.ndim - len(sizes), x.ndim))
    eps = float(np.finfo(x.dtype.numpy).eps) if eps is None else eps
    out = custom_grad(x * _over_rms(x, axes, eps), _rms_grad, x, args=(axes, eps))
    return out if weight is None else out * weight


def _over_rms(x: Tensor, axes: tuple[int, ...], eps: float) -> Tensor:
    return ew.rsqrt(mean(ew.square(x), axes, True) + eps)


def _rms_grad(g: Tensor, out: Tensor, x: Tensor, axes: tuple[int, ...], eps: float) -> tuple[Tensor]:
    return ((g - out * mean(g * out, axes, True)) * _over_rms(x, axes, eps),)


@in_f32
def group_norm(
    x: TensorLike,
    num_groups: int,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Groups of channels shifted and scaled to mean 0 and variance 1, each example by itself, then `* weight + bias`.

    Args:
        x: `[N, C, ...]`.
        num_groups: a divisor of C.
        weight, bias: `[C]`.
        eps: added to the variance.

    Source: Wu and He, Group normalization (2018).

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([[1.0, 3.0, 5.0, 5.0]], np.float32)
    >>> tg.sync(tg.jit(lambda x: tg.group_norm(x, 2), device="numpy")(x)).round(3) + 0
    array([[-1.,  1.,  0.,  0.]], dtype=float32)
    """
    return in_groups("group_norm", x, num_groups, weight, bias, eps)


def in_groups(
    name: str, x: TensorLike, groups: int, weight: TensorLike | None, bias: TensorLike | None, eps: float
) -> Tensor:
    x = require_float(name, tensor(x))
    if x.ndim < 2:
        fail(f"{name}: needs an input [N, C, ...], got {x.type}")
    channels = x.shape[1]
    require(name, "num_groups", groups, groups > 0 and channels % groups == 0, f"a divisor of the {channels} channels")
    for label, value in (("weight", weight), ("bias", bias)):
        if value is not None and tensor(value).shape != (channels,):
            fail(f"{name}: {label} {tensor(value).type} must have one number for each of {channels} channels")
    rows = reshape(x, x.shape[0], groups, math.prod(x.shape[1:]) // groups)
    out = reshape(layer_norm(rows, rows.shape[-1], eps=eps), *x.shape)
    affine = (channels, *[1] * (x.ndim - 2))
    out = out if weight is None else out * reshape(weight, *affine)
    return out if bias is None else out + reshape(bias, *affine)


@in_f32
def normalize(x: TensorLike, p: float = 2.0, dim: int | tuple[int, ...] = 1, eps: float = 1e-12) -> Tensor:
    """Vectors over their p-norm, or over `eps` where that is larger.

    Args:
        p: as `norm`.
        dim: the vectors' axis, or axes.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([[3.0, 4.0], [0.0, 0.0]], np.float32)
    >>> tg.sync(tg.jit(tg.normalize, device="numpy")(x)).round(4)
    array([[0.6, 0.8],
           [0. , 0. ]], dtype=float32)
    """
    x = require_float("normalize", tensor(x))
    return x / ew.clamp(norm(x, p, dim, True), eps)


@in_f32
def pairwise_distance(
    x1: TensorLike, x2: TensorLike, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm over the last axis of `x1 - x2 + eps`.

    Args:
        x1, x2: broadcast against each other.
        p: as `norm`.
        keepdim: leave the last axis with size 1.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([[3.0, 4.0], [0.0, 1.0]], np.float32)
    >>> tg.sync(tg.jit(lambda x: tg.pairwise_distance(x, [0.0, 0.0]), device="numpy")(x)).round(4)
    array([5., 1.], dtype=float32)
    """
    x1, x2 = (require_float("pairwise_distance", tensor(x)) for x in (x1, x2))
    return norm(x1 - x2 + eps, p, -1, keepdim)


@in_f32
def local_response_norm(x: TensorLike, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Each channel over `(k + alpha * mean square of `size` channels around it) ** beta`; beyond the ends are zeros.

    Args:
        x: `[N, C, ...]` of three axes or more.

    Source: Krizhevsky, Sutskever and Hinton, ImageNet classification with deep convolutional networks (2012).
    """
    x = require_float("local_response_norm", tensor(x))
    require("local_response_norm", "size", size, size > 0, "positive")
    if x.ndim < 3:
        fail(f"local_response_norm: needs an input [N, C, ...] of three axes or more, got {x.type}")
    around = [(0, 0), (size // 2, (size - 1) // 2), *[(0, 0)] * (x.ndim - 2)]
    square = pad(ew.square(x), around)
    total = narrow(square, 1, 0, x.shape[1])
    for shift in range(1, size):
        total = total + narrow(square, 1, shift, x.shape[1])
    return x / ew.pow(total * (alpha / size) + k, beta)
