"""Layers with parameters, and dropout: PyTorch's arguments, defaults, keys and initial distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from tensorgrad import ops
from tensorgrad.callsite import call_site
from tensorgrad.checks import SHARE, is_whole, require, require_number, require_sizes
from tensorgrad.dtypes import DType, f32
from tensorgrad.errors import InputError
from tensorgrad.nn import init
from tensorgrad.nn.module import Module
from tensorgrad.nn.parameter import Parameter, undrawn
from tensorgrad.ops.core import TensorLike
from tensorgrad.shape import fail
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
        require_sizes("Linear", in_features=in_features, out_features=out_features)
        self.in_features, self.out_features = in_features, out_features
        self.weight = undrawn((out_features, in_features), dtype)
        self.bias = undrawn((out_features,), dtype) if bias else None
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


class Bilinear(Module):
    """`bilinear`: `x1 @ weight[o] @ x2 + bias[o]` for each output o, on the last axes.

    Args:
        in1_features, in2_features: sizes of the inputs' last axes.
        out_features: size of the result's last axis.
        bias: whether there is one.

    Weight `[out, in1, in2]` and bias start uniform within `1 / sqrt(in1_features)`.
    """

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, dtype: DType = f32
    ) -> None:
        require_sizes("Bilinear", in1_features=in1_features, in2_features=in2_features, out_features=out_features)
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = undrawn((out_features, in1_features, in2_features), dtype)
        self.bias = undrawn((out_features,), dtype) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the initial values anew."""
        bound = 1 / math.sqrt(self.in1_features) if self.in1_features else 0.0
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: TensorLike, input2: TensorLike) -> Tensor:
        return ops.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{self.in1_features} x {self.in2_features} -> {self.out_features}"


class Embedding(Module):
    """Rows of a table at integer indices: `[...]` becomes `[..., embedding_dim]`.

    Args:
        num_embeddings: rows.
        embedding_dim: size of a row.
        padding_idx: a row that starts at zero and receives no gradient.
        max_norm, norm_type, scale_grad_by_freq: None, 2 and False; these are not offered.
        sparse: without effect: gradients are dense.

    The table starts normal, mean 0 and deviation 1. An index outside it gives NaN, which
    makes the loss NaN, which leaves the weights as they are: on the GPU there is nobody to
    raise an error.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        dtype: DType = f32,
    ) -> None:
        require_sizes("Embedding", num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        if max_norm is not None or scale_grad_by_freq:
            given = "max_norm" if max_norm is not None else "scale_grad_by_freq"
            raise InputError(
                f"Embedding: {given} is not offered; the optimizer's clip_norm bounds gradients", call_site()
            )
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if padding_idx is not None:
            require("Embedding", "padding_idx", padding_idx, is_whole(padding_idx), "a whole number")
            if not -num_embeddings <= padding_idx < num_embeddings:
                fail(f"Embedding: padding_idx {padding_idx} is outside the {num_embeddings} rows")
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.weight = undrawn((num_embeddings, embedding_dim), dtype)
        self.reset_parameters()

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, padding_idx: int | None = None) -> Embedding:
        """An embedding whose table is given, `[rows, size]`; frozen unless `freeze` is False.

        >>> from tensorgrad import nn
        >>> nn.Embedding.from_pretrained([[1.0, 2.0], [3.0, 4.0]])
        Embedding(2, 2): 4 parameters, 4 frozen  weight f32[2, 2] (frozen)
        """
        weight = Parameter(embeddings, requires_grad=not freeze)
        if weight.ndim != 2:
            fail(f"Embedding: a table has two axes, got {weight.type}", call_site())
        rows, size = weight.shape
        made = cls(rows, size, padding_idx, dtype=weight.dtype)
        made.weight = weight
        return made

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


class _Dropout(Module):
    _op: ClassVar[Callable[..., Tensor]]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        require_number(type(self).__name__, "p", p, SHARE)
        self.p = p

    def forward(self, x: TensorLike) -> Tensor:
        return self._op(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p:g}"


class Dropout(_Dropout):
    """Zeroes elements with probability `p` in training, and scales the others by `1 / (1 - p)`.

    Args:
        p: the probability.
        inplace: without effect.
    """

    _op = staticmethod(ops.dropout)


class Dropout1d(_Dropout):
    """`dropout1d`: of whole channels of `[N, C, L]`."""

    _op = staticmethod(ops.dropout1d)


class Dropout2d(_Dropout):
    """`dropout2d`: of whole channels of `[N, C, H, W]`."""

    _op = staticmethod(ops.dropout2d)


class AlphaDropout(_Dropout):
    """`alpha_dropout`: keeps mean 0 and variance 1, for networks of `SELU`."""

    _op = staticmethod(ops.alpha_dropout)


class Identity(Module):
    """What it is given; arguments of its constructor are ignored."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    def forward(self, x: TensorLike) -> Tensor:
        return ops.tensor(x)
