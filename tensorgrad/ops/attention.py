"""Scaled dot-product attention, `softmax(q @ k.mT * scale + bias) @ v`, where it pays without a matrix of all scores.

The primitives take operands by head, `[batch, heads, length, size]`, and give results by position,
`[batch, length, heads, size]`: heads are usually split from an activation and merged again, and then
neither is a copy. A GPU's kernels keep one block of scores at a time (`wgsl.attention`); elsewhere, for what they
cannot do, and where they are slower (`passes.expand`), attention is the composite of matrix products and a softmax.

Source: Dao, Fu, Ermon, Rudra and Ré, FlashAttention (2022), after Milakov and Gimelshein, Online
normalizer calculation for softmax (2018).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorgrad.callsite import call_site
from tensorgrad.dtypes import bool_, f32
from tensorgrad.errors import DtypeError, InputError
from tensorgrad.graph import TensorType
from tensorgrad.ops import elementwise as ew
from tensorgrad.ops.composite import finite_max, logsumexp
from tensorgrad.ops.core import TensorLike, broadcast_to, cast, meet, tensor
from tensorgrad.ops.custom import custom_grad
from tensorgrad.ops.indexing import iota
from tensorgrad.ops.joining import stack
from tensorgrad.ops.random import dropout
from tensorgrad.ops.reduce import require_float
from tensorgrad.ops.reduce import sum as sum_
from tensorgrad.ops.views import expand_dims, permute, reshape, swapaxes
from tensorgrad.primitive import primitive
from tensorgrad.shape import broadcast_trailing, fail, show_shape
from tensorgrad.tensor import Tensor
from tensorgrad.trace import bind

LARGEST_HEAD = 128
"""Head sizes that the kernels have registers for; they are multiples of 4, so that elements move in fours."""

_BY_POSITION = (0, 2, 1, 3)
"""The permutation between operands by head and results by position, its own inverse."""


# The primitives ---------------------------------------------------------------------------


def _attention_shape(
    q: TensorType, k: TensorType, v: TensorType, *bias: TensorType, scale: float, causal: bool
) -> tuple[TensorType, ...]:
    (batch, heads, length, _), width = q.shape, v.shape[-1]
    return TensorType((batch, length, heads, width), q.dtype), TensorType((batch, heads, length), q.dtype)


def _vjp_shape(
    g: TensorType,
    q: TensorType,
    k: TensorType,
    v: TensorType,
    stats: TensorType,
    *bias: TensorType,
    scale: float,
    causal: bool,
) -> tuple[TensorType, ...]:
    return tuple(TensorType(tuple(x.shape[i] for i in _BY_POSITION), x.dtype) for x in (q, k, v))


def _scores(xp: Any, q: Any, k: Any, bias: Sequence[Any], scale: float, causal: bool) -> Any:
    scores = xp.matmul(q, xp.swapaxes(k, -1, -2)) * scale
    for b in bias:
        scores = scores + b
    if causal:
        rows, columns = scores.shape[-2:]
        scores = xp.where(xp.arange(columns) <= xp.arange(rows)[:, None], scores, xp.full_like(scores, -math.inf))
    return scores


def _finite(xp: Any, top: Any) -> Any:
    """A shift that changes no result: of a row of -inf it is 0."""
    return xp.where(top == -math.inf, xp.zeros_like(top), top)


def _attention_eval(xp: Any, q: Any, k: Any, v: Any, *bias: Any, scale: float, causal: bool) -> Any:
    scores = _scores(xp, q, k, bias, scale, causal)
    shift = _finite(xp, xp.max(scores, axis=-1, keepdims=True))
    weights = xp.exp(scores - shift)
    total = xp.sum(weights, axis=-1, keepdims=True)
    out = xp.matmul(weights, v) / xp.where(total == 0, xp.ones_like(total), total)
    return xp.permute_dims(out, _BY_POSITION), (xp.log(total) + shift)[..., 0]


def _vjp_eval(xp: Any, g: Any, q: Any, k: Any, v: Any, stats: Any, *bias: Any, scale: float, causal: bool) -> Any:
    weights = xp.exp(_scores(xp, q, k, bias, scale, causal) - _finite(xp, stats[..., :1]))
    by_score = weights * (xp.matmul(g, xp.swapaxes(v, -1, -2)) - stats[..., 1:])
    dq = xp.matmul(by_score, k) * scale
    dk = xp.matmul(xp.swapaxes(by_score, -1, -2), q) * scale
    dv = xp.matmul(xp.swapaxes(weights, -1, -2), g)
    return tuple(xp.permute_dims(x, _BY_POSITION) for x in (dq, dk, dv))


def _attention_grad(
    g: Sequence[Tensor],
    out: Sequence[Tensor],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *bias: Tensor,
    scale: float,
    causal: bool,
) -> tuple[Tensor, ...]:
    """From the gradient of the output; the log-sum-exp is nobody's but the gradient's."""
    by_head = permute(g[0], _BY_POSITION)
    delta = swapaxes(sum_(g[0] * out[0], -1), 1, 2)
    stats = stack([out[1], delta], -1)
    found = bind(attention_vjp_p, by_head, q, k, v, stats, *bias, scale=scale, causal=causal)
    grads = tuple(permute(x, _BY_POSITION) for x in found)
    if bias:
        # a matrix of all scores; it stays only where somebody wants the bias's gradient
        weights = _weights(_all_scores(q, k, bias, scale, causal))
        grads += _weights_grad(by_head @ v.mT, weights, weights)
    return grads


def _vjp_grad(
    g: Sequence[Tensor],
    out: Sequence[Tensor],
    *operands: Tensor,
    scale: float,
    causal: bool,
) -> tuple[Tensor | None, ...]:
    """By differentiating the composite's gradient: its sums over scores have no kernel of their own."""
    from tensorgrad.autodiff import connected_grads  # which reads the operations: no cycle at import

    # copies by name, so that what one operand owes to another does not count here
    gout, q, k, v, _, *bias = (custom_grad(x, lambda g, out, x: (g,), x) for x in operands)
    wrt = (gout, q, k, v, *bias)
    found = _composite_vjp(gout, q, k, v, bias, scale, causal)
    value = sum(sum_(a * b) for a, b in zip(found, g, strict=True))
    assert isinstance(value, Tensor)
    dg, dq, dk, dv, *dbias = connected_grads(value, wrt)
    return (dg, dq, dk, dv, None, *dbias)


attention_p = primitive(
    "attention",
    shape=_attention_shape,
    eval=_attention_eval,
    grad=_attention_grad,
)
"""Operands by head: q `[B, H, L, E]`, k `[B, H, S, E]`, v `[B, H, S, Ev]` and perhaps a bias
`[B, H, L, S]` that is added to the scores; no size is 0. Results: the output by position
`[B, L, H, Ev]`, and the logarithm of the sum of each query's exp(score), `[B, H, L]`."""

attention_vjp_p = primitive(
    "attention_vjp",
    shape=_vjp_shape,
    eval=_vjp_eval,
    grad=_vjp_grad,
)
"""Operands: the gradient of the output by head; q, k, v; `[B, H, L, 2]` of each query's log-sum-exp and its sum of
output times gradient; perhaps the bias. Results: the gradients of q, k and v by position."""


# The composite ------------------------------------------------------------------------------


def _all_scores(q: Tensor, k: Tensor, bias: Sequence[Tensor], scale: float, causal: bool) -> Tensor:
    scores = (q @ k.mT) * scale
    for b in bias:
        scores = scores + b
    if causal:
        shape = scores.shape[-2:]
        scores = ew.where(ew.less_equal(iota(shape, 1), iota(shape, 0)), scores, -math.inf)
    return scores


def _weights(scores: Tensor) -> Tensor:
    """Softmax over the keys, with zeros for a query that may attend to none."""
    weights = ew.exp(scores - finite_max(scores, -1))
    total = sum_(weights, -1, keepdims=True)
    return custom_grad(weights / ew.where(ew.equal(total, 0.0), 1.0, total), _weights_grad, scores)


def _weights_grad(g: Tensor, out: Tensor, scores: Tensor) -> tuple[Tensor]:
    return (out * (g - sum_(g * out, -1, keepdims=True)),)


def composite(
    q: Tensor, k: Tensor, v: Tensor, bias: Sequence[Tensor], scale: float, causal: bool, dropout_p: float = 0.0
) -> Tensor:
    """Attention by head, of matrix products and a softmax."""
    weights = _weights(_all_scores(q, k, bias, scale, causal))
    return dropout(weights, dropout_p, training=True) @ v


def _composite_vjp(
    g: Tensor, q: Tensor, k: Tensor, v: Tensor, bias: Sequence[Tensor], scale: float, causal: bool
) -> tuple[Tensor, ...]:
    """The gradients of q, k and v by position, as `attention_vjp` gives them."""
    weights = _weights(_all_scores(q, k, bias, scale, causal))
    (by_score,) = _weights_grad(g @ v.mT, weights, weights)
    found = (by_score @ k) * scale, (by_score.mT @ q) * scale, weights.mT @ g
    return tuple(permute(x, _BY_POSITION) for x in found)


def expanded(op: str, operands: Sequence[Tensor], scale: float, causal: bool) -> tuple[Tensor, ...]:
    """What the primitive `op` computes, as a composite: for devices on which its kernels do not pay."""
    if op == "attention_vjp":
        g, q, k, v, _, *bias = operands
        return _composite_vjp(g, q, k, v, bias, scale, causal)
    q, k, v, *bias = operands
    scores = _all_scores(q, k, bias, scale, causal)
    return permute(_weights(scores) @ v, _BY_POSITION), logsumexp(scores)


# The public function ------------------------------------------------------------------------


def scaled_dot_product_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    attn_mask: TensorLike | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`softmax(query @ key.mT * scale + mask) @ value`, PyTorch's function of that name.

    On a GPU no `[L, S]` matrix is stored, neither here nor in the gradient, where the head sizes E and Ev are
    multiples of 4 up to 128, all is f32, there is no dropout, and all these matrices together would take more than
    128 MiB, or at most 4 (with 16 queries and keys or more). Otherwise matrix products are faster, which store them.

    Args:
        query: `[..., L, E]`.
        key: `[..., S, E]`; the leading axes of all three broadcast.
        value: `[..., S, Ev]`.
        attn_mask: broadcasts to `[..., L, S]`: bools, True where a query attends to a key, or floats that are
            added to the scores. A query that attends to no key gives zeros, and so do its gradients.
        dropout_p: the probability with which a weight is zeroed (the others are scaled up). As in PyTorch it
            holds whenever it is given: pass 0.0 for evaluation.
        is_causal: query i attends to the keys up to i, counted from the first key also where L != S.
        scale: of the scores; 1 / sqrt(E) by default.
        enable_gqa: the axis before L may have fewer heads in key and value, of which each serves as many
            consecutive heads of the query.

    Returns:
        `[..., L, Ev]`.

    Raises:
        ShapeError: sizes that do not fit.
        DtypeError: operands that are no floats, or a mask of integers.
        InputError: both a mask and `is_causal`.

    Numbers at places that a mask or `is_causal` hides should be finite: whether a NaN there shows in a result
    depends on the device.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.arange(8, dtype=np.float32).reshape(1, 2, 4)
    >>> tg.sync(tg.jit(lambda x: tg.scaled_dot_product_attention(x, x, x, is_causal=True), device="numpy")(x))[0, 0]
    array([0., 1., 2., 3.], dtype=float32)
    """
    _, (q, k, v) = meet(query, key, value)
    require_float("scaled_dot_product_attention", q)
    if enable_gqa:
        k, v = _repeat_heads(q, k), _repeat_heads(q, v)
    lead = _check(q, k, v)
    if attn_mask is not None and is_causal:
        raise InputError("scaled_dot_product_attention: give attn_mask or is_causal, not both", call_site())
    if not 0 <= dropout_p <= 1:
        fail(f"scaled_dot_product_attention: the probability of dropout must be from 0 to 1, got {dropout_p}")
    length, size, keys, width = q.shape[-2], q.shape[-1], k.shape[-2], v.shape[-1]
    bias = () if attn_mask is None else (_bias(tensor(attn_mask), q, (*lead, length, keys)),)
    scale = 1 / math.sqrt(max(size, 1)) if scale is None else float(scale)
    if keys == 0:
        return broadcast_to(sum_(q, -1, keepdims=True) * 0.0, *lead, length, width)
    q, k, v, *bias = (broadcast_to(x, *lead, *x.shape[-2:]) for x in (q, k, v, *bias))
    sizes = (size, width)
    fits = all(n % 4 == 0 and 0 < n <= LARGEST_HEAD for n in sizes) and q.dtype is f32 and dropout_p == 0
    if not fits or 0 in (*lead, length):
        return composite(q, k, v, bias, scale, is_causal, dropout_p)
    heads = lead[-1] if lead else 1
    q, k, v, *bias = (reshape(x, -1, heads, *x.shape[-2:]) for x in (q, k, v, *bias))
    out, _ = bind(attention_p, q, k, v, *bias, scale=scale, causal=is_causal)
    return reshape(permute(out, _BY_POSITION), *lead, length, width)


def _repeat_heads(q: Tensor, x: Tensor) -> Tensor:
    """Key or value with each head repeated for the query heads that share it."""
    if q.ndim < 3 or x.ndim < 3 or x.shape[-3] == 0 or q.shape[-3] % x.shape[-3]:
        fail(
            f"scaled_dot_product_attention: enable_gqa needs query heads (axis -3) that are a multiple of those of key "
            f"and value, got {show_shape(q.shape)} and {show_shape(x.shape)}"
        )
    *lead, heads, length, width = x.shape
    times = q.shape[-3] // heads
    spread = broadcast_to(expand_dims(x, -3), *lead, heads, times, length, width)
    return reshape(spread, *lead, heads * times, length, width)


def _check(q: Tensor, k: Tensor, v: Tensor) -> tuple[int, ...]:
    """The common leading axes."""
    shapes = ", ".join(
        f"{name} {show_shape(x.shape)}" for name, x in zip(("query", "key", "value"), (q, k, v), strict=True)
    )
    if min(q.ndim, k.ndim, v.ndim) < 2:
        fail(f"scaled_dot_product_attention: needs operands with at least two axes, got {shapes}")
    if q.shape[-1] != k.shape[-1]:
        fail(f"scaled_dot_product_attention: the last axes of query and key differ: {shapes}")
    if k.shape[-2] != v.shape[-2]:
        fail(f"scaled_dot_product_attention: key and value differ in length (axis -2): {shapes}")
    lead = broadcast_trailing(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    if lead is None:
        fail(f"scaled_dot_product_attention: the leading axes do not broadcast: {shapes}")
    return lead


def _bias(mask: Tensor, q: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The mask as numbers that are added to scores of `shape`."""
    if mask.dtype is not bool_ and not mask.dtype.is_float:
        raise DtypeError(f"scaled_dot_product_attention: attn_mask is of bools or floats, got {mask.type}", call_site())
    if broadcast_trailing(mask.shape, shape) != shape:
        fail(
            f"scaled_dot_product_attention: attn_mask {show_shape(mask.shape)} does not broadcast to the scores "
            f"{show_shape(shape)}"
        )
    bias = ew.where(mask, 0.0, -math.inf) if mask.dtype is bool_ else mask
    return broadcast_to(cast(bias, q.dtype), *shape)
