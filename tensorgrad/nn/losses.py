"""Losses as modules; the functions of the same names are in `nn.functional`."""

from __future__ import annotations

from tensorgrad import ops
from tensorgrad.nn.module import Module
from tensorgrad.ops.composite import Reduction
from tensorgrad.ops.core import TensorLike
from tensorgrad.tensor import Tensor


class _Loss(Module):
    def __init__(self, reduction: Reduction = "mean") -> None:
        self.reduction: Reduction = reduction


class MSELoss(_Loss):
    """The squared difference."""

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return ops.mse_loss(input, target, self.reduction)


class _ClassLoss(_Loss):
    def __init__(self, ignore_index: int = -100, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.ignore_index = ignore_index


class CrossEntropyLoss(_ClassLoss):
    """The cross entropy of logits and class numbers."""

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return ops.cross_entropy(input, target, self.reduction, self.ignore_index)


class NLLLoss(_ClassLoss):
    """Minus the log-probability of the target class."""

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return ops.nll_loss(input, target, self.reduction, self.ignore_index)
