"""Convolutions: PyTorch's arguments, defaults, keys and initial distributions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, get_args

from tensorgrad import ops
from tensorgrad.callsite import call_site
from tensorgrad.checks import require_sizes
from tensorgrad.dtypes import DType, Shape, f32
from tensorgrad.errors import InputError
from tensorgrad.nn import init
from tensorgrad.nn.module import Module
from tensorgrad.nn.parameter import undrawn
from tensorgrad.ops.convolution import Padding
from tensorgrad.ops.core import TensorLike
from tensorgrad.ops.padding import pad_from_last
from tensorgrad.ops.windows import Numbers, numbers
from tensorgrad.shape import fail
from tensorgrad.tensor import Tensor

PaddingMode = Literal["zeros", "reflect", "replicate", "circular"]


def _smallest(given: Any) -> Any:
    return min(map(_smallest, given), default=1) if isinstance(given, tuple | list) else given


class _Kernel(Module):
    """Channels, a kernel and its steps; weight and bias start uniform within 1 / sqrt(what one output sums)."""

    _rank: ClassVar[int]
    _op: ClassVar[Callable[..., Tensor]]
    padding: Padding
    output_padding: Numbers
    padding_mode: PaddingMode

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Numbers,
        stride: Numbers,
        padding: Padding,
        dilation: Numbers,
        groups: int,
    ) -> None:
        name = type(self).__name__
        require_sizes(name, in_channels=in_channels, out_channels=out_channels, groups=groups)
        if groups < 1 or in_channels % groups or out_channels % groups:
            fail(f"{name}: {groups} groups do not divide {in_channels} channels and {out_channels} outputs")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size = numbers(name, "kernel_size", kernel_size, self._rank)
        if min(self.kernel_size) < 0:
            fail(f"{name}: kernel_size must not be negative, got {kernel_size!r}")
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        for what, given, least in (("stride", stride, 1), ("dilation", dilation, 1), ("padding", padding, 0)):
            if isinstance(given, int | tuple | list) and _smallest(given) < least:
                fail(f"{name}: {what} must be {least} or more, got {given!r}")

    def _add_weight(self, first: int, second: int, bias: bool, dtype: DType) -> None:
        self.weight = undrawn((first, second, *self.kernel_size), dtype)
        self.bias = undrawn((self.out_channels,), dtype) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the initial values anew."""
        init.kaiming_uniform_(self.weight, math.sqrt(5))
        fan = math.prod(self.weight.shape[1:])
        if self.bias is not None and fan:
            init.uniform_(self.bias, -1 / math.sqrt(fan), 1 / math.sqrt(fan))

    def extra_repr(self) -> str:
        options = {"stride": 1, "padding": 0, "output_padding": 0, "dilation": 1, "groups": 1, "padding_mode": "zeros"}
        given = [f", {k}={getattr(self, k)}" for k, default in options.items() if getattr(self, k, default) != default]
        size = "x".join(map(str, self.kernel_size))
        return f"{self.in_channels} -> {self.out_channels}, {size}{''.join(given)}"


class _Conv(_Kernel):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Numbers,
        stride: Numbers = 1,
        padding: Padding = 0,
        dilation: Numbers = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: PaddingMode = "zeros",
        dtype: DType = f32,
    ) -> None:
        if padding_mode not in get_args(PaddingMode):
            modes, name = ", ".join(map(repr, get_args(PaddingMode))), type(self).__name__
            raise InputError(f"{name}: padding_mode is one of {modes}, got {padding_mode!r}", call_site())
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups)
        self.padding_mode = padding_mode
        self._add_weight(out_channels, in_channels // groups, bias, dtype)

    def forward(self, x: TensorLike) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            x, padding = pad_from_last(x, self._around(), self.padding_mode), 0
        return self._op(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _around(self) -> list[int]:
        """The padding before and after each axis, the last axis first."""
        name = type(self).__name__
        if isinstance(self.padding, str):
            reach = numbers(name, "dilation", self.dilation, self._rank)
            spans = [d * (k - 1) for d, k in zip(reach, self.kernel_size, strict=True)]
            pairs = [(n // 2, n - n // 2) if self.padding == "same" else (0, 0) for n in spans]
        else:
            pairs = [(n, n) for n in numbers(name, "padding", self.padding, self._rank)]
        return [n for pair in reversed(pairs) for n in pair]


class Conv1d(_Conv):
    """`conv1d` with a weight `[out, in / groups, K]`; arguments as `Conv2d`."""

    _rank = 1
    _op = staticmethod(ops.conv1d)


class Conv2d(_Conv):
    """`conv2d` of images `[N, in, H, W]` with a weight `[out, in / groups, KH, KW]` and a bias `[out]`.

    Args:
        in_channels: channels of the input.
        out_channels: of the result.
        kernel_size: of a window, a number or one for each axis.
        stride, padding, dilation, groups: as for `conv2d`.
        bias: whether there is one.
        padding_mode: what is around the images: `zeros`, or as `nn.functional.pad` has it, `reflect`, `replicate`
            or `circular`.

    Both start uniform within `1 / sqrt(in / groups * KH * KW)`.

    >>> from tensorgrad import nn
    >>> nn.Conv2d(3, 16, 3, padding=1)
    Conv2d(3 -> 16, 3x3, padding=1): 448 parameters  weight f32[16, 3, 3, 3], bias f32[16]
    """

    _rank = 2
    _op = staticmethod(ops.conv2d)


class Conv3d(_Conv):
    """`conv3d` with a weight `[out, in / groups, KD, KH, KW]`; arguments as `Conv2d`."""

    _rank = 3
    _op = staticmethod(ops.conv3d)


class _ConvTranspose(_Kernel):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Numbers,
        stride: Numbers = 1,
        padding: Numbers = 0,
        output_padding: Numbers = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Numbers = 1,
        padding_mode: Literal["zeros"] = "zeros",
        dtype: DType = f32,
    ) -> None:
        if padding_mode != "zeros":
            raise InputError(f"{type(self).__name__}: padding_mode is 'zeros', got {padding_mode!r}", call_site())
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups)
        self.output_padding = output_padding
        self._add_weight(in_channels, out_channels // groups, bias, dtype)

    def forward(self, x: TensorLike, output_size: Sequence[int] | None = None) -> Tensor:
        """The result; `output_size` are the sizes of its last axes, in place of `output_padding`."""
        x = ops.tensor(x)
        extra = self.output_padding if output_size is None else self._extra(x.shape, output_size)
        return self._op(x, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)

    def _extra(self, shape: Shape, output_size: Sequence[int]) -> tuple[int, ...]:
        """The output padding that gives the sizes."""
        name = type(self).__name__
        steps = (self.stride, self.padding, self.dilation, self.kernel_size)
        each = zip(*(numbers(name, "size", step, self._rank) for step in steps), strict=True)
        wanted = tuple(output_size)[-self._rank :]
        least, most = [], []
        for n, (stride, padding, dilation, kernel) in zip(shape[-self._rank :], each, strict=True):
            least.append((n - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1)
            most.append(least[-1] + stride - 1)
        if len(wanted) != self._rank or not all(a <= n <= b for a, n, b in zip(least, wanted, most, strict=True)):
            fail(f"{name}: output_size is from {least} to {most} here, got {output_size}", call_site())
        return tuple(n - a for n, a in zip(wanted, least, strict=True))


class ConvTranspose1d(_ConvTranspose):
    """`conv_transpose1d` with a weight `[in, out / groups, K]`; arguments as `ConvTranspose2d`."""

    _rank = 1
    _op = staticmethod(ops.conv_transpose1d)


class ConvTranspose2d(_ConvTranspose):
    """`conv_transpose2d`, the gradient of `Conv2d` by its input: images `[N, in, H, W]` become larger by the stride.

    Args:
        in_channels: channels of the input.
        out_channels: of the result.
        kernel_size: of a window, a number or one for each axis.
        stride, padding, output_padding, groups, dilation: as for `conv_transpose2d`.
        bias: whether there is one.
        padding_mode: `zeros`.

    Weight `[in, out / groups, KH, KW]` and bias start uniform within `1 / sqrt(out / groups * KH * KW)`.

    >>> from tensorgrad import nn
    >>> nn.ConvTranspose2d(16, 3, 2, stride=2)
    ConvTranspose2d(16 -> 3, 2x2, stride=2): 195 parameters  weight f32[16, 3, 2, 2], bias f32[3]
    """

    _rank = 2
    _op = staticmethod(ops.conv_transpose2d)


class ConvTranspose3d(_ConvTranspose):
    """`conv_transpose3d` with a weight `[in, out / groups, KD, KH, KW]`; arguments as `ConvTranspose2d`."""

    _rank = 3
    _op = staticmethod(ops.conv_transpose3d)
