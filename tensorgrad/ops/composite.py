"""Functions made of primitives: activations, softmax, layer norm. Fusion gives each its single kernel."""

from __future__ import annotations

import math
from typing import Any, Literal

from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import TensorLike, tensor
from tensorgrad.ops.custom import custom_grad
from tensorgrad.ops.indexing import iota
from tensorgrad.ops.reduce import max as max_
from tensorgrad.ops.reduce import mean, require_float
from tensorgrad.ops.reduce import sum as sum_
from tensorgrad.ops.views import reshape, swapaxes
from tensorgrad.shape import check_axis, fail, infer_where_causal
from tensorgrad.tensor import Tensor


def relu(x: TensorLike) -> Tensor:
    """The larger of x and 0; NaN stays NaN, the gradient at 0 is 0."""
    x = tensor(x)
    return custom_grad(ew.where(ew.less_equal(x, 0), 0, x), _relu_grad, x)


def _relu_grad(g: Tensor, out: Tensor, x: Tensor) -> tuple[Tensor]:
    """From the result, which its reader keeps anyway; so x need not be kept."""
    return (ew.where(ew.less_equal(out, 0), 0, g),)


def silu(x: TensorLike) -> Tensor:
    """x * sigmoid(x)."""
    x = tensor(x)
    return x * ew.sigmoid(x)


def gelu(x: TensorLike, approximate: Literal["none", "tanh"] = "none") -> Tensor:
    """x times the normal distribution's probability of less than x, exactly or in its tanh form.

    Source: Hendrycks and Gimpel, Gaussian error linear units (2016).
    """
    x = tensor(x)
    if approximate == "none":
        return x * (ew.erf(x * math.sqrt(0.5)) * 0.5 + 0.5)
    if approximate != "tanh":
        fail(f"gelu: approximate is 'none' or 'tanh', got {approximate!r}")
    return custom_grad(x * _gelu_gate(x), _gelu_tanh_grad, x)


_GELU_SLOPE = 2 * math.sqrt(2 / math.pi)
_GELU_CUBE = 0.044715


def _gelu_gate(x: Tensor) -> Tensor:
    """(1 + tanh(u)) / 2 as the logistic function of 2u, which is the same and takes half as long."""
    return ew.sigmoid((x * x * (_GELU_SLOPE * _GELU_CUBE) + _GELU_SLOPE) * x)


def _gelu_tanh_grad(g: Tensor, out: Tensor, x: Tensor) -> tuple[Tensor]:
    gate = _gelu_gate(x)
    # where |x| is above 10 the gate's slope is 0, and x * x must not overflow beside it
    square = ew.where(ew.less(x * x, 100.0), x * x, 100.0)
    slope = gate * (1.0 - gate) * x * (square * (3 * _GELU_SLOPE * _GELU_CUBE) + _GELU_SLOPE)
    return (g * (gate + slope),)


def finite_max(x: Tensor, axis: int) -> Tensor:
    """The row's maximum as a shift that changes no result; 0 for a row of -inf."""
    top = ew.stop_gradient(max_(x, axis, keepdims=True))
    return ew.where(ew.equal(top, -math.inf), 0.0, top)


def logsumexp(x: TensorLike, axis: int = -1, keepdims: bool = False, **kw: Any) -> Tensor:
    """log(sum(exp(x))) along an axis, without overflow; -inf for a row of -inf."""
    x = require_float("logsumexp", tensor(x))
    axis = check_axis("logsumexp", kw.pop("dim", axis), x.ndim)
    top = finite_max(x, axis)
    out = ew.log(sum_(ew.exp(x - top), axis, keepdims=True)) + top
    kept = [n for i, n in enumerate(out.shape) if i != axis]
    return out if kw.pop("keepdim", keepdims) else reshape(out, *kept)


def softmax(x: TensorLike, axis: int = -1, **kw: Any) -> Tensor:
    """exp(x) scaled to sum to 1 along an axis. A row of -inf gives NaN, as in PyTorch."""
    x = require_float("softmax", tensor(x))
    axis = check_axis("softmax", kw.pop("dim", axis), x.ndim)
    weights = ew.exp(x - finite_max(x, axis))
    return custom_grad(weights / sum_(weights, axis, keepdims=True), _softmax_grad, x, args=(axis,))


def _softmax_grad(g: Tensor, out: Tensor, x: Tensor, axis: int) -> tuple[Tensor]:
    return (out * (g - sum_(g * out, axis, keepdims=True)),)


def log_softmax(x: TensorLike, axis: int = -1, **kw: Any) -> Tensor:
    """The logarithm of `softmax`, without its underflow."""
    x = require_float("log_softmax", tensor(x))
    axis = check_axis("log_softmax", kw.pop("dim", axis), x.ndim)
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


def softmax_causal(x: TensorLike) -> Tensor:
    """`softmax` over the last axis of `[..., T, T]`, of the keys up to the query."""
    return softmax(where_causal(x), -1)


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
    sizes = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
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
    """`x @ weight.T + bias` with weight `[out, in]`, as PyTorch's."""
    out = tensor(x) @ swapaxes(weight, 0, 1)
    return out if bias is None else out + bias
