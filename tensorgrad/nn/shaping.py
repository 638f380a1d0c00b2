"""Modules that move elements about: flattening, padding, resizing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tensorgrad import ops
from tensorgrad.checks import is_whole, require
from tensorgrad.nn.module import Module
from tensorgrad.ops.core import TensorLike
from tensorgrad.ops.padding import pad_from_last
from tensorgrad.ops.windows import Numbers, numbers
from tensorgrad.tensor import Tensor


class Flatten(Module):
    """The axes from `start_dim` to `end_dim` made one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: TensorLike) -> Tensor:
        return ops.flatten(x, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"{self.start_dim}, {self.end_dim}"


class Unflatten(Module):
    """One axis made several.

    Args:
        dim: the axis.
        unflattened_size: their sizes; one may be -1.
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        sizes: Any = unflattened_size
        fits = is_whole(dim) and isinstance(sizes, list | tuple) and all(map(is_whole, sizes))
        require("Unflatten", "dim and unflattened_size", (dim, sizes), fits, "an axis and a list of sizes")
        self.dim, self.unflattened_size = dim, tuple(sizes)

    def forward(self, x: TensorLike) -> Tensor:
        return ops.unflatten(x, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"{self.dim}, {self.unflattened_size}"


class Unfold(Module):
    """`unfold`: windows of images as columns, `[N, C * KH * KW, windows]`."""

    def __init__(self, kernel_size: Numbers, dilation: Numbers = 1, padding: Numbers = 0, stride: Numbers = 1) -> None:
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, x: TensorLike) -> Tensor:
        return ops.unfold(x, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"{self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Unfold):
    """`fold`: columns added up to images of `output_size`, each at its window's place."""

    def __init__(
        self,
        output_size: Numbers,
        kernel_size: Numbers,
        dilation: Numbers = 1,
        padding: Numbers = 0,
        stride: Numbers = 1,
    ) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, x: TensorLike) -> Tensor:
        return ops.fold(x, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"{self.output_size}, {super().extra_repr()}"


class Upsample(Module):
    """`interpolate`: larger or smaller along the last axes.

    Args:
        size: of those axes, or instead:
        scale_factor: by how much they grow.
        mode: `nearest`, `linear`, `bilinear`, or another of `interpolate`.
        align_corners, recompute_scale_factor: as for `interpolate`.
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def forward(self, x: TensorLike) -> Tensor:
        options = self.mode, self.align_corners, self.recompute_scale_factor
        return ops.interpolate(x, self.size, self.scale_factor, *options)

    def extra_repr(self) -> str:
        how = f"scale_factor={self.scale_factor}" if self.size is None else f"size={self.size}"
        return f"{how}, mode={self.mode}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` of images by their nearest elements."""

    def __init__(
        self, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
    ) -> None:
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(Upsample):
    """`Upsample` of images between four elements, corners on corners."""

    def __init__(
        self, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
    ) -> None:
        super().__init__(size, scale_factor, "bilinear", align_corners=True)


class _Shuffle(Module):
    _op: ClassVar[Callable[..., Tensor]]

    def __init__(self, factor: int) -> None:
        self.factor = factor

    def forward(self, x: TensorLike) -> Tensor:
        return self._op(x, self.factor)

    def extra_repr(self) -> str:
        return f"{self.factor}"


class PixelShuffle(_Shuffle):
    """`pixel_shuffle`: `factor * factor` channels become as many places of each pixel."""

    _op = staticmethod(ops.pixel_shuffle)

    def __init__(self, upscale_factor: int) -> None:
        super().__init__(upscale_factor)


class PixelUnshuffle(_Shuffle):
    """`pixel_unshuffle`: the other way."""

    _op = staticmethod(ops.pixel_unshuffle)

    def __init__(self, downscale_factor: int) -> None:
        super().__init__(downscale_factor)


class ChannelShuffle(_Shuffle):
    """`channel_shuffle`: the channels of groups in turn."""

    _op = staticmethod(ops.channel_shuffle)

    def __init__(self, groups: int) -> None:
        super().__init__(groups)


class _Pad(Module):
    _rank: ClassVar[int]
    _mode: ClassVar[str] = "constant"

    def __init__(self, padding: int | Sequence[int]) -> None:
        self.padding = numbers(type(self).__name__, "padding", padding, 2 * self._rank)

    def forward(self, x: TensorLike) -> Tensor:
        return pad_from_last(x, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_Pad):
    """Zeros around the last axis; see `ZeroPad2d`."""

    _rank = 1


class ZeroPad2d(_Pad):
    """Zeros around the last two axes.

    Args:
        padding: a number, or one for each side: left, right, top, bottom. Negative ones cut elements off.
    """

    _rank = 2


class ReflectionPad1d(_Pad):
    """The last axis mirrored at its first and last element; see `ZeroPad2d`."""

    _rank, _mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """The last two axes mirrored at their first and last elements; see `ZeroPad2d`."""

    _rank, _mode = 2, "reflect"


class ReplicationPad1d(_Pad):
    """The ends of the last axis repeated; see `ZeroPad2d`."""

    _rank, _mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """The ends of the last two axes repeated; see `ZeroPad2d`."""

    _rank, _mode = 2, "replicate"


class CircularPad1d(_Pad):
    """The last axis as if it went round; see `ZeroPad2d`."""

    _rank, _mode = 1, "circular"


class CircularPad2d(_Pad):
    """The last two axes as if they went round; see `ZeroPad2d`."""

    _rank, _mode = 2, "circular"


class ConstantPad1d(_Pad):
    """One number around the last axis; see `ConstantPad2d`."""

    _rank = 1

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, x: TensorLike) -> Tensor:
        return pad_from_last(x, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"{self.padding}, {self.value}"


class ConstantPad2d(ConstantPad1d):
    """One number around the last two axes.

    Args:
        padding: as in `ZeroPad2d`.
        value: the number.
    """

    _rank = 2
