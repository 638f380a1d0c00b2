"""Losses as modules; the functions, where their arguments are told, are in `nn.functional`."""

from __future__ import annotations

from typing import Any, Literal

from tensorgrad import ops
from tensorgrad.nn.module import Module
from tensorgrad.nn.parameter import Buffer
from tensorgrad.ops.core import TensorLike
from tensorgrad.ops.losses import Reduction
from tensorgrad.tensor import Tensor


def weight_buffer(weight: Any) -> Buffer | None:
    """A weight as PyTorch keeps it: in the state dict."""
    return None if weight is None else Buffer(weight)


class Loss(Module):
    """A loss with a reduction."""

    def __init__(self, reduction: Reduction = "mean") -> None:
        self.reduction: Reduction = reduction


class MSELoss(Loss):
    """`mse_loss`: the squared difference."""

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return ops.mse_loss(input, target, self.reduction)


class L1Loss(Loss):
    """`l1_loss`: the size of the difference."""

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return ops.l1_loss(input, target, self.reduction)


class SmoothL1Loss(Loss):
    """`smooth_l1_loss`: squared below `beta`, straight above; of slope 1."""

    def __init__(self, reduction: Reduction = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return ops.smooth_l1_loss(input, target, self.reduction, self.beta)


class HuberLoss(Loss):
    """`huber_loss`: squared below `delta`, straight above; of slope `delta`."""

    def __init__(self, reduction: Reduction = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return ops.huber_loss(input, target, self.reduction, self.delta)


class CrossEntropyLoss(Loss):
    """`cross_entropy` of logits and class numbers, or of logits and probabilities.

    The weight is a buffer, as in PyTorch: it is in the state dict of a module that holds the loss.

    >>> from tensorgrad import nn
    >>> sorted(nn.CrossEntropyLoss([1.0, 2.0], label_smoothing=0.1).state_dict())
    ['weight']
    """

    def __init__(
        self,
        weight: Any = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(reduction)
        self.weight = weight_buffer(weight)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return ops.cross_entropy(input, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing)


class NLLLoss(Loss):
    """`nll_loss`: minus the log-probability of the target class."""

    def __init__(self, weight: Any = None, ignore_index: int = -100, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.weight, self.ignore_index = weight_buffer(weight), ignore_index

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return ops.nll_loss(input, target, self.weight, self.ignore_index, self.reduction)


class BCELoss(Loss):
    """`binary_cross_entropy`: of probabilities of yes."""

    def __init__(self, weight: Any = None, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight_buffer(weight)

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return ops.binary_cross_entropy(input, target, self.weight, self.reduction)


class BCEWithLogitsLoss(Loss):
    """`binary_cross_entropy_with_logits`."""

    def __init__(self, weight: Any = None, reduction: Reduction = "mean", pos_weight: Any = None) -> None:
        super().__init__(reduction)
        self.weight, self.pos_weight = weight_buffer(weight), weight_buffer(pos_weight)

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return ops.binary_cross_entropy_with_logits(input, target, self.weight, self.reduction, self.pos_weight)


class KLDivLoss(Module):
    """`kl_div` of log-probabilities and probabilities (or `log_target`)."""

    def __init__(
        self, reduction: Literal["none", "sum", "mean", "batchmean"] = "mean", log_target: bool = False
    ) -> None:
        self.reduction: Literal["none", "sum", "mean", "batchmean"] = reduction
        self.log_target = log_target

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return ops.kl_div(input, target, self.reduction, self.log_target)


class CosineSimilarity(Module):
    """`cosine_similarity` along an axis."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        self.dim, self.eps = dim, eps

    def forward(self, x1: TensorLike, x2: TensorLike) -> Tensor:
        return ops.cosine_similarity(x1, x2, self.dim, self.eps)


class CosineEmbeddingLoss(Loss):
    """`cosine_embedding_loss`: pairs that belong together (1) or do not (-1)."""

    def __init__(self, margin: float = 0.0, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: TensorLike, input2: TensorLike, target: TensorLike) -> Tensor:
        return ops.cosine_embedding_loss(input1, input2, target, self.margin, self.reduction)


class PairwiseDistance(Module):
    """`pairwise_distance`: the p-norm of the difference, over the last axis."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: TensorLike, x2: TensorLike) -> Tensor:
        return ops.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class PoissonNLLLoss(Loss):
    """`poisson_nll_loss` of expected counts, or their logarithms, and counts."""

    def __init__(
        self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: Reduction = "mean"
    ) -> None:
        super().__init__(reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, log_input: TensorLike, target: TensorLike) -> Tensor:
        return ops.poisson_nll_loss(log_input, target, self.log_input, self.full, self.eps, self.reduction)


class GaussianNLLLoss(Loss):
    """`gaussian_nll_loss` of expected numbers, numbers and variances."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.full, self.eps = full, eps

    def forward(self, input: TensorLike, target: TensorLike, var: TensorLike) -> Tensor:
        return ops.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)
