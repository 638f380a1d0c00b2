"""Activations, with PyTorch's names, defaults and gradients at their corners. Fusion gives each its single kernel.

PyTorch's `inplace` is accepted and has no effect: a traced value never changes, and buffers are shared anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.composite import softmax
from tensorgrad.ops.core import TensorLike, cast, in_f32, require, tensor
from tensorgrad.ops.custom import custom_grad, with_slope
from tensorgrad.ops.indexing import iota
from tensorgrad.ops.random import uniform
from tensorgrad.ops.reduce import argmax, require_float
from tensorgrad.ops.views import narrow, reshape
from tensorgrad.shape import check_axis, fail
from tensorgrad.tensor import Tensor

# Rectifiers -------------------------------------------------------------------------------


def relu(x: TensorLike, inplace: bool = False) -> Tensor:
    """The larger of x and 0; NaN stays NaN, the gradient at 0 is 0."""
    x = tensor(x)
    return custom_grad(ew.where(ew.less_equal(x, 0), 0, x), _relu_grad, x)


def _relu_grad(g: Tensor, out: Tensor, x: Tensor) -> tuple[Tensor]:
    """From the result, which its reader keeps anyway; so x need not be kept."""
    return (ew.where(ew.less_equal(out, 0), 0, g),)


def relu6(x: TensorLike, inplace: bool = False) -> Tensor:
    """x between 0 and 6; the gradient at both is 0."""
    return _between("relu6", x, 0.0, 6.0)


def hardtanh(x: TensorLike, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x between two bounds, as `clamp`, but the gradient at the bounds is 0.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([-3.0, 0.5, 2.0], np.float32)
    >>> tg.sync(tg.jit(tg.hardtanh, device="numpy")(x)).tolist()
    [-1.0, 0.5, 1.0]
    """
    require("hardtanh", "max_val", max_val, max_val >= min_val, f"min_val ({min_val}) or more")
    return _between("hardtanh", x, min_val, max_val)


def _between(name: str, x: TensorLike, low: float, high: float) -> Tensor:
    x = require_float(name, tensor(x))
    return ew.where(ew.less_equal(x, low), low, ew.where(ew.greater_equal(x, high), high, x))


def threshold(x: TensorLike, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where it is above the threshold, else `value`; NaN stays NaN.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([1.0, 2.0, 3.0], np.float32)
    >>> tg.sync(tg.jit(lambda x: tg.threshold(x, 2, -1), device="numpy")(x)).tolist()
    [-1.0, -1.0, 3.0]
    """
    x = tensor(x)
    return ew.where(ew.less_equal(x, threshold), value, x)


def leaky_relu(x: TensorLike, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where it is positive, else `negative_slope * x`.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([-2.0, 3.0], np.float32)
    >>> tg.sync(tg.jit(lambda x: tg.leaky_relu(x, 0.25), device="numpy")(x)).tolist()
    [-0.5, 3.0]
    """
    x = require_float("leaky_relu", tensor(x))
    return ew.where(ew.greater(x, 0), x, x * negative_slope)


def prelu(x: TensorLike, weight: TensorLike) -> Tensor:
    """x where it is positive, else `weight * x`.

    Args:
        x: `[N, C, ...]`, or of any shape with one weight.
        weight: one number, or `[C]`, one for each channel.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([[-2.0, -2.0]], np.float32)
    >>> tg.sync(tg.jit(lambda x: tg.prelu(x, [0.5, 0.25]), device="numpy")(x)).tolist()
    [[-1.0, -0.5]]
    """
    x, weight = require_float("prelu", tensor(x)), require_float("prelu", tensor(weight))
    channels = x.shape[1] if x.ndim > 1 else 1
    if weight.ndim > 1 or weight.size not in (1, channels):
        fail(f"prelu: {x.type} takes one weight, or one for each of {channels} channels, got {weight.type}")
    weight = reshape(weight, -1, *[1] * (x.ndim - 2)) if weight.size > 1 else reshape(weight)
    positive = ew.greater(x, 0)
    # the weight meets no inf that was not chosen
    return ew.where(positive, x, ew.where(positive, 0.0, x) * weight)


# Exponential ones -------------------------------------------------------------------------------


@in_f32
def elu(x: TensorLike, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where it is positive, else `alpha * (exp(x) - 1)`.

    Source: Clevert, Unterthiner and Hochreiter, Fast and accurate deep network learning by exponential linear
    units (2015).

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([-1.0, 3.0], np.float32)
    >>> tg.sync(tg.jit(tg.elu, device="numpy")(x)).round(4)
    array([-0.6321,  3.    ], dtype=float32)
    """
    return _elu("elu", x, alpha, 1.0, 1.0)


@in_f32
def celu(x: TensorLike, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where it is positive, else `alpha * (exp(x / alpha) - 1)`, whose slope at 0 is 1 for every alpha.

    Source: Barron, Continuously differentiable exponential linear units (2017).
    """
    require("celu", "alpha", alpha, alpha != 0, "not 0")
    return _elu("celu", x, alpha, 1.0, 1 / alpha)


@in_f32
def selu(x: TensorLike, inplace: bool = False) -> Tensor:
    """`scale * elu(x, alpha)` with the numbers that keep mean 0 and variance 1 through many layers.

    Source: Klambauer et al., Self-normalizing neural networks (2017).
    """
    scale = 1.0507009873554804934193349852946
    return _elu("selu", x, 1.6732632423543772848170429916717 * scale, scale, 1.0)


def _elu(name: str, x: TensorLike, low: float, slope: float, inner: float) -> Tensor:
    """`slope * x` above 0, else `low * (exp(inner * x) - 1)`."""
    x = require_float(name, tensor(x))
    below = ew.expm1(ew.where(ew.greater(x, 0), 0.0, x) * inner) * low
    return custom_grad(ew.where(ew.greater(x, 0), x * slope, below), _elu_grad, x, args=(low, slope, inner))


def _elu_grad(g: Tensor, out: Tensor, x: Tensor, low: float, slope: float, inner: float) -> tuple[Tensor]:
    return (g * ew.where(ew.greater(x, 0), slope, (out + low) * inner),)


@in_f32
def softplus(x: TensorLike, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta, a smooth `relu`; x itself where beta * x is above the threshold.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([0.0, 30.0], np.float32)
    >>> tg.sync(tg.jit(tg.softplus, device="numpy")(x)).round(4)
    array([ 0.6931, 30.    ], dtype=float32)
    """
    require("softplus", "beta", beta, beta != 0, "not 0")
    x = require_float("softplus", tensor(x))
    straight = ew.greater(x * beta, threshold)
    bent = ew.log1p(ew.exp(ew.where(straight, 0.0, x * beta))) * (1 / beta)
    return custom_grad(ew.where(straight, x, bent), _softplus_grad, x, args=(beta, threshold))


def _softplus_grad(g: Tensor, out: Tensor, x: Tensor, beta: float, threshold: float) -> tuple[Tensor]:
    return (ew.where(ew.greater(x * beta, threshold), g, g * ew.sigmoid(x * beta)),)


logsigmoid = with_slope(
    "logsigmoid",
    lambda x: ew.minimum(x, 0.0) - ew.log1p(ew.exp(-ew.abs(x))),
    lambda out, x: ew.sigmoid(-x),
    "The logarithm of `sigmoid`, without its underflow.",
)

# Smooth gates -------------------------------------------------------------------------------


@in_f32
def silu(x: TensorLike, inplace: bool = False) -> Tensor:
    """x * sigmoid(x)."""
    x = tensor(x)
    return x * ew.sigmoid(x)


@in_f32
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


def _grown(x: Tensor) -> Tensor:
    """(1 + exp(x)) ** 2 - 1, without overflow: from 20 on mish is x."""
    e = ew.exp(ew.where(ew.greater(x, 20.0), 20.0, x))
    return e * (e + 2)


def _mish_slope(out: Tensor, x: Tensor) -> Tensor:
    grown = _grown(x)
    turn = x * ew.sigmoid(x) * (4 * (grown + 1) / ew.square(grown + 2))
    return grown / (grown + 2) + ew.where(ew.greater(x, 20.0), 0.0, turn)


def _mish(x: Tensor) -> Tensor:
    grown = _grown(x)  # tanh(log(1 + e)) by the square of 1 + e
    return x * (grown / (grown + 2))


_mish_of = with_slope("mish", _mish, _mish_slope, "See `mish`.")


@in_f32
def mish(x: TensorLike, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x)).

    Source: Misra, Mish: a self regularized non-monotonic activation function (2019).
    """
    return _mish_of(x)


def hardsigmoid(x: TensorLike, inplace: bool = False) -> Tensor:
    """A straight line from 0 at -3 to 1 at 3, level beyond; the gradient at both is 0."""
    return _between("hardsigmoid", tensor(x) + 3.0, 0.0, 6.0) * (1 / 6)


@in_f32
def hardswish(x: TensorLike, inplace: bool = False) -> Tensor:
    """x times `hardsigmoid`'s value. Source: Howard et al., Searching for MobileNetV3 (2019)."""
    x = tensor(x)
    return x * hardsigmoid(x)


softsign = with_slope(
    "softsign",
    lambda x: x / (ew.abs(x) + 1),
    lambda out, x: 1 / ew.square(ew.abs(x) + 1),
    "x / (1 + |x|).",
)


@in_f32
def glu(x: TensorLike, dim: int = -1) -> Tensor:
    """A gated linear unit: the first half of an axis times the `sigmoid` of its second half.

    Raises:
        ShapeError: the axis has no halves.

    Source: Dauphin et al., Language modeling with gated convolutional networks (2016).

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> tg.sync(tg.jit(tg.glu, device="numpy")(np.array([4.0, 0.0], np.float32))).tolist()
    [2.0]
    """
    return _gated("glu", x, dim, ew.sigmoid)


@in_f32
def swiglu(x: TensorLike, dim: int = -1) -> Tensor:
    """The first half of an axis times the `silu` of its second half, as `glu`. Values come first, then their gates.

    Source: Shazeer, GLU variants improve Transformer (2020).
    """
    return _gated("swiglu", x, dim, silu)


@in_f32
def geglu(x: TensorLike, dim: int = -1, approximate: Literal["none", "tanh"] = "none") -> Tensor:
    """The first half of an axis times the `gelu` of its second half, as `glu`. Values come first, then their gates.

    Source: Shazeer, GLU variants improve Transformer (2020).
    """
    return _gated("geglu", x, dim, lambda gate: gelu(gate, approximate))


def _gated(name: str, x: TensorLike, dim: int, gate: Callable[[Tensor], Tensor]) -> Tensor:
    x = require_float(name, tensor(x))
    axis = check_axis(name, dim, x.ndim)
    if x.shape[axis] % 2:
        fail(f"{name}: axis {axis} of {x.type} has no two halves")
    half = x.shape[axis] // 2
    return narrow(x, axis, 0, half) * gate(narrow(x, axis, half, half))


# What is left beside a function ---------------------------------------------------------------

tanhshrink = with_slope("tanhshrink", lambda x: x - ew.tanh(x), lambda out, x: ew.square(ew.tanh(x)), "x - tanh(x).")


def softshrink(x: TensorLike, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by `lambd`, where it stops.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([-2.0, 0.25, 1.0], np.float32)
    >>> tg.sync(tg.jit(tg.softshrink, device="numpy")(x)).tolist()
    [-1.5, 0.0, 0.5]
    """
    require("softshrink", "lambd", lambd, lambd >= 0, "0 or more")
    x = require_float("softshrink", tensor(x))
    return ew.where(ew.greater(x, lambd), x - lambd, ew.where(ew.less(x, -lambd), x + lambd, x * 0.0))


def hardshrink(x: TensorLike, lambd: float = 0.5) -> Tensor:
    """x where it is further than `lambd` from 0, else 0.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([-2.0, 0.25, 1.0], np.float32)
    >>> tg.sync(tg.jit(tg.hardshrink, device="numpy")(x)).tolist()
    [-2.0, 0.0, 1.0]
    """
    x = require_float("hardshrink", tensor(x))
    return ew.where(ew.greater_equal(x, -lambd) & ew.less_equal(x, lambd), 0.0, x)


# Along an axis --------------------------------------------------------------------------------


@in_f32
def softmin(x: TensorLike, axis: int = -1, **kw: Any) -> Tensor:
    """The `softmax` of -x."""
    return softmax(ew.neg(x), axis, **kw)


@in_f32
def gumbel_softmax(logits: TensorLike, tau: float = 1.0, hard: bool = False, dim: int = -1) -> Tensor:
    """Draws from categories of which these are the log-probabilities, as weights that can be differentiated.

    Args:
        logits: log-probabilities, up to a constant.
        tau: the temperature, positive; the lower, the closer to one-hot.
        hard: give one-hot rows, whose gradient is that of the weights.
        dim: the axis of the categories.

    Source: Jang, Gu and Poole, Categorical reparameterization with Gumbel-softmax (2016).

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.zeros((5, 3), np.float32)
    >>> drawn = tg.sync(tg.jit(lambda x: tg.gumbel_softmax(x, hard=True), device="numpy")(x))
    >>> sorted(set(drawn.reshape(-1).tolist())), drawn.sum(1).tolist()
    ([0.0, 1.0], [1.0, 1.0, 1.0, 1.0, 1.0])
    """
    require("gumbel_softmax", "tau", tau, tau > 0, "positive")
    logits = require_float("gumbel_softmax", tensor(logits))
    axis = check_axis("gumbel_softmax", dim, logits.ndim)
    # in the middle of the uniform's steps, so that neither logarithm is infinite
    waits = -ew.log(uniform(logits.shape) + 2**-24)
    soft = softmax((logits - ew.log(waits)) * (1 / tau), axis)
    if not hard:
        return soft
    place = iota(soft.shape, axis)
    picked = cast(ew.equal(place, argmax(soft, axis, keepdims=True)), soft.dtype)
    return custom_grad(picked, _straight_through_grad, soft)


def _straight_through_grad(g: Tensor, out: Tensor, soft: Tensor) -> tuple[Tensor]:
    return (g,)
