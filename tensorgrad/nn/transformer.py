"""Transformer layers: PyTorch's arguments, defaults and keys."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorgrad import ops
from tensorgrad.callsite import call_site
from tensorgrad.checks import require_whole
from tensorgrad.dtypes import DType, f32
from tensorgrad.errors import InputError
from tensorgrad.nn import init
from tensorgrad.nn.attention import MultiheadAttention
from tensorgrad.nn.containers import ModuleList
from tensorgrad.nn.layers import Dropout, Linear
from tensorgrad.nn.module import Module
from tensorgrad.nn.normalization import LayerNorm
from tensorgrad.ops.core import TensorLike
from tensorgrad.tensor import Tensor

Activation = str | Callable[[Tensor], Tensor]


class _Layer(Module):
    """What encoder and decoder layers share: `self_attn`, a feed-forward block, norms and dropouts by number."""

    _attentions: tuple[str, ...]
    self_attn: MultiheadAttention
    multihead_attn: MultiheadAttention

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = ops.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        dtype: DType = f32,
    ) -> None:
        known = activation in ("relu", "gelu") if isinstance(activation, str) else callable(activation)
        if not known or isinstance(activation, type):
            raise InputError(f"activation is 'relu', 'gelu' or a function, got {activation!r}", call_site())
        for name in self._attentions:
            attention = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype)
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype)
        self.norm_first = norm_first
        numbers = range(1, len(self._attentions) + 2)
        for n in numbers:
            setattr(self, f"norm{n}", LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype))
        for n in numbers:
            setattr(self, f"dropout{n}", Dropout(dropout))
        self.activation = getattr(ops, activation) if isinstance(activation, str) else activation

    def _residual(self, number: int, x: Tensor, part: Callable[[Tensor], Tensor]) -> Tensor:
        """`x + part(x)`, with the norm and the dropout of this number."""
        norm, dropout = getattr(self, f"norm{number}"), getattr(self, f"dropout{number}")
        return x + dropout(part(norm(x))) if self.norm_first else norm(x + dropout(part(x)))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def extra_repr(self) -> str:
        return "norm first" if self.norm_first else ""


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward block, each added to its input and normalized.

    Called with `src` `[S, N, E]`, a mask `[S, S]` and padding `[N, S]`, as `MultiheadAttention`.

    Args:
        d_model: E.
        nhead: heads of the attention.
        dim_feedforward: size of the block's hidden layer.
        dropout: in training, of the weights of attention, of the hidden layer and of both results.
        activation: `relu`, `gelu` or a function of tensors.
        layer_norm_eps: the norms' eps.
        batch_first: tensors are `[N, S, E]`.
        norm_first: normalize what goes into attention and block, not what comes out of the sums.
        bias: whether projections and norms have one.

    Source: Vaswani et al., Attention is all you need (2017).

    >>> from tensorgrad import nn
    >>> len(nn.TransformerEncoderLayer(8, 2, 16).state_dict())
    12
    """

    _attentions = ("self_attn",)

    def forward(
        self,
        src: TensorLike,
        src_mask: TensorLike | None = None,
        src_key_padding_mask: TensorLike | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        masks: dict[str, Any] = {"attn_mask": src_mask, "key_padding_mask": src_key_padding_mask}
        masks |= {"is_causal": is_causal, "need_weights": False}
        x = self._residual(1, ops.tensor(src), lambda x: self.self_attn(x, x, x, **masks)[0])
        return self._residual(2, x, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    """Self-attention of a target, attention from it to a memory, and a feed-forward block; arguments as the encoder's.

    Called with `tgt` `[L, N, E]` and `memory` `[S, N, E]`, and masks of both.
    """

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: TensorLike,
        memory: TensorLike,
        tgt_mask: TensorLike | None = None,
        memory_mask: TensorLike | None = None,
        tgt_key_padding_mask: TensorLike | None = None,
        memory_key_padding_mask: TensorLike | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        own: dict[str, Any] = {"attn_mask": tgt_mask, "key_padding_mask": tgt_key_padding_mask}
        own |= {"is_causal": tgt_is_causal, "need_weights": False}
        other: dict[str, Any] = {"attn_mask": memory_mask, "key_padding_mask": memory_key_padding_mask}
        other |= {"is_causal": memory_is_causal, "need_weights": False}
        memory = ops.tensor(memory)
        x = self._residual(1, ops.tensor(tgt), lambda x: self.self_attn(x, x, x, **own)[0])
        x = self._residual(2, x, lambda x: self.multihead_attn(x, memory, memory, **other)[0])
        return self._residual(3, x, self._feed_forward)


class _Stack(Module):
    """Copies of a layer, which start with the same values, and perhaps a norm after the last."""

    def __init__(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        require_whole(type(self).__name__, "num_layers", num_layers)
        self.layers = ModuleList(copy.deepcopy(layer) for _ in range(num_layers))
        self.num_layers, self.norm = num_layers, norm

    def _run(self, x: TensorLike, *args: Any) -> Tensor:
        x = ops.tensor(x)
        for layer in self.layers:
            x = layer(x, *args)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """`num_layers` copies of an encoder layer.

    Args:
        encoder_layer: what is copied, values and all.
        num_layers: copies.
        norm: after the last.
        enable_nested_tensor, mask_check: without effect; PyTorch has them for its nested tensors.
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    def forward(
        self,
        src: TensorLike,
        mask: TensorLike | None = None,
        src_key_padding_mask: TensorLike | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        return self._run(src, mask, src_key_padding_mask, bool(is_causal))


class TransformerDecoder(_Stack):
    """`num_layers` copies of a decoder layer; called as the layer.

    Args:
        decoder_layer: what is copied, values and all.
        num_layers: copies.
        norm: after the last.
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: TensorLike,
        memory: TensorLike,
        tgt_mask: TensorLike | None = None,
        memory_mask: TensorLike | None = None,
        tgt_key_padding_mask: TensorLike | None = None,
        memory_key_padding_mask: TensorLike | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        padding = tgt_key_padding_mask, memory_key_padding_mask
        memory = ops.tensor(memory)
        return self._run(tgt, memory, tgt_mask, memory_mask, *padding, bool(tgt_is_causal), memory_is_causal)


class Transformer(Module):
    """An encoder of a source, and a decoder of a target that attends to what it gives.

    Called with `src` `[S, N, E]` and `tgt` `[L, N, E]`, it returns `[L, N, E]`.

    Args:
        num_encoder_layers, num_decoder_layers: layers of each.
        custom_encoder, custom_decoder: modules to take instead.
        d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias: of the
            layers, as in `TransformerEncoderLayer`.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = ops.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        dtype: DType = f32,
    ) -> None:
        layer = d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias
        norms = [LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype) for _ in range(2)]
        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*layer, dtype=dtype), num_encoder_layers, norms[0]
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*layer, dtype=dtype), num_decoder_layers, norms[1]
        )
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: TensorLike,
        tgt: TensorLike,
        src_mask: TensorLike | None = None,
        tgt_mask: TensorLike | None = None,
        memory_mask: TensorLike | None = None,
        src_key_padding_mask: TensorLike | None = None,
        tgt_key_padding_mask: TensorLike | None = None,
        memory_key_padding_mask: TensorLike | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        padding = tgt_key_padding_mask, memory_key_padding_mask
        return self.decoder(tgt, memory, tgt_mask, memory_mask, *padding, tgt_is_causal, memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz: int) -> np.ndarray:
        """`[sz, sz]` to add to scores: -inf where the key comes after the query, else 0."""
        return np.triu(np.full((sz, sz), -np.inf, np.float32), 1)
