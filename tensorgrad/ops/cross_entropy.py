"""Losses of probabilities: PyTorch's names, arguments and numbers."""

from __future__ import annotations

import math
from typing import Literal

from tensorgrad.callsite import call_site
from tensorgrad.dtypes import i32
from tensorgrad.errors import DtypeError
from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.composite import log_softmax
from tensorgrad.ops.core import TensorLike, broadcast_to, cast, in_f32, tensor
from tensorgrad.ops.custom import custom_grad
from tensorgrad.ops.indexing import iota
from tensorgrad.ops.losses import Reduction, float_pair, reduced, require
from tensorgrad.ops.reduce import require_float
from tensorgrad.ops.reduce import sum as sum_
from tensorgrad.ops.views import expand_dims, reshape
from tensorgrad.shape import fail
from tensorgrad.tensor import Tensor
from tensorgrad.trace import expect_index

# Classes ----------------------------------------------------------------------------------


@in_f32
def nll_loss(
    input: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
) -> Tensor:
    """Minus the log-probability of the target class.

    Args:
        input: log-probabilities `[N, C]`, `[C]` or `[N, C, ...]`.
        target: integers without the class axis. A target outside the classes gives NaN.
        weight: `[C]`, of each class. The mean is divided by the sum of the targets' weights.
        ignore_index: rows with this target count for nothing, in the mean's count too.
        reduction: "none", "sum" or "mean".

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x, t = np.array([[-1.0, -2.0], [-3.0, -4.0]], np.float32), np.array([0, 1], np.int32)
    >>> tg.sync(tg.jit(lambda x, t: tg.nll_loss(x, t), device="numpy")(x, t)).item()
    2.5
    """
    input = require_float("nll_loss", tensor(input))
    return _nll("nll_loss", input, tensor(target), weight, ignore_index, reduction)


@in_f32
def cross_entropy(
    input: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of logits and class numbers, or of logits and probabilities.

    Args:
        input: logits `[N, C]`, `[C]` or `[N, C, ...]`.
        target: integers without the class axis (one outside the classes gives NaN), or probabilities in the
            shape of the input. The mean of the latter is that over the rows, whatever their weight.
        weight: `[C]`, of each class. For class numbers the mean is divided by the sum of the targets' weights.
        ignore_index: rows with this class number count for nothing, in the mean's count too.
        reduction: "none", "sum" or "mean".
        label_smoothing: how much of the target's probability is spread evenly over all classes, from 0 to 1.

    Source: Szegedy et al., Rethinking the Inception architecture (2015), for label smoothing.

    >>> import tensorgrad as tg
    >>> def loss():
    ...     return tg.cross_entropy(tg.tensor_input("x", (8, 10)), tg.tensor_input("y", (8,), tg.i32))
    >>> tg.trace(loss).type(tg.trace(loss).outputs[0])
    f32[]
    """
    name = "cross_entropy"
    require(name, "label_smoothing", label_smoothing, 0 <= label_smoothing <= 1, "from 0 to 1")
    input, target = require_float(name, tensor(input)), tensor(target)
    axis = 1 if input.ndim > 1 else 0
    rest = input.shape[:axis] + input.shape[axis + 1 :]
    if target.dtype.is_float and target.shape == rest != input.shape:
        raise DtypeError(
            f"{name}: class labels must be integers, i32{list(rest)}, got {target.type}; declare them as tg.i32, or "
            f"convert them with .astype(tg.i32). (Probabilities have the input's shape, {list(input.shape)}.)",
            call_site(),
        )
    if not target.dtype.is_float:
        log = log_softmax(input, axis) if input.ndim else input
        return _nll(name, log, target, weight, ignore_index, reduction, label_smoothing)
    input, target = float_pair(name, input, target)
    require(name, "ignore_index", ignore_index, ignore_index < 0, "left out where targets are probabilities")
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / input.shape[axis]
    if weight is not None:
        target = target * _class_weights(name, weight, input, axis)
    return reduced(name, -sum_(log_softmax(input, axis) * target, axis), reduction)


def _nll(
    name: str,
    input: Tensor,
    target: Tensor,
    weight: TensorLike | None,
    ignore_index: int,
    reduction: Reduction,
    smoothing: float = 0.0,
) -> Tensor:
    """Minus the log-probability of the target class, some of which is spread over all classes."""
    if target.dtype.kind not in "iu":
        raise DtypeError(f"{name}: targets are class numbers (integers), got {target.type}", call_site())
    axis = 1 if input.ndim > 1 else 0
    rest = tuple(n for i, n in enumerate(input.shape) if i != axis)
    if not input.ndim or target.shape != rest:
        fail(f"{name}: targets {target.type} do not fit inputs {input.type}: expected shape {list(rest)}")
    classes = input.shape[axis]
    expect_index(target, classes, f"{name} has {classes} classes", ignored=ignore_index)
    target = cast(target, i32)
    at = broadcast_to(expand_dims(target, axis), *input.shape)
    chosen = ew.equal(iota(input.shape, axis), at)
    kept = ew.not_equal(target, ignore_index)
    known = (target >= 0) & (target < classes)
    total = cast(sum_(kept), input.dtype)
    if weight is not None:
        weights = broadcast_to(_class_weights(name, weight, input, axis), *input.shape)
        input = input * weights
        total = sum_(ew.where(kept, sum_(ew.where(chosen, weights, 0.0), axis), 0.0))
    losses = -sum_(ew.where(chosen, input, 0.0), axis)
    if smoothing:
        losses = losses * (1 - smoothing) - sum_(input, axis) * (smoothing / classes)
    losses = ew.where(kept, ew.where(known, losses, math.nan), 0.0)
    return reduced(name, losses, reduction, total)


def _class_weights(name: str, weight: TensorLike, input: Tensor, axis: int) -> Tensor:
    """Weights of the classes, along the class axis."""
    weight, classes = cast(tensor(weight), input.dtype), input.shape[axis]
    if weight.shape != (classes,):
        fail(f"{name}: the weight {weight.type} must have one number for each of the {classes} classes of {input.type}")
    return reshape(weight, *(classes if i == axis else 1 for i in range(input.ndim)))


# Probabilities ----------------------------------------------------------------------------


@in_f32
def binary_cross_entropy(
    input: TensorLike, target: TensorLike, weight: TensorLike | None = None, reduction: Reduction = "mean"
) -> Tensor:
    """The cross entropy of probabilities of yes and what was right; logarithms end at -100, as PyTorch's.

    Args:
        input: probabilities; outside of 0 to 1 gives NaN. `binary_cross_entropy_with_logits` is more exact.
        target: probabilities (or 0 and 1) in the same shape.
        weight: of each element; broadcast.
        reduction: "none", "sum" or "mean".

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([0.0, 0.5], np.float32)
    >>> tg.sync(tg.jit(lambda x: tg.binary_cross_entropy(x, [1, 1], reduction="none"), device="numpy")(x)).round(4)
    array([100.    ,   0.6931], dtype=float32)
    """
    name = "binary_cross_entropy"
    input, target = float_pair(name, input, target)
    yes, no = (ew.maximum(log, -100.0) for log in (ew.log(input), ew.log1p(-input)))
    values = custom_grad((target - 1) * no - target * yes, _bce_grad, input, target)
    return reduced(name, _weighted(values, weight), reduction)


def _bce_grad(g: Tensor, out: Tensor, x: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """With PyTorch's bound under the denominator: 0 and 1 have a finite gradient. That of the target has no end."""
    return g * (x - target) / ew.maximum((1 - x) * x, 1e-12), g * (ew.log1p(-x) - ew.log(x))


@in_f32
def binary_cross_entropy_with_logits(
    input: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    reduction: Reduction = "mean",
    pos_weight: TensorLike | None = None,
) -> Tensor:
    """`binary_cross_entropy` of `sigmoid(input)`, without its overflow and underflow.

    Args:
        input: logits.
        target: probabilities (or 0 and 1) in the same shape.
        weight: of each element; broadcast.
        reduction: "none", "sum" or "mean".
        pos_weight: how many times more a missed yes costs; broadcast, so `[C]` for `[N, C]`.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> loss = tg.jit(lambda x: tg.binary_cross_entropy_with_logits(x, [1, 1], reduction="none"), device="numpy")
    >>> tg.sync(loss(np.array([-1000.0, 1000.0], np.float32))).tolist()
    [1000.0, 0.0]
    """
    name = "binary_cross_entropy_with_logits"
    input, target = float_pair(name, input, target)
    values, more = (1 - target) * input, ()
    if pos_weight is None:
        values = values - _log_sigmoid(input)
    else:
        more = (broadcast_to(cast(tensor(pos_weight), input.dtype), *input.shape),)
        values = values - ((more[0] - 1) * target + 1) * _log_sigmoid(input)
    values = custom_grad(values, _bce_logits_grad, input, target, *more)
    return reduced(name, _weighted(values, weight), reduction)


def _log_sigmoid(x: Tensor) -> Tensor:
    return ew.minimum(x, 0.0) - ew.log1p(ew.exp(-ew.abs(x)))


def _bce_logits_grad(
    g: Tensor, out: Tensor, x: Tensor, target: Tensor, pos_weight: Tensor | None = None
) -> tuple[Tensor, ...]:
    """Differences of probabilities, not of what they were computed from: small ones are not lost."""
    if pos_weight is None:
        return g * (ew.sigmoid(x) - target), g * -x
    yes, log = pos_weight * target, _log_sigmoid(x)
    by_x = (yes + 1 - target) * ew.sigmoid(x) - yes
    return g * by_x, g * (-x - (pos_weight - 1) * log), g * -target * log


def _weighted(values: Tensor, weight: TensorLike | None) -> Tensor:
    return values if weight is None else values * broadcast_to(cast(tensor(weight), values.dtype), *values.shape)


@in_f32
def kl_div(
    input: TensorLike,
    target: TensorLike,
    reduction: Literal["none", "sum", "mean", "batchmean"] = "mean",
    log_target: bool = False,
) -> Tensor:
    """The Kullback-Leibler divergence, element by element: `target * (log(target) - input)`.

    Args:
        input: log-probabilities.
        target: probabilities in the same shape; where they are 0, `target * log(target)` is.
        reduction: "none", "sum" or "mean" of all elements, or "batchmean": the sum divided by the size of the
            first axis, which is the divergence.
        log_target: the target is log-probabilities too.

    Source: Kullback and Leibler, On information and sufficiency (1951).

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.log(np.array([[0.25, 0.75]], np.float32))
    >>> loss = tg.jit(lambda x: tg.kl_div(x, [[0.5, 0.5]], "batchmean"), device="numpy")
    >>> round(tg.sync(loss(x)).item(), 4)
    0.1438
    """
    input, target = float_pair("kl_div", input, target)
    if log_target:
        values = ew.exp(target) * (target - input)
    else:
        logs = ew.log(ew.where(ew.equal(target, 0), 1.0, target))
        values = target * logs - target * input
    known = "none", "sum", "mean", "batchmean"
    require("kl_div", "reduction", reduction, reduction in known, f"one of {known}")
    if reduction == "batchmean":
        return sum_(values) / (input.shape[0] if input.ndim else 1)
    return reduced("kl_div", values, reduction)
