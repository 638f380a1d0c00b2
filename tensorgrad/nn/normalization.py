"""Normalizations without statistics over batches: PyTorch's arguments, defaults and keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorgrad import ops
from tensorgrad.callsite import call_site
from tensorgrad.checks import require_sizes, require_whole
from tensorgrad.dtypes import DType, f32
from tensorgrad.errors import ShapeError
from tensorgrad.nn import init
from tensorgrad.nn.module import Module
from tensorgrad.nn.parameter import Parameter, filled
from tensorgrad.ops.core import TensorLike
from tensorgrad.tensor import Tensor


class Affine(Module):
    """A normalization with a weight that starts as ones and a bias that starts as zeros, or without."""

    weight: Parameter | None
    bias: Parameter | None

    def _add_affine(self, shape: Sequence[int], weight: bool, bias: bool, dtype: DType) -> None:
        self.weight = filled(1, shape, dtype) if weight else None
        self.bias = filled(0, shape, dtype) if bias else None

    def reset_parameters(self) -> None:
        """Weight to ones, bias to zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


def _sizes(where: str, normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    given: Any = normalized_shape
    sizes = given if isinstance(given, list | tuple) else (given,)
    for size in sizes:
        require_whole(where, "normalized_shape", size)
    return tuple(map(int, sizes))


class LayerNorm(Affine):
    """Rows shifted and scaled to mean 0 and variance 1, then `* weight + bias`.

    Args:
        normalized_shape: the sizes of the last axes, over which a row extends.
        eps: added to the variance.
        elementwise_affine: whether there are weight (ones) and bias (zeros).
        bias: False leaves out the bias alone.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: DType = f32,
    ) -> None:
        self.normalized_shape, self.eps = _sizes(type(self).__name__, normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        self._add_affine(self.normalized_shape, elementwise_affine, elementwise_affine and bias, dtype)

    def forward(self, x: TensorLike) -> Tensor:
        return ops.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{', '.join(map(str, self.normalized_shape))}, eps={self.eps:g}"


class RMSNorm(Affine):
    """Rows over their root mean square, then `* weight`.

    Args:
        normalized_shape: the sizes of the last axes, over which a row extends.
        eps: added to the mean square; None is the smallest step from 1 of the input's dtype.
        elementwise_affine: whether there is a weight (ones).

    >>> from tensorgrad import nn
    >>> nn.RMSNorm(8)
    RMSNorm(8, eps=None): 8 parameters  weight f32[8]
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        dtype: DType = f32,
    ) -> None:
        self.normalized_shape, self.eps = _sizes(type(self).__name__, normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        self._add_affine(self.normalized_shape, elementwise_affine, False, dtype)

    def forward(self, x: TensorLike) -> Tensor:
        return ops.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{', '.join(map(str, self.normalized_shape))}, eps={self.eps}"


class GroupNorm(Affine):
    """`group_norm` of `[N, C, ...]`: each example's channels by groups.

    Args:
        num_groups: groups, which divide the channels.
        num_channels: C.
        eps: added to the variance.
        affine: whether there are weight (ones) and bias (zeros).
        bias: False leaves out the bias alone.

    >>> from tensorgrad import nn
    >>> nn.GroupNorm(2, 6)
    GroupNorm(2, 6, eps=1e-05): 12 parameters  weight f32[6], bias f32[6]
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        dtype: DType = f32,
        *,
        bias: bool = True,
    ) -> None:
        require_sizes("GroupNorm", num_groups=num_groups, num_channels=num_channels)
        if num_groups < 1 or num_channels % num_groups:
            raise ShapeError(f"GroupNorm: {num_groups} groups do not divide {num_channels} channels", call_site())
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._add_affine((num_channels,), affine, affine and bias, dtype)

    def forward(self, x: TensorLike) -> Tensor:
        return ops.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps:g}"


class LocalResponseNorm(Module):
    """`local_response_norm` of `[N, C, ...]`: by the channels around each."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, x: TensorLike) -> Tensor:
        return ops.local_response_norm(x, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
