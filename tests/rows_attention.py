"""Rows of attention and of its gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from rows_common import RNG
from table import Case, Row, Tolerance, bools, listed, normal
from tensorgrad import ops
from tensorgrad.autodiff import append_grad
from tensorgrad.tensor import Tensor

WEIGHTED = Tolerance(6e-6, 4e-6, "float32 sums of scores and weights, and an exponential of each score")


def attend(q: Any, k: Any, v: Any, mask: Any = None, causal: bool = False, scale: float | None = None) -> Any:
    """Attention in NumPy, all scores at once."""
    scores = q @ np.swapaxes(k, -1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if np.asarray(mask).dtype == bool else scores + mask
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e30))
    return weights @ v / np.maximum(weights.sum(-1, keepdims=True), 1e-300)


def by_head(x: Any) -> Any:
    """`[batch, length, heads, size]` as heads are split."""
    return x.transpose(0, 2, 1, 3)


def parts(x: Any) -> Any:
    """Three heads' q, k and v out of one activation `[batch, length, 3 * heads * size]`."""
    *lead, width = x.shape
    x = x.reshape(*lead, 3, 2, width // 6)
    return (by_head(x[:, :, n]) for n in range(3))


def case(name: str, shapes: tuple[tuple[int, ...], ...], *, mask: Any = None, view: Any = None, **options: Any) -> Case:
    """A call, and the same in NumPy; `view` is applied to q, k and v."""
    see: Callable[[Any], Any] = view or (lambda x: x)
    given = () if mask is None else (mask,)
    floats = mask is not None and mask.dtype != bool
    return Case(
        name,
        lambda q, k, v, *m: ops.scaled_dot_product_attention(see(q), see(k), see(v), *m, **options),
        (*(normal(RNG, shape) for shape in shapes), *given),
        lambda q, k, v, *m: attend(
            see(q), see(k), see(v), *m, causal=options.get("is_causal", False), scale=options.get("scale")
        ),
        (0, 1, 2, *((3,) if floats else ())),
        True,
    )


def same(*shape: int) -> tuple[tuple[int, ...], ...]:
    return (shape,) * 3


_SEEN = bools(RNG, (4, 5))
_SEEN[2] = False
_MIXED = np.where(bools(RNG, (2, 1, 1, 5)), np.float32(-np.inf), normal(RNG, (2, 1, 1, 5)))
_MIXED[0, 0, 0] = -np.inf

PLAIN = listed(
    "attention",
    WEIGHTED,
    case("two axes", same(5, 4)),
    case("heads", ((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 4))),
    case("split heads", ((2, 5, 3, 4), (2, 7, 3, 4), (2, 7, 3, 8)), view=by_head, is_causal=True),
    case("causal, few keys", ((2, 7, 4), (2, 3, 4), (2, 3, 4)), is_causal=True),
    case("one query", ((3, 1, 8), (3, 6, 8), (3, 6, 8)), scale=0.7),
    case("shared keys", ((2, 3, 4, 4), (3, 5, 4), (1, 1, 5, 4))),
    Case(
        "one activation",
        lambda x: ops.scaled_dot_product_attention(*parts(x), is_causal=True),
        (normal(RNG, (2, 5, 24)),),
        lambda x: attend(*parts(x), causal=True),
        (0,),
        True,
    ),
)
MASKED = listed(
    "attention",
    WEIGHTED,
    case("masked", ((2, 3, 4, 4), (2, 3, 5, 4), (2, 3, 5, 4)), mask=_SEEN),
    case("with a bias", ((3, 4, 4), (3, 5, 4), (3, 5, 8)), mask=normal(RNG, (3, 4, 5))),
    case("with a bias of each key", ((2, 3, 4, 4), (2, 3, 5, 4), (2, 3, 5, 4)), mask=_MIXED),
)
MASKED = Row(
    "attention",
    WEIGHTED,
    # of a bias of -inf there is no finite difference
    tuple(replace(c, grads=(0, 1, 2)) if "key" in c.name else c for c in MASKED.cases),
)


def _gradients(*operands: Tensor, causal: bool) -> Tensor:
    """The gradients of q, k and v side by side."""
    *wrt, g = operands
    q, k, v = wrt
    y = ops.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return ops.concat(append_grad(y, wrt, g), -1)


def _gradients_formula(q: Any, k: Any, v: Any, g: Any, causal: bool = False) -> Any:
    scale = 1 / math.sqrt(q.shape[-1])
    scores = q @ np.swapaxes(k, -1, -2) * scale
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    by_weight = g @ np.swapaxes(v, -1, -2)
    d = p * (by_weight - (p * by_weight).sum(-1, keepdims=True)) * scale
    return np.concatenate([d @ k, np.swapaxes(d, -1, -2) @ q, np.swapaxes(p, -1, -2) @ g], -1)


GRADIENT = listed(
    "attention_vjp",
    WEIGHTED,
    *(
        Case(
            name,
            lambda q, k, v, g, causal=causal: _gradients(q, k, v, g, causal=causal),
            tuple(normal(RNG, (2, 5, n)) for n in (4, 4, width, width)),
            lambda q, k, v, g, causal=causal: _gradients_formula(q, k, v, g, causal),
            (0, 1, 2, 3),
            True,
        )
        for name, width, causal in (("all keys", 8, False), ("causal", 4, True))
    ),
)

ATTENTION = [PLAIN, MASKED, GRADIENT]
