"""Functions made of primitives: softmax, layer norm, linear. Fusion gives each its single kernel."""

from __future__ import annotations

import math
from typing import Any

from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import Axis, TensorLike, either, in_f32, one_axis, tensor
from tensorgrad.ops.custom import custom_grad
from tensorgrad.ops.indexing import iota
from tensorgrad.ops.reduce import max as max_
from tensorgrad.ops.reduce import mean, over, require_float
from tensorgrad.ops.reduce import sum as sum_
from tensorgrad.ops.views import reshape, swapaxes
from tensorgrad.shape import check_axis, fail, infer_where_causal, one_or_more, shape_size
from tensorgrad.tensor import Tensor


def finite_max(x: Tensor, axis: int) -> Tensor:
    """The row's maximum as a shift that changes no result; 0 for a row of -inf, and for an empty one."""
    if not x.shape[axis]:
        return sum_(x, axis, keepdims=True)
    top = ew.stop_gradient(max_(x, axis, keepdims=True))
    return ew.where(ew.equal(top, -math.inf), 0.0, top)


@in_f32
def logsumexp(x: TensorLike, axis: Axis = -1, keepdims: bool = False, **kw: Any) -> Tensor:
    """log(sum(exp(x))) over axes, without overflow; -inf for a row of -inf, inf for one with an inf."""
    x = require_float("logsumexp", tensor(x))
    axes, keepdims = over("logsumexp", x, either("axis", axis, "dim", kw, -1), keepdims, kw)
    if shape_size([x.shape[a] for a in axes]) == 0:
        return ew.log(sum_(x, axes, keepdims))
    top = ew.stop_gradient(max_(x, axes, keepdims=True))
    top = ew.where(ew.isfinite(top), top, 0.0)
    out = ew.log(sum_(ew.exp(x - top), axes, keepdims=True)) + top
    return out if keepdims else reshape(out, *(n for i, n in enumerate(out.shape) if i not in axes))


@in_f32
def softmax(x: TensorLike, axis: int = -1, **kw: Any) -> Tensor:
    """exp(x) scaled to sum to 1 along an axis. A row of -inf gives NaN, as in PyTorch."""
    x = require_float("softmax", tensor(x, kw.pop("dtype", None)))
    axis = check_axis("softmax", one_axis("softmax", axis, kw, -1), x.ndim)
    weights = ew.exp(x - finite_max(x, axis))
    return custom_grad(weights / sum_(weights, axis, keepdims=True), _softmax_grad, x, args=(axis,))


def _softmax_grad(g: Tensor, out: Tensor, x: Tensor, axis: int) -> tuple[Tensor]:
    return (out * (g - sum_(g * out, axis, keepdims=True)),)


@in_f32
def log_softmax(x: TensorLike, axis: int = -1, **kw: Any) -> Tensor:
    """The logarithm of `softmax`, without its underflow."""
    x = require_float("log_softmax", tensor(x, kw.pop("dtype", None)))
    axis = check_axis("log_softmax", one_axis("log_softmax", axis, kw, -1), x.ndim)
    # shifting first: x - logsumexp(x) would lose the logarithm beside a large x
    shifted = x - finite_max(x, axis)
    out = shifted - ew.log(sum_(ew.exp(shifted), axis, keepdims=True))
    return custom_grad(out, _log_softmax_grad, x, args=(axis,))


def _log_softmax_grad(g: Tensor, out: Tensor, x: Tensor, axis: int) -> tuple[Tensor]:
    return (g - ew.exp(out) * sum_(g, axis, keepdims=True),)


def where_causal(x: TensorLike, other: TensorLike = -math.inf) -> Tensor:
    """Attention scores `[..., T, T]` with `other` where the key (last axis) comes after the query."""
    x = tensor(x)
    shape = infer_where_causal("where_causal", x.shape)
    square = shape[-2:]
    visible = ew.less_equal(iota(square, 1), iota(square, 0))
    return ew.where(visible, x, other)


@in_f32
def softmax_causal(x: TensorLike) -> Tensor:
    """`softmax` over the last axis of `[..., T, T]`, of the keys up to the query."""
    return softmax(where_causal(x), -1)


@in_f32
def layer_norm(
    x: TensorLike,
    normalized_shape: int | tuple[int, ...],
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Rows shifted and scaled to mean 0 and variance 1 over the last axes, then `* weight + bias`.

    Args:
        normalized_shape: the sizes of those axes.
        eps: added to the variance.

    Source: Ba, Kiros and Hinton, Layer normalization (2016).
    """
    x = require_float("layer_norm", tensor(x))
    sizes = one_or_more(normalized_shape)
    if not sizes or x.shape[-len(sizes) :] != sizes:
        fail(f"layer_norm: the last axes of {x.type} are not the normalized shape {list(sizes)}")
    axes = tuple(range(x.ndim - len(sizes), x.ndim))
    out = custom_grad(_standardized(x, axes, eps)[0], _standardized_grad, x, args=(axes, eps))
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


def _standardized(x: Tensor, axes: tuple[int, ...], eps: float) -> tuple[Tensor, Tensor]:
    """x with mean 0 and variance 1 over the axes, and one over its standard deviation."""
    centered = x - mean(x, axes, True)
    scale = ew.rsqrt(mean(ew.square(centered), axes, True) + eps)
    return centered * scale, scale


def _standardized_grad(g: Tensor, out: Tensor, x: Tensor, axes: tuple[int, ...], eps: float) -> tuple[Tensor]:
    scale = _standardized(x, axes, eps)[1]
    return ((g - mean(g, axes, True) - out * mean(g * out, axes, True)) * scale,)


def linear(x: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """`x @ weight.T + bias` with weight `[out, in]`, as PyTorch's.

    Raises:
        DtypeError: integers by a weight of floats.
    """
    x, weight = tensor(x), tensor(weight)
    if weight.dtype.is_float:
        x = require_float("linear", x)
    out = x @ swapaxes(weight, 0, 1)
    return out if bias is None else out + bias
