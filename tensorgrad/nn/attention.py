"""Attention with several heads: PyTorch's arguments, defaults, keys and initial distributions."""

from __future__ import annotations

import math
from typing import Any

from tensorgrad import ops
from tensorgrad.callsite import call_site
from tensorgrad.checks import require_sizes
from tensorgrad.dtypes import DType, bool_, f32
from tensorgrad.errors import InputError
from tensorgrad.nn import init
from tensorgrad.nn.layers import Linear
from tensorgrad.nn.module import Module
from tensorgrad.nn.parameter import filled, undrawn
from tensorgrad.ops.core import TensorLike
from tensorgrad.shape import fail
from tensorgrad.tensor import Tensor


class MultiheadAttention(Module):
    """Queries look keys up, several heads side by side: `softmax(q @ k.mT / sqrt(E / heads)) @ v`, then `out_proj`.

    Called with query `[L, N, E]`, key `[S, N, kdim]` and value `[S, N, vdim]` (or without N, or with N first), it
    returns the output, `[L, N, E]`, and the weights, `[N, L, S]`. Weights that nobody uses cost nothing.

    Args:
        embed_dim: E.
        num_heads: heads, which divide E.
        dropout: of the weights, in training; the weights that are returned are those before.
        bias: whether the projections have one.
        add_bias_kv, add_zero_attn: False; keys beyond those given are not offered.
        kdim, vdim: sizes of key and value, E by default.
        batch_first: tensors are `[N, L, E]`.

    >>> from tensorgrad import nn
    >>> nn.MultiheadAttention(8, 2)
    MultiheadAttention(8, heads=2): 288 parameters  in_proj_weight f32[24, 8], in_proj_bias f32[24]
      out_proj: Linear(8 -> 8)  weight f32[8, 8], bias f32[8]  (72)
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        dtype: DType = f32,
    ) -> None:
        if add_bias_kv or add_zero_attn:
            given = "add_bias_kv" if add_bias_kv else "add_zero_attn"
            raise InputError(f"MultiheadAttention: {given} is not offered; concatenate to key and value", call_site())
        require_sizes("MultiheadAttention", embed_dim=embed_dim, num_heads=num_heads)
        if num_heads < 1 or embed_dim % num_heads:
            raise InputError(f"MultiheadAttention: {num_heads} heads do not divide embed_dim {embed_dim}", call_site())
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        one = self.kdim == self.vdim == embed_dim
        sizes = {"q": embed_dim, "k": self.kdim, "v": self.vdim}
        self.in_proj_weight = undrawn((3 * embed_dim, embed_dim), dtype) if one else None
        for name, size in sizes.items():
            own = None if one else undrawn((embed_dim, size), dtype)
            setattr(self, f"{name}_proj_weight", own)
        self.in_proj_bias = filled(0, 3 * embed_dim, dtype) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the initial values of the projections of query, key and value anew; biases are zeros."""
        for name, parameter in self.named_parameters(recurse=False):
            if name != "in_proj_bias":
                init.xavier_uniform_(parameter)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)

    def forward(
        self,
        query: TensorLike,
        key: TensorLike,
        value: TensorLike,
        key_padding_mask: TensorLike | None = None,
        need_weights: bool = True,
        attn_mask: TensorLike | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The output, and the weights (None unless `need_weights`).

        Masks are bools, True where a key is *hidden*, or floats that are added to the scores. (In
        `scaled_dot_product_attention` True is what is seen; both are as in PyTorch.)

        Args:
            key_padding_mask: `[N, S]`, or `[S]` without N.
            attn_mask: `[L, S]`, or `[N * heads, L, S]`.
            average_attn_weights: False returns each head's weights, `[N, heads, L, S]`.
            is_causal: query i sees the keys up to i. `attn_mask`, if it is given too, has to say just this.
        """
        projected = self._projected(query, key, value)
        batched = projected[0].ndim == 3
        q, k, v = (self._by_head(x, batched) for x in projected)
        causal = is_causal and key_padding_mask is None
        mask = None if causal else self._mask(q, k, key_padding_mask, attn_mask, is_causal)
        dropout = self.dropout if self.training else 0.0
        out = ops.scaled_dot_product_attention(q, k, v, mask, dropout, causal)
        out = ops.permute(out, (0, 2, 1, 3) if self.batch_first or not batched else (2, 0, 1, 3))
        out = self.out_proj(ops.reshape(out, *projected[0].shape))
        if not need_weights:
            return out, None
        if causal:
            mask = ops.logical_not(_hidden(q, k))
        weights = _weights(q, k, mask)
        weights = ops.mean(weights, 1) if average_attn_weights else weights
        return out, weights if batched else weights[0]

    def _projected(self, query: TensorLike, key: TensorLike, value: TensorLike) -> list[Tensor]:
        """Query, key and value by their projections; those that are one tensor by one product."""
        given = [query, key, value]
        for name, x, size in zip(("query", "key", "value"), given, (self.embed_dim, self.kdim, self.vdim), strict=True):
            x = ops.tensor(x)
            if x.ndim not in (2, 3) or x.shape[-1] != size:
                fail(f"MultiheadAttention: {name} needs 2 or 3 axes, the last of size {size}, got {x.type}")
        n, bias = self.embed_dim, self.in_proj_bias
        if self.in_proj_weight is None:
            weights: list[Tensor] = [getattr(self, f"{name}_proj_weight") for name in "qkv"]
            biases = [None if bias is None else bias[n * i : n * (i + 1)] for i in range(3)]
            return [ops.linear(x, w, b) for x, w, b in zip(given, weights, biases, strict=True)]
        found: list[Tensor] = []
        while len(found) < 3:
            at = len(found)
            same = next((i for i in range(at, 3) if given[i] is not given[at]), 3)
            rows = slice(n * at, n * same)
            joint = ops.linear(given[at], self.in_proj_weight[rows], None if bias is None else bias[rows])
            found += ops.split(joint, n, -1)
        return found

    def _by_head(self, x: Tensor, batched: bool) -> Tensor:
        """`[N, heads, length, size]`."""
        x = x if batched else ops.expand_dims(x, 0)
        split = ops.reshape(x, *x.shape[:2], self.num_heads, self.embed_dim // self.num_heads)
        return ops.permute(split, (0, 2, 1, 3) if self.batch_first or not batched else (1, 2, 0, 3))

    def _mask(
        self, q: Tensor, k: Tensor, padding: TensorLike | None, attn_mask: TensorLike | None, is_causal: bool
    ) -> Tensor | None:
        """The masks together, as `scaled_dot_product_attention` takes them."""
        batch, count, length, _ = q.shape
        keys = k.shape[2]
        masks: list[Tensor] = []
        if is_causal and attn_mask is None:
            masks.append(_hidden(q, k))
        if attn_mask is not None:
            mask = ops.tensor(attn_mask)
            self._check_mask("attn_mask", mask, ((length, keys), (batch * count, length, keys)))
            masks.append(mask if mask.ndim == 2 else ops.reshape(mask, batch, count, length, keys))
        if padding is not None:
            mask = ops.tensor(padding)
            self._check_mask("key_padding_mask", mask, ((batch, keys), *([(keys,)] if batch == 1 else [])))
            masks.append(ops.reshape(mask, batch, 1, 1, keys))
        if not masks:
            return None
        if all(mask.dtype is bool_ for mask in masks):
            return ops.logical_not(masks[0] if len(masks) == 1 else masks[0] | masks[1])
        added: Any = sum(ops.where(m, -math.inf, 0.0) if m.dtype is bool_ else m for m in masks)
        return ops.broadcast_to(added, batch, count, length, keys)

    def _check_mask(self, name: str, mask: Tensor, shapes: tuple[tuple[int, ...], ...]) -> None:
        if mask.shape not in shapes:
            fail(f"MultiheadAttention: {name} is {' or '.join(str(list(s)) for s in shapes)} here, got {mask.type}")
        if mask.dtype is not bool_ and not mask.dtype.is_float:
            raise InputError(f"MultiheadAttention: {name} is of bools or floats, got {mask.type}", call_site())

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, heads={self.num_heads}"


def _hidden(q: Tensor, k: Tensor) -> Tensor:
    """`[L, S]`, True where the key comes after the query."""
    shape = q.shape[2], k.shape[2]
    return ops.greater(ops.iota(shape, 1), ops.iota(shape, 0))


def _weights(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = ops.where(mask, scores, -math.inf) if mask.dtype is bool_ else scores + mask
    return ops.softmax(scores)
