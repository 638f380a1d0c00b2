"""Losses of margins as modules; the functions, where their arguments are told, are in `nn.functional`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorgrad import ops
from tensorgrad.nn.losses import Loss, weight_buffer
from tensorgrad.ops.core import TensorLike
from tensorgrad.ops.losses import Reduction
from tensorgrad.tensor import Tensor


class SoftMarginLoss(Loss):
    """`soft_margin_loss`: of scores and sides, 1 or -1."""

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return ops.soft_margin_loss(input, target, self.reduction)


class HingeEmbeddingLoss(Loss):
    """`hinge_embedding_loss`: of distances, small for pairs that belong together (1), large for others (-1)."""

    def __init__(self, margin: float = 1.0, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return ops.hinge_embedding_loss(input, target, self.margin, self.reduction)


class MarginRankingLoss(Loss):
    """`margin_ranking_loss`: the first of two scores is to be the higher (1), or the second (-1)."""

    def __init__(self, margin: float = 0.0, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: TensorLike, input2: TensorLike, target: TensorLike) -> Tensor:
        return ops.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class TripletMarginLoss(Loss):
    """`triplet_margin_loss`: an anchor is to be nearer to its like than to something else."""

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction)
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor: TensorLike, positive: TensorLike, negative: TensorLike) -> Tensor:
        options = self.margin, self.p, self.eps, self.swap, self.reduction
        return ops.triplet_margin_loss(anchor, positive, negative, *options)


class TripletMarginWithDistanceLoss(Loss):
    """`triplet_margin_with_distance_loss`: the same by a distance of your own."""

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction)
        self.distance_function, self.margin, self.swap = distance_function, margin, swap

    def forward(self, anchor: TensorLike, positive: TensorLike, negative: TensorLike) -> Tensor:
        return ops.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class MultiMarginLoss(Loss):
    """`multi_margin_loss`: the target's score is to be above those of other classes."""

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.p, self.margin, self.weight = p, margin, weight_buffer(weight)

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return ops.multi_margin_loss(input, target, self.p, self.margin, self.weight, self.reduction)


class MultiLabelMarginLoss(Loss):
    """`multilabel_margin_loss`: the scores of a row's labels are to be above those of other classes."""

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return ops.multilabel_margin_loss(input, target, self.reduction)


class MultiLabelSoftMarginLoss(Loss):
    """`multilabel_soft_margin_loss`: of logits, and 0 or 1 for each class."""

    def __init__(self, weight: Any = None, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight_buffer(weight)

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return ops.multilabel_soft_margin_loss(input, target, self.weight, self.reduction)
