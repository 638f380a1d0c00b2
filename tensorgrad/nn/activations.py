"""Elementwise functions and softmax as modules, for `Sequential`."""

from __future__ import annotations

from typing import Literal

from tensorgrad import ops
from tensorgrad.nn.module import Module
from tensorgrad.ops.core import TensorLike
from tensorgrad.tensor import Tensor


class ReLU(Module):
    """The larger of x and 0."""

    def forward(self, x: TensorLike) -> Tensor:
        return ops.relu(x)


class GELU(Module):
    """x times the normal distribution's probability of less than x.

    Args:
        approximate: `none` for the exact function, `tanh` for its tanh form.
    """

    def __init__(self, approximate: Literal["none", "tanh"] = "none") -> None:
        self.approximate: Literal["none", "tanh"] = approximate

    def forward(self, x: TensorLike) -> Tensor:
        return ops.gelu(x, self.approximate)

    def extra_repr(self) -> str:
        return "" if self.approximate == "none" else self.approximate


class SiLU(Module):
    """x * sigmoid(x)."""

    def forward(self, x: TensorLike) -> Tensor:
        return ops.silu(x)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, x: TensorLike) -> Tensor:
        return ops.tanh(x)


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, x: TensorLike) -> Tensor:
        return ops.sigmoid(x)


class _AlongAxis(Module):
    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongAxis):
    """exp(x) scaled to sum to 1 along an axis.

    Args:
        dim: the axis.
    """

    def forward(self, x: TensorLike) -> Tensor:
        return ops.softmax(x, self.dim)


class LogSoftmax(_AlongAxis):
    """The logarithm of softmax along an axis.

    Args:
        dim: the axis.
    """

    def forward(self, x: TensorLike) -> Tensor:
        return ops.log_softmax(x, self.dim)
