"""Losses that are minus the logarithm of how likely a target is, with PyTorch's names, arguments and numbers."""

from __future__ import annotations

import math

from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import TensorLike, cast, in_f32, tensor
from tensorgrad.ops.losses import Reduction, float_pair, reduced, require
from tensorgrad.ops.views import expand_dims
from tensorgrad.shape import fail
from tensorgrad.tensor import Tensor


@in_f32
def poisson_nll_loss(
    input: TensorLike,
    target: TensorLike,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: Reduction = "mean",
) -> Tensor:
    """Of counts that are Poisson distributed, but for what does not depend on the input.

    Args:
        input: the logarithm of the expected count, or with `log_input=False` the expected count.
        target: counts, in the shape of the input.
        full: add `log(target!)` by Stirling's formula where the target is above 1.
        eps: added to an expected count before its logarithm is taken.
        reduction: "none", "sum" or "mean".

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([0.0, 1.0], np.float32)
    >>> loss = tg.jit(lambda x: tg.poisson_nll_loss(x, [0, 2], reduction="none"), device="numpy")
    >>> tg.sync(loss(x)).round(4).tolist()
    [1.0, 0.7182999849319458]
    """
    name = "poisson_nll_loss"
    input, target = float_pair(name, input, target)
    values = ew.exp(input) - target * input if log_input else input - target * ew.log(input + eps)
    if full:
        many = ew.less(1, target)
        count = ew.where(many, target, 2)
        factorial = count * ew.log(count) - count + 0.5 * ew.log(2 * math.pi * count)
        values = values + ew.where(many, factorial, 0.0)
    return reduced(name, values, reduction)


@in_f32
def gaussian_nll_loss(
    input: TensorLike,
    target: TensorLike,
    var: TensorLike,
    full: bool = False,
    eps: float = 1e-6,
    reduction: Reduction = "mean",
) -> Tensor:
    """Of numbers that are normally distributed: `(log(var) + (input - target)**2 / var) / 2`.

    Args:
        input: the expected numbers.
        target: in the shape of the input.
        var: the variances, in the same shape; or without the last axis, with one axis of size 1, or a number, where
            several share one. What is below `eps` counts as that; its gradient is as if it did not.
        full: add `log(2 * pi) / 2`.
        reduction: "none", "sum" or "mean".

    Source: Nix and Weigend, Estimating the mean and variance of the target probability distribution (1994).

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([0.0, 2.0], np.float32)
    >>> loss = tg.jit(lambda x: tg.gaussian_nll_loss(x, [0, 0], 1.0, reduction="none"), device="numpy")
    >>> tg.sync(loss(x)).tolist()
    [0.0, 2.0]
    """
    name = "gaussian_nll_loss"
    input, target = float_pair(name, input, target)
    require(name, "eps", eps, eps > 0, "positive")
    var = cast(tensor(var), input.dtype)
    if var.ndim and var.shape != input.shape:
        if var.shape == input.shape[:-1]:
            var = expand_dims(var, -1)
        others = [(n, m) for n, m in zip(input.shape, var.shape, strict=False) if n != m]
        if var.ndim != input.ndim or len(others) > 1 or any(m != 1 for _, m in others):
            fail(
                f"{name}: the variances {var.type} do not go with the input {input.type}: one axis may be 1 or missing"
            )
    kept = var + ew.stop_gradient(ew.maximum(var, eps) - var)
    values = 0.5 * (ew.log(kept) + ew.square(input - target) / kept)
    return reduced(name, values + 0.5 * math.log(2 * math.pi) if full else values, reduction)
