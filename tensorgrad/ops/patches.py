"""PyTorch's unfold and fold: windows as columns of a matrix, and columns added up to images."""

from __future__ import annotations

import math

from tensorgrad.ops.core import TensorLike, tensor
from tensorgrad.ops.views import permute, reshape
from tensorgrad.ops.windows import Numbers, Slides, numbers, overlap_add, refuse_cut, slides, window_p
from tensorgrad.shape import fail, show_shape
from tensorgrad.tensor import Tensor
from tensorgrad.trace import bind


def unfold(
    input: TensorLike, kernel_size: Numbers, dilation: Numbers = 1, padding: Numbers = 0, stride: Numbers = 1
) -> Tensor:
    """The windows of images as columns: `[N, C, H, W]` becomes `[N, C * KH * KW, windows]`; a view.

    `window` gives them as axes of their own.
    """
    x = tensor(input)
    if x.ndim == 3:
        return reshape(out := unfold(reshape(x, 1, *x.shape), kernel_size, dilation, padding, stride), *out.shape[1:])
    if x.ndim != 4:
        fail(f"unfold: expected [N, C, H, W] or [C, H, W], got {x.type}")
    moves = _moves("unfold", kernel_size, dilation, padding, stride)
    shown = bind(window_p, x, slides=moves, value=0)
    n, c, rows, columns, high, wide = shown.shape
    return reshape(permute(shown, 0, 1, 4, 5, 2, 3), n, c * high * wide, rows * columns)


def fold(
    input: TensorLike,
    output_size: Numbers,
    kernel_size: Numbers,
    dilation: Numbers = 1,
    padding: Numbers = 0,
    stride: Numbers = 1,
) -> Tensor:
    """Columns added up to images, each at the window's place: `[N, C * KH * KW, windows]` becomes `[N, C, H, W]`.

    Args:
        output_size: of the images' axes.
        kernel_size, dilation, padding, stride: as of the `unfold` that it reverses, but for the sums.
    """
    x = tensor(input)
    if x.ndim == 2:
        wide = reshape(x, 1, *x.shape)
        return reshape(out := fold(wide, output_size, kernel_size, dilation, padding, stride), *out.shape[1:])
    sizes = numbers("fold", "output_size", output_size, 2)
    moves = _moves("fold", kernel_size, dilation, padding, stride)
    counts = [s.count(n) if s.fits(n) else 0 for n, s in zip(sizes, moves, strict=True)]
    places = math.prod(s.size for s in moves)
    if x.ndim != 3 or x.shape[1] % places or x.shape[2] != math.prod(counts):
        fail(
            f"fold: images of {show_shape(sizes)} have {' * '.join(map(str, counts))} windows of {places} places: "
            f"expected [N, C * {places}, {math.prod(counts)}], got {x.type}"
        )
    images, channels = x.shape[0], x.shape[1] // places
    apart = reshape(x, images, channels, *(s.size for s in moves), *counts)
    return overlap_add(permute(apart, 0, 1, 4, 5, 2, 3), sizes, moves)


def _moves(op: str, size: Numbers, dilation: Numbers, padding: Numbers, stride: Numbers) -> Slides:
    moves = slides(op, numbers(op, "kernel_size", size, 2), stride, dilation, numbers(op, "padding", padding, 2))
    refuse_cut(op, moves)
    return moves
