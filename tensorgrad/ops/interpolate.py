"""Images of another size: interpolation, and elements moved between channels and places."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tensorgrad.ops.arrange import repeat_interleave
from tensorgrad.ops.core import TensorLike, in_f32, tensor
from tensorgrad.ops.reduce import require_float
from tensorgrad.ops.resample import Taps, parts, resampled, taps
from tensorgrad.ops.views import cut, permute, reshape
from tensorgrad.ops.windows import numbers
from tensorgrad.shape import fail, show_shape
from tensorgrad.tensor import Tensor

_RANKS = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}
_MODES = ("nearest", "nearest-exact", "area", *_RANKS)
_CUBIC = -0.75
"""The slope of the cubic kernel at distance 1, PyTorch's."""


@in_f32
def interpolate(
    input: TensorLike,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Images of another size, as PyTorch's.

    Args:
        input: `[N, C, L]`, `[N, C, H, W]` or `[N, C, D, H, W]`.
        size: of the result's axes, a number or one for each.
        scale_factor: instead of a size, what each axis is multiplied by (and rounded down).
        mode: `"nearest"`, `"nearest-exact"` (the nearest to an element's middle), `"linear"` of one axis, `"bilinear"`
            and `"bicubic"` of two, `"trilinear"` of three, or `"area"`, the mean of what an element covers.
        align_corners: whether the middles of the corner elements, not their corners, stay where they are; for linear
            and cubic modes.
        recompute_scale_factor: use the ratio of the sizes in place of `scale_factor`.
        antialias: not supported; for smaller images use `mode="area"`.

    Whole factors of `"nearest"` are views. Other places are known while tracing, so each mode is one kernel.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> x = np.array([[[0.0, 1.0]]], np.float32)
    >>> tg.sync(tg.jit(lambda x: tg.interpolate(x, 4, mode="linear"), device="numpy")(x))
    array([[[0.  , 0.25, 0.75, 1.  ]]], dtype=float32)
    """
    x = tensor(input)
    sizes, scales = _sizes(x, size, scale_factor, bool(recompute_scale_factor))
    rank = len(sizes)
    if mode not in _MODES or _RANKS.get(mode, rank) != rank:
        fail(f"interpolate: mode {mode!r} of {x.type} with {rank} axes of places; modes are {', '.join(_MODES)}")
    if align_corners is not None and mode not in _RANKS:
        fail(f"interpolate: mode {mode!r} takes no align_corners")
    if antialias:
        fail("interpolate: antialias=True is not supported; use mode='area' for smaller images")
    axes = list(zip(x.shape[2:], sizes, scales, strict=True))
    if mode in ("nearest", "nearest-exact"):
        return _nearest(x, axes, exact=mode == "nearest-exact")
    x = require_float("interpolate", x)
    if mode == "area":
        return resampled(x, tuple(parts(n, m) for n, m, _ in axes))
    corners = bool(align_corners)
    kind = _cubic if mode == "bicubic" else _linear
    return resampled(x, tuple(kind(n, m, _middles(n, m, scale, corners)) for n, m, scale in axes))


@in_f32
def upsample_nearest(
    input: TensorLike, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """`interpolate` with the nearest element."""
    return interpolate(input, size, scale_factor)


@in_f32
def upsample_bilinear(
    input: TensorLike, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """`interpolate` with `mode="bilinear"` and corners that stay."""
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)


def nearest_upsample2d(x: TensorLike, scale_factor: float | Sequence[float]) -> Tensor:
    """Images `[N, C, H, W]` made larger with the nearest element: `interpolate`, the factor alone.

    >>> import tensorgrad as tg
    >>> def larger():
    ...     return tg.nearest_upsample2d(tg.tensor_input("x", (8, 3, 5, 4)), 2)
    >>> tg.trace(larger).type(tg.trace(larger).outputs[0])
    f32[8, 3, 10, 8]
    """
    x = tensor(x)
    if x.ndim != 4:
        fail(f"nearest_upsample2d: needs images [N, C, H, W], got {x.type}")
    return interpolate(x, scale_factor=scale_factor)


def _sizes(
    x: Tensor, size: int | Sequence[int] | None, factor: float | Sequence[float] | None, recompute: bool
) -> tuple[tuple[int, ...], list[float]]:
    """The result's sizes, and how far apart its elements are in the input."""
    rank = x.ndim - 2
    if not 1 <= rank <= 3:
        fail(f"interpolate: expected [N, C, ...] with one to three axes of places, got {x.type}")
    if (size is None) == (factor is None):
        fail("interpolate: give size or scale_factor, one of them")
    if factor is None:
        assert size is not None
        found = numbers("interpolate", "size", size, rank)
        factors = None
    else:
        factors = [float(f) for f in (factor if isinstance(factor, Sequence) else [factor] * rank)]
        if len(factors) != rank or not all(f > 0 and math.isfinite(f) for f in factors):
            fail(f"interpolate: scale_factor is a positive number, or {rank} of them, got {factor}")
        found = tuple(math.floor(n * f) for n, f in zip(x.shape[2:], factors, strict=True))
    if min(found) < 1 or 0 in x.shape[2:]:
        fail(f"interpolate: from {show_shape(x.shape)} to places {list(found)} there is nothing to interpolate")
    if factors is None or recompute:
        return found, [n / m for n, m in zip(x.shape[2:], found, strict=True)]
    return found, [1 / f for f in factors]


def _nearest(x: Tensor, axes: list[tuple[int, int, float]], exact: bool) -> Tensor:
    if not all(_is_whole(n, m, scale) for n, m, scale in axes):
        found = []
        for n, m, scale in axes:
            # in f32, as PyTorch rounds
            at = (np.arange(m, dtype=np.float32) + np.float32(0.5 if exact else 0)) * np.float32(scale)
            places = np.minimum(np.floor(at).astype(np.int64), n - 1)[:, None]
            found.append(taps(places, np.ones(places.shape), n))
        return resampled(x, tuple(found))
    bounds = [(0, n, 1) for n in x.shape[:2]]
    bounds += [((n // m) // 2 if exact else 0, m, n // m) if m < n else (0, n, 1) for n, m, _ in axes]
    out = cut(x, tuple(bounds))
    for axis, (n, m, _) in enumerate(axes):
        out = repeat_interleave(out, m // n, axis + 2) if m > n else out
    return out


def _is_whole(n: int, m: int, scale: float) -> bool:
    """Whether elements are repeated, or left out, at a whole factor."""
    return scale * m == n and (m % n == 0 or n % m == 0)


def _middles(n: int, m: int, scale: float, corners: bool) -> np.ndarray:
    """Where the result's elements lie between the input's; in f32, as PyTorch rounds."""
    line = np.arange(m, dtype=np.float32)
    if corners:
        return line * np.float32((n - 1) / (m - 1) if m > 1 else 0)
    return (line + np.float32(0.5)) * np.float32(scale) - np.float32(0.5)


def _linear(n: int, m: int, at: np.ndarray) -> Taps:
    at = np.maximum(at, 0)
    first = np.minimum(np.floor(at).astype(np.int64), n - 1)
    part = at - first
    places = np.stack([first, np.minimum(first + 1, n - 1)], 1)
    return taps(places, np.stack([1 - part, part], 1), n)


def _cubic(n: int, m: int, at: np.ndarray) -> Taps:
    """Source: Keys, Cubic convolution interpolation for digital image processing (1981)."""
    first = np.floor(at)
    part = (at - first).astype(np.float64)
    inner = [((_CUBIC + 2) * d - (_CUBIC + 3)) * d * d + 1 for d in (part, 1 - part)]
    outer = [((d - 5) * d + 8) * d * _CUBIC - 4 * _CUBIC for d in (part + 1, 2 - part)]
    places = np.clip(first.astype(np.int64)[:, None] + np.arange(-1, 3), 0, n - 1)
    return taps(places, np.stack([outer[0], *inner, outer[1]], 1), n)


# Channels and places -----------------------------------------------------------------------------


def pixel_shuffle(input: TensorLike, upscale_factor: int) -> Tensor:
    """Channels spread over places: `[..., C * r * r, H, W]` as `[..., C, H * r, W * r]`; a view.

    Source: Shi et al., Real-time single image and video super-resolution (2016).
    """
    x, r = tensor(input), upscale_factor
    if x.ndim < 3 or r < 1 or x.shape[-3] % (r * r):
        fail(f"pixel_shuffle: the channels of {x.type} are not a multiple of {r} * {r}")
    *lead, channels, rows, columns = x.shape
    apart = reshape(x, *lead, channels // (r * r), r, r, rows, columns)
    c = len(lead)
    turned = permute(apart, *range(c + 1), c + 3, c + 1, c + 4, c + 2)
    return reshape(turned, *lead, channels // (r * r), rows * r, columns * r)


def pixel_unshuffle(input: TensorLike, downscale_factor: int) -> Tensor:
    """The reverse of `pixel_shuffle`; a view."""
    x, r = tensor(input), downscale_factor
    if x.ndim < 3 or r < 1 or x.shape[-2] % r or x.shape[-1] % r:
        fail(f"pixel_unshuffle: the last axes of {x.type} are not multiples of {r}")
    *lead, channels, rows, columns = x.shape
    apart = reshape(x, *lead, channels, rows // r, r, columns // r, r)
    c = len(lead)
    turned = permute(apart, *range(c + 1), c + 2, c + 4, c + 1, c + 3)
    return reshape(turned, *lead, channels * r * r, rows // r, columns // r)


def channel_shuffle(input: TensorLike, groups: int) -> Tensor:
    """The channels of `[N, C, ...]` dealt out: one of each group in turn; a view."""
    x = tensor(input)
    if x.ndim < 2 or groups < 1 or x.shape[1] % groups:
        fail(f"channel_shuffle: {groups} groups do not divide the channels of {x.type}")
    apart = reshape(x, x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    return reshape(permute(apart, 0, 2, 1, *range(3, apart.ndim)), *x.shape)
