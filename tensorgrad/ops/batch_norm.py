"""Normalizations that may keep statistics over batches: batch and instance normalization."""

from __future__ import annotations

import math
from typing import Any

from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.arena import place
from tensorgrad.ops.core import TensorLike, in_f32, tensor
from tensorgrad.ops.custom import custom_grad
from tensorgrad.ops.normalization import in_groups
from tensorgrad.ops.reduce import mean, require_float
from tensorgrad.ops.reduce import sum as sum_
from tensorgrad.ops.views import reshape
from tensorgrad.shape import fail
from tensorgrad.tensor import Tensor
from tensorgrad.trace import update_state, updated_state


@in_f32
def batch_norm(
    x: TensorLike,
    running_mean: TensorLike | None,
    running_var: TensorLike | None,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    training: bool = False,
    momentum: TensorLike = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel shifted and scaled to mean 0 and variance 1, then `* weight + bias`, as PyTorch's.

    Args:
        x: `[N, C, ...]`.
        running_mean, running_var: `[C]`, what evaluation normalizes with. In training they are states (buffers
            of a module, say), which move towards the batch's mean and unbiased variance.
        weight, bias: `[C]`.
        training: normalize with the mean and the (biased) variance of the batch; an empty one moves no statistics.
        momentum: how far the running statistics move, from 0 to 1.
        eps: added to the variance.

    Raises:
        ShapeError: in training, with one element a channel; in evaluation, without running statistics.

    Source: Ioffe and Szegedy, Batch normalization (2015).
    """
    x = require_float("batch_norm", tensor(x))
    if x.ndim < 2:
        fail(f"batch_norm: needs an input [N, C, ...], got {x.type}")
    channels = x.shape[1:2]
    given = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    for name, value in given.items():
        if value is not None and tensor(value).shape != channels:
            fail(f"batch_norm: {name} {tensor(value).type} must have one number for each of {x.shape[1]} channels")
    if not training:
        if running_mean is None or running_var is None:
            fail("batch_norm: evaluation needs running_mean and running_var")
        scale = ew.rsqrt(tensor(running_var) + eps)
        out = (x - _across(running_mean, x)) * _across(scale if weight is None else scale * weight, x)
        return out if bias is None else out + _across(bias, x)
    axes = (0, *range(2, x.ndim))
    count = math.prod(x.shape[a] for a in axes)
    if count == 1:
        fail(f"batch_norm: one element a channel has no variance to train with, got {x.type}")
    if not count:  # its mean would be NaN
        running_mean = running_var = None
    middle = reshape(mean(x, axes), *channels)
    middle = middle if running_mean is None else _tracked(tensor(running_mean), middle, momentum)
    centered = x - _across(middle, x)
    spread = reshape(mean(ew.square(centered), axes), *channels)
    if running_var is not None:
        unbiased = count / max(count - 1, 1)
        spread = _tracked(tensor(running_var), spread, momentum, unbiased)
    affine = [tensor(value) for value in (weight, bias) if value is not None]
    out = centered * _across(ew.rsqrt(spread + eps), x)
    out = out if weight is None else out * _across(weight, x)
    out = out if bias is None else out + _across(bias, x)
    args = (axes, eps, weight is not None, bias is not None)
    return custom_grad(out, _batch_norm_grad, x, middle, spread, *affine, args=args)


@in_f32
def instance_norm(
    x: TensorLike,
    running_mean: TensorLike | None = None,
    running_var: TensorLike | None = None,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel of each example shifted and scaled to mean 0 and variance 1, then `* weight + bias`, as PyTorch's.

    Args:
        x: `[N, C, ...]`.
        running_mean, running_var: `[C]`. With `use_input_stats` they are states, which move towards the averages over
            the batch of the examples' means and unbiased variances; without, all examples are normalized with them.
        weight, bias: `[C]`.
        momentum: how far the running statistics move, from 0 to 1.
        eps: added to the variance.

    Raises:
        ShapeError: with one element a channel, which has no variance; without statistics of any kind.

    Source: Ulyanov, Vedaldi and Lempitsky, Instance normalization (2016).
    """
    x = require_float("instance_norm", tensor(x))
    if x.ndim < 3:
        fail(f"instance_norm: needs an input [N, C, ...] of three axes or more, got {x.type}")
    if not use_input_stats:
        if running_mean is None or running_var is None:
            fail("instance_norm: without use_input_stats it needs running_mean and running_var")
        return batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
    places = tuple(range(2, x.ndim))
    count = math.prod(x.shape[a] for a in places)
    if count == 1:
        fail(f"instance_norm: one element a channel has no variance, got {x.type}")
    if x.size:  # else a mean would be NaN
        middle = mean(x, places, keepdims=True)
        if running_mean is not None:
            _tracked(tensor(running_mean), reshape(mean(middle, 0), -1), momentum)
        if running_var is not None:
            spread = mean(mean(ew.square(x - middle), places), 0)
            _tracked(tensor(running_var), spread, momentum, count / (count - 1))
    return in_groups("instance_norm", x, x.shape[1], weight, bias, eps)


def _tracked(state: Tensor, batch: Tensor, momentum: TensorLike, scale: float = 1.0) -> Tensor:
    """Moves a running statistic towards `scale` times the batch's; returns the batch's, in a buffer of its own.

    The backward pass reads it there, and so does the update of all running statistics together.
    """
    batch = place(batch, f"{state.graph.leaf_name(state.value)} of the batch")
    update_state(state, updated_state(state) * (1.0 - momentum) + batch * (momentum * scale))
    return batch


def _across(channel: TensorLike, x: Tensor) -> Tensor:
    """A number a channel, to be broadcast over `x`."""
    return reshape(channel, -1, *[1] * (x.ndim - 2))


def _batch_norm_grad(g: Tensor, out: Tensor, x: Tensor, *rest: Any) -> tuple[Tensor | None, ...]:
    """Both sums serve three gradients: the channel's sum of `g`, and that of `g` times the normalized input."""
    middle, spread, *affine, axes, eps, has_weight, has_bias = rest
    scale = ew.rsqrt(spread + eps)
    normal = (x - _across(middle, x)) * _across(scale, x)
    total, along = sum_(g, axes), sum_(g * normal, axes)
    share = 1 / max(1, math.prod(x.shape[a] for a in axes))
    rest_of_g = g - _across(total * share, x) - normal * _across(along * share, x)
    # the statistics have no gradients of their own: they are functions of x, which the rule has seen to
    grads = [rest_of_g * _across(scale * affine[0] if has_weight else scale, x), None, None]
    return (*grads, *([along] if has_weight else []), *([total] if has_bias else []))
