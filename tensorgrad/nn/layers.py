"""Layers with parameters, and dropout: PyTorch's arguments, defaults, keys and initial distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tensorgrad import ops
from tensorgrad.dtypes import DType, f32
from tensorgrad.errors import ShapeError
from tensorgrad.nn import init
from tensorgrad.nn.module import Module
from tensorgrad.nn.parameter import Parameter
from tensorgrad.ops.core import TensorLike
from tensorgrad.tensor import Tensor


class Linear(Module):
    """`x @ weight.T + bias` on the last axis.

    Args:
        in_features: size of the input's last axis.
        out_features: size of the result's last axis.
        bias: whether there is one.

    Weight `[out, in]` and bias start uniform within `1 / sqrt(in_features)`.

    >>> from tensorgrad import nn
    >>> nn.Linear(3, 4)
    Linear(3 -> 4): 16 parameters  weight f32[4, 3], bias f32[4]
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: DType = f32) -> None:
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(np.zeros((out_features, in_features), dtype.numpy))
        self.bias = Parameter(np.zeros(out_features, dtype.numpy)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the initial values anew."""
        bound = 1 / math.sqrt(self.in_features) if self.in_features else 0.0
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, x: TensorLike) -> Tensor:
        return ops.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{self.in_features} -> {self.out_features}"


class Embedding(Module):
    """Rows of a table at integer indices: `[...]` becomes `[..., embedding_dim]`.

    Args:
        num_embeddings: rows.
        embedding_dim: size of a row.
        padding_idx: a row that starts at zero and receives no gradient.

    The table starts normal, mean 0 and deviation 1. An index outside it gives NaN, which
    makes the loss NaN, which leaves the weights as they are: on the GPU there is nobody to
    raise an error.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, dtype: DType = f32
    ) -> None:
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ShapeError(f"Embedding: padding_idx {padding_idx} is outside the {num_embeddings} rows")
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.weight = Parameter(np.zeros((num_embeddings, embedding_dim), dtype.numpy))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the initial values anew."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight.data[self.padding_idx] = 0

    def forward(self, indices: TensorLike) -> Tensor:
        return ops.embedding(self.weight, ops.tensor(indices), self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class LayerNorm(Module):
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
        self.normalized_shape = (
            (normalized_shape,) if isinstance(normalized_shape, int) else tuple(map(int, normalized_shape))
        )
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.weight = Parameter(np.ones(self.normalized_shape, dtype.numpy)) if elementwise_affine else None
        has_bias = elementwise_affine and bias
        self.bias = Parameter(np.zeros(self.normalized_shape, dtype.numpy)) if has_bias else None

    def reset_parameters(self) -> None:
        """Weight to ones, bias to zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, x: TensorLike) -> Tensor:
        return ops.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{', '.join(map(str, self.normalized_shape))}, eps={self.eps:g}"


class Dropout(Module):
    """Zeroes elements with probability `p` in training, and scales the others by `1 / (1 - p)`.

    Args:
        p: the probability.
    """

    def __init__(self, p: float = 0.5) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"Dropout: the probability must be from 0 to 1, got {p}")
        self.p = p

    def forward(self, x: TensorLike) -> Tensor:
        return ops.dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p:g}"


class Flatten(Module):
    """The axes from `start_dim` to `end_dim` made one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: TensorLike) -> Tensor:
        return ops.flatten(x, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"{self.start_dim}, {self.end_dim}"


class Identity(Module):
    """What it is given; arguments of its constructor are ignored."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    def forward(self, x: TensorLike) -> Tensor:
        return ops.tensor(x)
