"""Losses of scores that are to be apart by a margin, with PyTorch's names, arguments and numbers."""

from __future__ import annotations

from collections.abc import Callable

from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.activations import logsigmoid, relu, softplus
from tensorgrad.ops.core import TensorLike, cast, in_f32, tensor
from tensorgrad.ops.indexing import hits_of, integers
from tensorgrad.ops.losses import Reduction, float_pair, reduced, require
from tensorgrad.ops.normalization import pairwise_distance
from tensorgrad.ops.reduce import max as max_
from tensorgrad.ops.reduce import mean, require_float
from tensorgrad.ops.reduce import sum as sum_
from tensorgrad.ops.scan import cumsum
from tensorgrad.ops.scatter import gather
from tensorgrad.ops.views import expand_dims
from tensorgrad.shape import fail
from tensorgrad.tensor import Tensor
from tensorgrad.trace import expect_index

# Of two sides ----------------------------------------------------------------------------


@in_f32
def soft_margin_loss(input: TensorLike, target: TensorLike, reduction: Reduction = "mean") -> Tensor:
    """`log(1 + exp(-target * input))`.

    Args:
        input: scores.
        target: 1 or -1, in the shape of the input.
        reduction: "none", "sum" or "mean".

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([0.0, 100.0], np.float32)
    >>> loss = tg.jit(lambda x: tg.soft_margin_loss(x, [1, -1], "none"), device="numpy")
    >>> tg.sync(loss(x)).round(4).tolist()
    [0.6930999755859375, 100.0]
    """
    input, target = float_pair("soft_margin_loss", input, target)
    return reduced("soft_margin_loss", softplus(-target * input), reduction)


@in_f32
def hinge_embedding_loss(
    input: TensorLike, target: TensorLike, margin: float = 1.0, reduction: Reduction = "mean"
) -> Tensor:
    """The distance of pairs that belong together, what is missing to `margin` of those that do not.

    Args:
        input: distances.
        target: 1 for a pair that belongs together, -1 for one that does not, in the shape of the input.
        reduction: "none", "sum" or "mean".

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([0.25, 0.25, 2.0], np.float32)
    >>> loss = tg.jit(lambda x: tg.hinge_embedding_loss(x, [1, -1, -1], reduction="none"), device="numpy")
    >>> tg.sync(loss(x)).tolist()
    [0.25, 0.75, 0.0]
    """
    name = "hinge_embedding_loss"
    input, target = float_pair(name, input, target)
    apart = ew.where(ew.equal(target, 1), 0.0, ew.clamp(margin - input, 0.0))
    return reduced(name, apart + ew.where(ew.equal(target, -1), 0.0, input), reduction)


@in_f32
def margin_ranking_loss(
    input1: TensorLike,
    input2: TensorLike,
    target: TensorLike,
    margin: float = 0.0,
    reduction: Reduction = "mean",
) -> Tensor:
    """What is missing to `margin` in how far the first score is above the second: `max(0, margin - target * (a - b))`.

    Args:
        input1, input2: scores; with the target they broadcast against each other.
        target: 1 where the first is to be the higher, -1 where the second is.
        reduction: "none", "sum" or "mean".

    Raises:
        ShapeError: they differ in their numbers of axes.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([1.0, 1.0], np.float32)
    >>> loss = tg.jit(lambda x: tg.margin_ranking_loss(x, x * 3, [1, -1], reduction="none"), device="numpy")
    >>> tg.sync(loss(x)).tolist()
    [2.0, 0.0]
    """
    name = "margin_ranking_loss"
    first, second = (require_float(name, tensor(x)) for x in (input1, input2))
    target = cast(tensor(target), first.dtype)
    if not first.ndim == second.ndim == target.ndim:
        fail(f"{name}: {first.type}, {second.type} and the target {target.type} must have the same number of axes")
    return reduced(name, ew.clamp(-target * (first - second) + margin, 0.0), reduction)


# Of three -----------------------------------------------------------------------------------


@in_f32
def triplet_margin_loss(
    anchor: TensorLike,
    positive: TensorLike,
    negative: TensorLike,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: Reduction = "mean",
) -> Tensor:
    """What is missing to `margin` in how much nearer an anchor is to its like than to something else.

    Args:
        anchor, positive, negative: vectors `[N, D]` or `[D]`.
        margin: positive.
        p, eps: of the distance, as `pairwise_distance`.
        swap: take the distance from the like to the other where that is the smaller one.
        reduction: "none", "sum" or "mean".

    Source: Balntas et al., Learning shallow convolutional feature descriptors with triplet losses (2016).

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([[0.0, 0.0]], np.float32)
    >>> loss = tg.jit(lambda x: tg.triplet_margin_loss(x, x + [3.0, 4.0], x + [0.0, 2.0]), device="numpy")
    >>> tg.sync(loss(x)).round(4).item()
    4.0
    """

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return pairwise_distance(a, b, p, eps)

    return _triplets("triplet_margin_loss", (anchor, positive, negative), distance, margin, swap, reduction)


@in_f32
def triplet_margin_with_distance_loss(
    anchor: TensorLike,
    positive: TensorLike,
    negative: TensorLike,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: Reduction = "mean",
) -> Tensor:
    """`triplet_margin_loss` with a distance of your own, from two tensors; `pairwise_distance` by default."""
    name, sides = "triplet_margin_with_distance_loss", (anchor, positive, negative)
    return _triplets(name, sides, distance_function or pairwise_distance, margin, swap, reduction)


def _triplets(
    name: str,
    sides: tuple[TensorLike, TensorLike, TensorLike],
    distance: Callable[[Tensor, Tensor], Tensor],
    margin: float,
    swap: bool,
    reduction: Reduction,
) -> Tensor:
    require(name, "margin", margin, margin > 0, "positive")
    anchor, positive, negative = (require_float(name, tensor(x)) for x in sides)
    if not anchor.ndim == positive.ndim == negative.ndim:
        fail(f"{name}: {anchor.type}, {positive.type} and {negative.type} must have the same number of axes")
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = ew.minimum(far, distance(positive, negative))
    return reduced(name, ew.clamp(margin + near - far, 0.0), reduction)


# Of classes -------------------------------------------------------------------------------


@in_f32
def multi_margin_loss(
    input: TensorLike,
    target: TensorLike,
    p: int = 1,
    margin: float = 1.0,
    weight: TensorLike | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """What is missing to `margin` between the target's score and each other class's, summed, over the classes' number.

    Args:
        input: scores `[N, C]` or `[C]`.
        target: integers `[N]` or `[]`. One outside the classes gives NaN.
        p: 1, or 2 for squares.
        weight: `[C]`, of each class; that of its target multiplies a row.
        reduction: "none", "sum" or "mean".

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([[0.0, 2.0, 0.5]], np.float32)
    >>> tg.sync(tg.jit(lambda x: tg.multi_margin_loss(x, [2]), device="numpy")(x)).round(4).item()
    1.0
    """
    name = "multi_margin_loss"
    require(name, "p", p, p in (1, 2), "1 or 2")
    input, target = require_float(name, tensor(input)), integers(name, target)
    if input.ndim not in (1, 2) or target.shape != input.shape[:-1]:
        fail(f"{name}: the input is [N, C] with targets [N], or [C] with one; got {input.type} and {target.type}")
    classes = input.shape[-1]
    expect_index(target, classes, f"{name} has {classes} classes")
    at = expand_dims(target, -1)
    missing = relu(margin - gather(input, -1, at) + input)
    missing = ew.square(missing) if p == 2 else missing
    if weight is not None:
        weight = tensor(weight)
        if weight.shape != (classes,):
            fail(f"{name}: the weight {weight.type} must be [{classes}], one for each class")
        missing = missing * expand_dims(weight[target], -1)
    others = ew.where(hits_of(target, classes), 0.0, missing)
    return reduced(name, sum_(others, -1) / classes, reduction)


@in_f32
def multilabel_margin_loss(input: TensorLike, target: TensorLike, reduction: Reduction = "mean") -> Tensor:
    """What is missing to 1 between each of a row's labels and each other class, summed, over the classes' number.

    Args:
        input: scores `[N, C]` or `[C]`.
        target: integers in the shape of the input: the labels of a row, and -1 after the last.
        reduction: "none", "sum" or "mean", of the rows.

    A row is compared with itself, so that `N * C * C` numbers are computed.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x, t = np.array([[0.1, 0.2, 0.4, 0.8]], np.float32), np.array([[3, 0, -1, 1]])
    >>> tg.sync(tg.jit(lambda x: tg.multilabel_margin_loss(x, t), device="numpy")(x)).round(4).item()
    0.8500000238418579
    """
    name = "multilabel_margin_loss"
    input, target = require_float(name, tensor(input)), integers(name, target)
    if input.ndim not in (1, 2) or target.shape != input.shape:
        fail(f"{name}: input and target are [N, C] or [C]; got {input.type} and {target.type}")
    classes = input.shape[-1]
    # which labels stand before the first -1
    labels = ew.equal(cumsum(cast(ew.less(target, 0), target.dtype), -1), 0)
    at = ew.where(labels, target, 0)
    expect_index(at, classes, f"{name} has {classes} classes")
    named = cast(expand_dims(labels, -1) & hits_of(at, classes), target.dtype)
    apart = relu(1 - expand_dims(gather(input, -1, at), -1) + expand_dims(input, -2))
    counts = expand_dims(labels, -1) & expand_dims(ew.equal(max_(named, -2), 0), -2)
    return reduced(name, sum_(ew.where(counts, apart, 0.0), (-2, -1)) / classes, reduction)


@in_f32
def multilabel_soft_margin_loss(
    input: TensorLike, target: TensorLike, weight: TensorLike | None = None, reduction: Reduction = "mean"
) -> Tensor:
    """The binary cross entropy of every class's logit, averaged over the classes.

    Args:
        input: logits `[..., C]`.
        target: 0 or 1 (or between), in the shape of the input.
        weight: `[C]`, of each class.
        reduction: "none", "sum" or "mean", of the rows.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.zeros((2, 3), np.float32)
    >>> loss = tg.jit(lambda x: tg.multilabel_soft_margin_loss(x, [[0, 1, 1], [1, 0, 0]]), device="numpy")
    >>> tg.sync(loss(x)).round(4).item()
    0.6930999755859375
    """
    name = "multilabel_soft_margin_loss"
    input, target = float_pair(name, input, target)
    values = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        values = values * weight
    return reduced(name, mean(values, -1), reduction)
