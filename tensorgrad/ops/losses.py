"""Losses of differences and angles, with PyTorch's names, arguments and numbers; what all losses need.

Arguments that PyTorch has given up (`size_average`, `reduce`) are left out. Shapes are not
broadcast between input and target: that is a mistake more often than not.
"""

from __future__ import annotations

from typing import Literal

from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.core import TensorLike, cast, in_f32, require, tensor
from tensorgrad.ops.reduce import mean, require_float
from tensorgrad.ops.reduce import sum as sum_
from tensorgrad.shape import check_axis, fail
from tensorgrad.tensor import Tensor

Reduction = Literal["none", "sum", "mean"]
"""All losses, their sum or their mean."""


def reduced(name: str, values: Tensor, reduction: Reduction, total: Tensor | None = None) -> Tensor:
    """The values, their sum, or their mean: by `total` where that is not their number."""
    if reduction == "mean":
        return mean(values) if total is None else sum_(values) / total
    if reduction == "sum":
        return sum_(values)
    require(name, "reduction", reduction, reduction == "none", "'none', 'sum' or 'mean'")
    return values


def weighed(name: str, values: Tensor, weight: TensorLike | None, reduction: Reduction) -> Tensor:
    """`reduced` with a weight for each element, by whose sum a mean is divided."""
    if weight is None:
        return reduced(name, values, reduction)
    _, weight = pair(name, values, weight, "weight")
    return reduced(name, values * weight, reduction, sum_(weight))


def pair(name: str, input: TensorLike, target: TensorLike, what: str = "target") -> tuple[Tensor, Tensor]:
    input, target = tensor(input), tensor(target)
    if input.shape != target.shape:
        fail(f"{name}: the input {input.type} and the {what} {target.type} must have one shape")
    return input, target


def float_pair(name: str, input: TensorLike, target: TensorLike) -> tuple[Tensor, Tensor]:
    """Two tensors of the input's dtype, which is a float."""
    input, target = pair(name, input, target)
    return require_float(name, input), cast(target, input.dtype)


# Differences ------------------------------------------------------------------------------


@in_f32
def mse_loss(
    input: TensorLike, target: TensorLike, reduction: Reduction = "mean", weight: TensorLike | None = None
) -> Tensor:
    """The squared difference.

    Args:
        input, target: of one shape.
        reduction: "none", "sum" or "mean".
        weight: of each element, in the same shape. The mean is divided by its sum.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([1.0, 3.0], np.float32)
    >>> tg.sync(tg.jit(lambda x: tg.mse_loss(x, [0.0, 0.0]), device="numpy")(x)).item()
    5.0
    """
    input, target = pair("mse_loss", input, target)
    return weighed("mse_loss", ew.square(input - target), weight, reduction)


@in_f32
def l1_loss(
    input: TensorLike, target: TensorLike, reduction: Reduction = "mean", weight: TensorLike | None = None
) -> Tensor:
    """The size of the difference; where it is 0, so is the gradient.

    Args:
        input, target, reduction, weight: as `mse_loss`.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([1.0, -3.0], np.float32)
    >>> tg.sync(tg.jit(lambda x: tg.l1_loss(x, [0.0, 0.0]), device="numpy")(x)).item()
    2.0
    """
    input, target = pair("l1_loss", input, target)
    return weighed("l1_loss", ew.abs(input - target), weight, reduction)


@in_f32
def smooth_l1_loss(input: TensorLike, target: TensorLike, reduction: Reduction = "mean", beta: float = 1.0) -> Tensor:
    """Half the squared difference over `beta` where it is smaller than that, else its size less `beta / 2`.

    Args:
        input, target, reduction: as `mse_loss`.
        beta: 0 is `l1_loss`.

    Source: Girshick, Fast R-CNN (2015), equation 3.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([0.5, -3.0], np.float32)
    >>> tg.sync(tg.jit(lambda x: tg.smooth_l1_loss(x, [0.0, 0.0], "none"), device="numpy")(x)).tolist()
    [0.125, 2.5]
    """
    require("smooth_l1_loss", "beta", beta, beta >= 0, "0 or more")
    input, target = pair("smooth_l1_loss", input, target)
    size = ew.abs(input - target)
    values = _bent(size, beta) * (1 / beta) if beta else size
    return reduced("smooth_l1_loss", values, reduction)


@in_f32
def huber_loss(
    input: TensorLike,
    target: TensorLike,
    reduction: Reduction = "mean",
    delta: float = 1.0,
    weight: TensorLike | None = None,
) -> Tensor:
    """Half the squared difference where it is smaller than `delta`, else a straight line on from there.

    Args:
        input, target, reduction: as `mse_loss`.
        delta: positive; the slope of the line.
        weight: of each element, in the same shape. The mean is that over all elements, whatever their weight.

    Source: Huber, Robust estimation of a location parameter (1964).

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([1.0, -3.0], np.float32)
    >>> tg.sync(tg.jit(lambda x: tg.huber_loss(x, [0.0, 0.0], "none", 2.0), device="numpy")(x)).tolist()
    [0.5, 4.0]
    """
    require("huber_loss", "delta", delta, delta > 0, "positive")
    input, target = pair("huber_loss", input, target)
    values = _bent(ew.abs(input - target), delta)
    return reduced(
        "huber_loss", values if weight is None else values * pair("huber_loss", values, weight, "weight")[1], reduction
    )


def _bent(size: Tensor, at: float) -> Tensor:
    """`size**2 / 2` up to `at`, straight from there on; without the square of a large size, that may overflow."""
    near = ew.minimum(size, at)
    return near * near * 0.5 + (size - near) * at


# Angles -----------------------------------------------------------------------------------


@in_f32
def cosine_similarity(x1: TensorLike, x2: TensorLike, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors: their product over their lengths.

    Args:
        x1, x2: broadcast against each other.
        dim: the vectors' axis, which goes.
        eps: the least length that a vector is divided by.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([[3.0, 4.0], [0.0, -2.0]], np.float32)
    >>> tg.sync(tg.jit(lambda x: tg.cosine_similarity(x, [[0.0, 1.0]]), device="numpy")(x)).round(4)
    array([ 0.8, -1. ], dtype=float32)
    """
    x1, x2 = (require_float("cosine_similarity", tensor(x)) for x in (x1, x2))
    axis = check_axis("cosine_similarity", dim, max(x1.ndim, x2.ndim)) - max(x1.ndim, x2.ndim)
    for x in (x1, x2):
        check_axis("cosine_similarity", axis, x.ndim)
    # under the root, so that a vector of zeros has a gradient
    first, second = (x / ew.sqrt(ew.maximum(sum_(ew.square(x), axis, keepdims=True), eps * eps)) for x in (x1, x2))
    return sum_(first * second, axis)


@in_f32
def cosine_embedding_loss(
    input1: TensorLike,
    input2: TensorLike,
    target: TensorLike,
    margin: float = 0.0,
    reduction: Reduction = "mean",
) -> Tensor:
    """`1 - cosine` of the pairs that belong together, what the cosine is above `margin` of those that do not.

    Args:
        input1, input2: vectors `[N, D]` or `[D]`.
        target: `[N]` or `[]`; 1 for a pair that belongs together, -1 for one that does not. Others give 0.
        margin: from -1 to 1.
        reduction: "none", "sum" or "mean".

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([[1.0, 0.0], [1.0, 0.0]], np.float32)
    >>> loss = tg.jit(lambda x: tg.cosine_embedding_loss(x, x, [1, -1], reduction="none"), device="numpy")
    >>> tg.sync(loss(x)).tolist()
    [0.0, 1.0]
    """
    name = "cosine_embedding_loss"
    input1, input2 = float_pair(name, input1, input2)
    target = tensor(target)
    if input1.ndim not in (1, 2) or target.shape != input1.shape[:-1]:
        fail(f"{name}: inputs are [N, D] with targets [N], or [D] with one target; got {input1.type} and {target.type}")
    # PyTorch's: under the root, where `cosine_similarity` has another bound
    squares = [sum_(ew.square(x), -1) + 1e-12 for x in (input1, input2)]
    cosine = sum_(input1 * input2, -1) / ew.sqrt(squares[0] * squares[1])
    apart = ew.where(ew.equal(target, -1), ew.clamp(cosine - margin, 0.0), 0.0)
    return reduced(name, ew.where(ew.equal(target, 1), 1 - cosine, apart), reduction)
