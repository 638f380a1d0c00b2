"""Convolutions and pools: PyTorch's arguments, defaults, keys and initial distributions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from tensorgrad import ops
from tensorgrad.dtypes import DType, f32
from tensorgrad.errors import ShapeError
from tensorgrad.nn import init
from tensorgrad.nn.module import Module
from tensorgrad.nn.parameter import Parameter
from tensorgrad.ops.convolution import Padding
from tensorgrad.ops.core import TensorLike
from tensorgrad.ops.windows import Numbers, numbers
from tensorgrad.tensor import Tensor


class _Conv(Module):
    _rank: ClassVar[int]
    _op: ClassVar[Callable[..., Tensor]]

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
        dtype: DType = f32,
    ) -> None:
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ShapeError(
                f"{type(self).__name__}: {groups} groups do not divide {in_channels} channels and "
                f"{out_channels} outputs"
            )
        size = numbers(type(self).__name__, "kernel_size", kernel_size, self._rank)
        self.in_channels, self.out_channels, self.kernel_size = in_channels, out_channels, size
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        self.weight = Parameter(np.zeros((out_channels, in_channels // groups, *size), dtype.numpy))
        self.bias = Parameter(np.zeros(out_channels, dtype.numpy)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the initial values anew."""
        init.kaiming_uniform_(self.weight, math.sqrt(5))
        fan = math.prod(self.weight.shape[1:])
        if self.bias is not None and fan:
            init.uniform_(self.bias, -1 / math.sqrt(fan), 1 / math.sqrt(fan))

    def forward(self, x: TensorLike) -> Tensor:
        return self._op(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        options = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}
        given = [f", {k}={getattr(self, k)}" for k, default in options.items() if getattr(self, k) != default]
        size = "x".join(map(str, self.kernel_size))
        return f"{self.in_channels} -> {self.out_channels}, {size}{''.join(given)}"


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

    Both start uniform within `1 / sqrt(in / groups * KH * KW)`.

    >>> from tensorgrad import nn
    >>> nn.Conv2d(3, 16, 3, padding=1)
    Conv2d(3 -> 16, 3x3, padding=1): 448 parameters  weight f32[16, 3, 3, 3], bias f32[16]
    """

    _rank = 2
    _op = staticmethod(ops.conv2d)


class _Pool(Module):
    kernel_size: Numbers
    stride: Numbers | None
    padding: Numbers

    def extra_repr(self) -> str:
        stride = self.kernel_size if self.stride is None else self.stride
        return f"{self.kernel_size}, stride={stride}, padding={self.padding}"


class MaxPool2d(_Pool):
    """`max_pool2d`: the largest element of each window."""

    def __init__(
        self,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        dilation: Numbers = 1,
        ceil_mode: bool = False,
    ) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.dilation, self.ceil_mode = dilation, ceil_mode

    def forward(self, x: TensorLike) -> Tensor:
        return ops.max_pool2d(x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


class AvgPool2d(_Pool):
    """`avg_pool2d`: the mean of each window."""

    def __init__(
        self,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.ceil_mode, self.count_include_pad, self.divisor_override = ceil_mode, count_include_pad, divisor_override

    def forward(self, x: TensorLike) -> Tensor:
        options = self.ceil_mode, self.count_include_pad, self.divisor_override
        return ops.avg_pool2d(x, self.kernel_size, self.stride, self.padding, *options)


class AdaptiveAvgPool2d(Module):
    """`adaptive_avg_pool2d`: the means of `output_size` equal parts of the last two axes."""

    def __init__(self, output_size: int | Sequence[int | None]) -> None:
        self.output_size = output_size

    def forward(self, x: TensorLike) -> Tensor:
        return ops.adaptive_avg_pool2d(x, self.output_size)

    def extra_repr(self) -> str:
        return f"{self.output_size}"
