"""Convolutions: windows of the input, and a matrix product with the weight that reads them in place.

With the channels and the places of a window as the inner axis, and images and places of the result as columns,

    out[o, (n, y, x)] = sum over (c, p, q) of weight[o, (c, p, q)] * windows[(c, p, q), (n, y, x)]

is one matmul. No matrix of columns is stored: the template computes the address of a window's element, and
compares it with the image's border where there is padding. The gradient of the weight is the product over
(n, y, x). That of the input is again a convolution, of the result's gradient with the turned weight, as long as
windows move by single steps; else three of four products (at stride 2) would be with zeros between, and a
product with a sum of windows (`fold`) is cheaper.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from tensorgrad.callsite import call_site
from tensorgrad.dtypes import Shape
from tensorgrad.errors import DtypeError
from tensorgrad.ops.core import TensorLike, broadcast_to, meet, tensor
from tensorgrad.ops.custom import custom_grad
from tensorgrad.ops.matmul import matmul
from tensorgrad.ops.reduce import sum as sum_
from tensorgrad.ops.views import flip, permute, reshape, swapaxes
from tensorgrad.ops.windows import Numbers, Slide, Slides, numbers, overlap_add, refuse_cut, slides, window_p
from tensorgrad.shape import fail, show_shape
from tensorgrad.tensor import Tensor
from tensorgrad.trace import bind

Padding = int | Sequence[Any] | Literal["same", "valid"]

NARROW = 4
"""Groups with up to so many outputs are too narrow for the tiles of a matmul."""


def conv1d(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Numbers = 1,
    padding: Padding = 0,
    dilation: Numbers = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution of `[N, C, L]` (or `[C, L]`) with a weight `[out, C / groups, K]`; see `conv2d`."""
    return _convolution("conv1d", 1, x, weight, bias, stride, padding, dilation, groups)


def conv2d(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Numbers = 1,
    padding: Padding = 0,
    dilation: Numbers = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution (cross-correlation) of images with a weight, as PyTorch's.

    Args:
        x: images `[N, C, H, W]`, or one `[C, H, W]`.
        weight: `[out, C / groups, KH, KW]`.
        bias: `[out]`.
        stride: places from one window to the next; a number, or one for each axis.
        padding: zeros around the image: a number, or for each axis a number or a pair (before, after);
            `"valid"` is none, `"same"` (with stride 1) keeps the image's size.
        dilation: places from one element of a window to the next.
        groups: channels and outputs are cut into so many groups, which do not mix.

    Returns:
        `[N, out, H', W']` with `H' = (H + before + after - dilation * (KH - 1) - 1) // stride + 1`.

    Raises:
        ShapeError: where the channels do not fit, or a window is larger than the padded image.

    >>> import tensorgrad as tg
    >>> def layer():
    ...     return tg.conv2d(tg.tensor_input("x", (8, 3, 32, 32)), tg.tensor_input("w", (16, 3, 3, 3)), padding=1)
    >>> tg.trace(layer).type(tg.trace(layer).outputs[0])
    f32[8, 16, 32, 32]
    """
    return _convolution("conv2d", 2, x, weight, bias, stride, padding, dilation, groups)


def conv3d(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Numbers = 1,
    padding: Padding = 0,
    dilation: Numbers = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution of `[N, C, D, H, W]` with a weight `[out, C / groups, KD, KH, KW]`; see `conv2d`."""
    return _convolution("conv3d", 3, x, weight, bias, stride, padding, dilation, groups)


def _convolution(
    op: str,
    rank: int,
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None,
    stride: Numbers,
    padding: Padding,
    dilation: Numbers,
    groups: int,
) -> Tensor:
    x, weight, bias = operands(op, x, weight, bias)
    if x.ndim == rank + 1:
        batch = reshape(x, 1, *x.shape)
        out = _convolution(op, rank, batch, weight, bias, stride, padding, dilation, groups)
        return reshape(out, *out.shape[1:])
    (groups,) = numbers(op, "groups", groups, 1)
    _check(op, rank, x, weight, groups)
    moves = slides(op, weight.shape[2:], stride, dilation, _ends(op, padding, stride, dilation, weight.shape[2:]))
    refuse_cut(op, moves)
    for axis, (n, s) in enumerate(zip(x.shape[2:], moves, strict=True)):
        if not s.fits(n):
            fail(
                f"{op}: the kernel extends over {s.span} places along axis {2 + axis}, more than the input "
                f"{show_shape(x.shape)} has there with padding ({n} + {s.low} + {s.high})"
            )
    return biased(op, _convolved(x, weight, moves, groups), bias)


def operands(
    op: str, x: TensorLike, weight: TensorLike, bias: TensorLike | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Input, weight and perhaps a bias as tensors of one dtype of floats."""
    x, weight = tensor(x), tensor(weight)
    if not (x.dtype.is_float and weight.dtype.is_float):
        types = f"got {x.type} and {weight.type}"
        raise DtypeError(f"{op} needs floating-point tensors, {types}; convert with .astype(tg.f32)", call_site())
    _, (x, weight, *rest) = meet(x, weight) if bias is None else meet(x, weight, bias)
    return x, weight, rest[0] if rest else None


def biased(op: str, out: Tensor, bias: Tensor | None) -> Tensor:
    """`[N, out, ...]` with a number added to each of the outputs."""
    if bias is None:
        return out
    if bias.shape != out.shape[1:2]:
        fail(f"{op}: the bias {bias.type} must have one number for each of {out.shape[1]} outputs")
    return out + reshape(bias, -1, *[1] * (out.ndim - 2))


def _convolved(x: Tensor, weight: Tensor, moves: Slides, groups: int) -> Tensor:
    return _by_channels(x, weight, moves, groups) if _is_narrow(weight, groups) else _conv(x, weight, moves, groups)


def _check(op: str, rank: int, x: Tensor, weight: Tensor, groups: int) -> None:
    if x.ndim != rank + 2 or weight.ndim != rank + 2:
        fail(
            f"{op}: expected an input with {rank + 1} or {rank + 2} axes and a weight with {rank + 2}, "
            f"got {x.type} and {weight.type}"
        )
    if groups < 1 or weight.shape[0] % groups:
        fail(f"{op}: {groups} groups do not divide the {weight.shape[0]} outputs of the weight {weight.type}")
    if x.shape[1] != weight.shape[1] * groups:
        fail(
            f"{op}: the input {x.type} has {x.shape[1]} channels, but the weight {weight.type} takes "
            f"{weight.shape[1]} in each of {groups} groups"
        )


def _ends(op: str, padding: Padding, stride: Numbers, dilation: Numbers, size: Sequence[int]) -> int | Sequence[Any]:
    """Padding in numbers."""
    if not isinstance(padding, str):
        return padding
    if padding == "valid":
        return 0
    if padding != "same":
        fail(f"{op}: padding is numbers, 'same' or 'valid', got {padding!r}")
    if any(s != 1 for s in numbers(op, "stride", stride, len(size))):
        fail(f"{op}: padding='same' keeps the size, which a stride of {stride} does not")
    spare = [d * (k - 1) for d, k in zip(numbers(op, "dilation", dilation, len(size)), size, strict=True)]
    return [(n // 2, n - n // 2) for n in spare]


def _conv(x: Tensor, weight: Tensor, moves: Slides, groups: int) -> Tensor:
    windows = bind(window_p, x, slides=moves, value=0)
    images, places = x.shape[0], windows.shape[2 : 2 + len(moves)]
    product = matmul(_rows(weight, groups), _columns(windows, groups))
    out = swapaxes(reshape(product, weight.shape[0], images, *places), 0, 1)
    return custom_grad(out, _conv_grad, x, weight, args=(moves, groups))


def _lead(groups: int) -> tuple[int, ...]:
    return (groups,) if groups > 1 else ()


def _rows(weight: Tensor, groups: int) -> Tensor:
    """`[groups, out / groups, channels * places]`; without the first axis for one group."""
    return reshape(weight, *_lead(groups), weight.shape[0] // groups, math.prod(weight.shape[1:]))


def _columns(windows: Tensor, groups: int) -> Tensor:
    """Windows `[N, C, y, x, p, q]` as `[groups, (C / groups, p, q), (N, y, x)]`."""
    rank = (windows.ndim - 2) // 2
    turned = permute(windows, 1, *range(2 + rank, 2 + 2 * rank), 0, *range(2, 2 + rank))
    inner = windows.shape[1] // groups * math.prod(windows.shape[2 + rank :])
    return reshape(turned, *_lead(groups), inner, windows.shape[0] * math.prod(windows.shape[2 : 2 + rank]))


def _conv_grad(g: Tensor, out: Tensor, x: Tensor, weight: Tensor, moves: Slides, groups: int) -> tuple[Tensor, Tensor]:
    dweight = _weight_grad(g, x, weight, moves, groups)
    return transposed(g, weight, x.shape[2:], moves, groups), dweight


def _weight_grad(g: Tensor, x: Tensor, weight: Tensor, moves: Slides, groups: int) -> Tensor:
    columns = _columns(bind(window_p, x, slides=moves, value=0), groups)
    return reshape(matmul(_outputs(g, groups), swapaxes(columns, -1, -2)), *weight.shape)


def _outputs(g: Tensor, groups: int) -> Tensor:
    """Outputs `[N, out, y, x]` as `[groups, out / groups, (N, y, x)]`."""
    turned = swapaxes(g, 0, 1)
    return reshape(turned, *_lead(groups), turned.shape[0] // groups, math.prod(turned.shape[1:]))


def transposed(g: Tensor, weight: Tensor, sizes: Shape, moves: Slides, groups: int) -> Tensor:
    """The adjoint of a convolution of images with axes of `sizes`: its gradient by them, from that by its result."""
    images, channels, rank = g.shape[0], weight.shape[1] * groups, len(moves)
    if images * channels * math.prod(sizes) and all(s.stride == 1 for s in moves):
        out = _convolved(g, _turned(weight, groups), tuple(map(_reach, moves)), groups)
        # its gradient is the convolution itself, of the weight as it is
        return (
            out if _is_narrow(weight, groups) else custom_grad(out, _transposed_grad, g, weight, args=(moves, groups))
        )
    if _is_narrow(weight, groups):
        split = reshape(g, images, groups, -1 if g.size else 0, 1, *g.shape[2:], *[1] * rank)
        rows = reshape(weight, groups, weight.shape[0] // groups, weight.shape[1], *[1] * rank, *weight.shape[2:])
        pieces = reshape(sum_(split * rows, 2), images, channels, *g.shape[2:], *weight.shape[2:])
        return overlap_add(pieces, sizes, moves)
    pieces = matmul(swapaxes(_rows(weight, groups), -1, -2), _outputs(g, groups))
    pieces = reshape(pieces, channels, *weight.shape[2:], images, *g.shape[2:])
    pieces = permute(pieces, 1 + rank, 0, *range(2 + rank, 2 + 2 * rank), *range(1, 1 + rank))
    return overlap_add(pieces, sizes, moves)


def _transposed_grad(
    gg: Tensor, out: Tensor, g: Tensor, weight: Tensor, moves: Slides, groups: int
) -> tuple[Tensor, Tensor]:
    return _convolved(gg, weight, moves, groups), _weight_grad(g, gg, weight, moves, groups)


def _reach(s: Slide) -> Slide:
    """The windows of the gradient that an element of the input took part in."""
    return Slide(s.size, 1, s.dilation, s.span - 1 - s.low, s.span - 1 - s.high)


def _turned(weight: Tensor, groups: int) -> Tensor:
    """The weight of the input's gradient: inputs and outputs of each group exchanged, places reversed."""
    out, inner, *size = weight.shape
    split = reshape(flip(weight, tuple(range(2, weight.ndim))), groups, out // groups, inner, *size)
    return reshape(swapaxes(split, 1, 2), groups * inner, out // groups, *size)


# Narrow groups ----------------------------------------------------------------------------------


def _is_narrow(weight: Tensor, groups: int) -> bool:
    return groups > 1 and weight.shape[0] // groups <= NARROW


def _by_channels(x: Tensor, weight: Tensor, moves: Slides, groups: int) -> Tensor:
    """The products summed element by element: depthwise convolutions, whose matrices would have a row each."""
    windows = bind(window_p, x, slides=moves, value=0)
    rank, (images, channels, *rest) = len(moves), windows.shape
    out, inner = weight.shape[0], channels // groups
    split = broadcast_to(reshape(windows, images, groups, 1, inner, *rest), images, groups, out // groups, inner, *rest)
    rows = reshape(weight, groups, out // groups, inner, *[1] * rank, *weight.shape[2:])
    summed = sum_(split * rows, (3, *range(4 + rank, 4 + 2 * rank)))
    return reshape(summed, images, out, *rest[:rank])
