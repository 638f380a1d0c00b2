"""Transposed convolutions: each element of the input adds a multiple of the kernel to the result.

It is the gradient of a convolution by its images, and is computed as such: of single steps as a convolution with the
turned weight, else as one matrix product, whose parts overlap where they are added up.
"""

from __future__ import annotations

from tensorgrad.ops.convolution import biased, operands, transposed
from tensorgrad.ops.core import TensorLike
from tensorgrad.ops.views import reshape
from tensorgrad.ops.windows import Numbers, Slide, numbers
from tensorgrad.shape import fail
from tensorgrad.tensor import Tensor


def conv_transpose1d(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Numbers = 1,
    padding: Numbers = 0,
    output_padding: Numbers = 0,
    groups: int = 1,
    dilation: Numbers = 1,
) -> Tensor:
    """The transposed convolution of `[N, C, L]` (or `[C, L]`) with `[C, out / groups, K]`; see `conv_transpose2d`."""
    return _spread("conv_transpose1d", 1, x, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Numbers = 1,
    padding: Numbers = 0,
    output_padding: Numbers = 0,
    groups: int = 1,
    dilation: Numbers = 1,
) -> Tensor:
    """The transposed convolution of images with a weight, as PyTorch's.

    Args:
        x: images `[N, C, H, W]`, or one `[C, H, W]`.
        weight: `[C, out / groups, KH, KW]`.
        bias: `[out]`.
        stride: places in the result from one element of the input to the next.
        padding: places cut off at each end of the result.
        output_padding: places added at the far end, fewer than the stride or the dilation.
        groups: channels and outputs are cut into so many groups, which do not mix.
        dilation: places from one element of the kernel to the next.

    Returns:
        `[N, out, H', W']` with `H' = (H - 1) * stride - 2 * padding + dilation * (KH - 1) + output_padding + 1`.

    Raises:
        ShapeError: where the channels do not fit, or nothing is left of the result.

    >>> import tensorgrad as tg
    >>> def layer():
    ...     x, w = tg.tensor_input("x", (8, 16, 7, 7)), tg.tensor_input("w", (16, 4, 4, 4))
    ...     return tg.conv_transpose2d(x, w, stride=2, padding=1)
    >>> tg.trace(layer).type(tg.trace(layer).outputs[0])
    f32[8, 4, 14, 14]
    """
    return _spread("conv_transpose2d", 2, x, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Numbers = 1,
    padding: Numbers = 0,
    output_padding: Numbers = 0,
    groups: int = 1,
    dilation: Numbers = 1,
) -> Tensor:
    """The transposed convolution of `[N, C, D, H, W]` with `[C, out / groups, KD, KH, KW]`; see `conv_transpose2d`."""
    return _spread("conv_transpose3d", 3, x, weight, bias, stride, padding, output_padding, groups, dilation)


def _spread(
    op: str,
    rank: int,
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None,
    stride: Numbers,
    padding: Numbers,
    output_padding: Numbers,
    groups: int,
    dilation: Numbers,
) -> Tensor:
    x, weight, bias = operands(op, x, weight, bias)
    if x.ndim == rank + 1:
        batch = reshape(x, 1, *x.shape)
        out = _spread(op, rank, batch, weight, bias, stride, padding, output_padding, groups, dilation)
        return reshape(out, *out.shape[1:])
    (groups,) = numbers(op, "groups", groups, 1)
    _check(op, rank, x, weight, groups)
    given = {"stride": stride, "dilation": dilation, "padding": padding, "output_padding": output_padding}
    columns = [numbers(op, name, value, rank) for name, value in given.items()]
    moves, sizes = [], []
    for n, k, s, d, p, extra in zip(x.shape[2:], weight.shape[2:], *columns, strict=True):
        if min(k, s, d) < 1 or min(p, extra) < 0 or extra >= max(s, d):
            fail(
                f"{op}: kernel size, stride and dilation are at least 1, padding at least 0, and output_padding less "
                f"than the stride or the dilation; got {k}, {s}, {d}, {p} and {extra}"
            )
        # what the far end gains is padding that is not cut off there
        move = Slide(k, s, d, p, p - extra)
        moves.append(move)
        sizes.append((n - 1) * s + move.span - 2 * p + extra)
    if min(sizes) < 1:
        fail(f"{op}: a result with axes of sizes {sizes} has nothing left of {x.type}")
    return biased(op, transposed(x, weight, tuple(sizes), tuple(moves), groups), bias)


def _check(op: str, rank: int, x: Tensor, weight: Tensor, groups: int) -> None:
    if x.ndim != rank + 2 or weight.ndim != rank + 2:
        fail(
            f"{op}: expected an input with {rank + 1} or {rank + 2} axes and a weight with {rank + 2}, "
            f"got {x.type} and {weight.type}"
        )
    if x.shape[1] != weight.shape[0]:
        fail(f"{op}: the input {x.type} has {x.shape[1]} channels, the weight {weight.type} takes {weight.shape[0]}")
    if groups < 1 or weight.shape[0] % groups:
        fail(f"{op}: {groups} groups do not divide the {weight.shape[0]} channels of the weight {weight.type}")
