"""Pools: PyTorch's arguments and defaults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tensorgrad import ops
from tensorgrad.callsite import call_site
from tensorgrad.errors import InputError
from tensorgrad.nn.module import Module
from tensorgrad.ops.core import TensorLike
from tensorgrad.ops.windows import Numbers
from tensorgrad.tensor import Tensor


class _Pool(Module):
    _op: ClassVar[Callable[..., Tensor]]
    kernel_size: Numbers
    stride: Numbers | None
    padding: Numbers

    def extra_repr(self) -> str:
        stride = self.kernel_size if self.stride is None else self.stride
        return f"{self.kernel_size}, stride={stride}, padding={self.padding}"


class _MaxPool(_Pool):
    def __init__(
        self,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        dilation: Numbers = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.dilation, self.return_indices, self.ceil_mode = dilation, return_indices, ceil_mode

    def forward(self, x: TensorLike) -> Any:
        options = self.dilation, self.ceil_mode, self.return_indices
        return self._op(x, self.kernel_size, self.stride, self.padding, *options)


class MaxPool1d(_MaxPool):
    """`max_pool1d`: the largest element of each window."""

    _op = staticmethod(ops.max_pool1d)


class MaxPool2d(_MaxPool):
    """`max_pool2d`: the largest element of each window."""

    _op = staticmethod(ops.max_pool2d)


class AvgPool1d(_Pool):
    """`avg_pool1d`: the mean of each window."""

    def __init__(
        self,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, x: TensorLike) -> Tensor:
        options = self.ceil_mode, self.count_include_pad
        return ops.avg_pool1d(x, self.kernel_size, self.stride, self.padding, *options)


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


class _LPPool(Module):
    _op: ClassVar[Callable[..., Tensor]]

    def __init__(
        self, norm_type: float, kernel_size: Numbers, stride: Numbers | None = None, ceil_mode: bool = False
    ) -> None:
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, x: TensorLike) -> Tensor:
        return self._op(x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return f"{self.norm_type}, {self.kernel_size}, stride={self.stride}, ceil_mode={self.ceil_mode}"


class LPPool1d(_LPPool):
    """`lp_pool1d`: the p-norm of each window."""

    _op = staticmethod(ops.lp_pool1d)


class LPPool2d(_LPPool):
    """`lp_pool2d`: the p-norm of each window."""

    _op = staticmethod(ops.lp_pool2d)


class _Adaptive(Module):
    _op: ClassVar[Callable[..., Tensor]]

    def __init__(self, output_size: Any) -> None:
        self.output_size: int | Sequence[int | None] = output_size

    def forward(self, x: TensorLike) -> Tensor:
        return self._op(x, self.output_size)

    def extra_repr(self) -> str:
        return f"{self.output_size}"


class AdaptiveAvgPool1d(_Adaptive):
    """`adaptive_avg_pool1d`: the means of `output_size` parts of the last axis."""

    _op = staticmethod(ops.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_Adaptive):
    """`adaptive_avg_pool2d`: the means of `output_size` parts of the last two axes."""

    _op = staticmethod(ops.adaptive_avg_pool2d)


class AdaptiveMaxPool1d(_Adaptive):
    """`adaptive_max_pool1d`: the largest elements of `output_size` parts of the last axis."""

    _op = staticmethod(ops.adaptive_max_pool1d)

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        if return_indices:
            raise InputError(f"{type(self).__name__}: return_indices is not offered, MaxPool has it", call_site())
        super().__init__(output_size)


class AdaptiveMaxPool2d(AdaptiveMaxPool1d):
    """`adaptive_max_pool2d`: the largest elements of `output_size` parts of the last two axes."""

    _op = staticmethod(ops.adaptive_max_pool2d)
