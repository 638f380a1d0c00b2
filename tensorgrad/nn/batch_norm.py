"""Normalizations that may keep statistics over batches: PyTorch's arguments, defaults and keys."""

from __future__ import annotations

import numpy as np

from tensorgrad import ops
from tensorgrad.checks import require_sizes
from tensorgrad.dtypes import DType, f32
from tensorgrad.nn import init
from tensorgrad.nn.normalization import Affine
from tensorgrad.nn.parameter import Buffer, filled
from tensorgrad.ops.core import TensorLike
from tensorgrad.shape import fail
from tensorgrad.tensor import Tensor
from tensorgrad.trace import update_state, updated_state


class _Statistics(Affine):
    """Weight, bias and running statistics, each with a number a channel, or without."""

    _ndims: tuple[int, ...] = ()

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        affine: bool,
        track_running_stats: bool,
        dtype: DType,
        bias: bool,
    ) -> None:
        require_sizes(type(self).__name__, num_features=num_features)
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._add_affine((num_features,), affine, affine and bias, dtype)
        tracks = track_running_stats
        self.running_mean = Buffer(filled(0, num_features, dtype)) if tracks else None
        self.running_var = Buffer(filled(1, num_features, dtype)) if tracks else None
        self.num_batches_tracked = Buffer(np.zeros((), np.int32)) if tracks else None

    def reset_running_stats(self) -> None:
        """Running statistics to mean 0, variance 1 and no batches."""
        for buffer, value in ((self.running_mean, 0), (self.running_var, 1), (self.num_batches_tracked, 0)):
            if buffer is not None:
                init.constant_(buffer, value)

    def reset_parameters(self) -> None:
        """Weight to ones, bias to zeros, running statistics to the beginning."""
        self.reset_running_stats()
        super().reset_parameters()

    def _fitting(self, x: TensorLike) -> Tensor:
        x = ops.tensor(x)
        if x.ndim not in self._ndims:
            fail(f"{type(self).__name__}: needs an input with {' or '.join(map(str, self._ndims))} axes, got {x.type}")
        return x

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps:g}, momentum={self.momentum}"


class _BatchNorm(_Statistics):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        dtype: DType = f32,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype, bias)

    def forward(self, x: TensorLike) -> Tensor:
        x = self._fitting(x)
        momentum = 0.0 if self.momentum is None else self.momentum
        count = self.num_batches_tracked
        if self.training and count is not None:
            seen = updated_state(count) + 1
            update_state(count, seen)
            if self.momentum is None:
                momentum = 1.0 / ops.cast(seen, x.dtype)  # the plain average of all batches
        batch = self.training or self.running_mean is None
        return ops.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, batch, momentum, self.eps)


class BatchNorm1d(_BatchNorm):
    """`batch_norm` of `[N, C]` or `[N, C, L]`; see `BatchNorm2d`."""

    _ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """`batch_norm` of images `[N, C, H, W]`: over all images and places of a channel.

    Training normalizes with the batch's statistics and moves the running ones, which are buffers; a step whose
    loss is not finite leaves them as they are. Evaluation normalizes with the running ones.

    Args:
        num_features: channels.
        eps: added to the variance.
        momentum: how far the running statistics move towards the batch's; None averages all batches alike.
        affine: whether there are weight (ones) and bias (zeros).
        bias: False leaves out the bias alone.
        track_running_stats: False normalizes with the batch's statistics in evaluation too.

    >>> from tensorgrad import nn
    >>> sorted(nn.BatchNorm2d(8).state_dict())
    ['bias', 'num_batches_tracked', 'running_mean', 'running_var', 'weight']
    """

    _ndims = (4,)


class BatchNorm3d(_BatchNorm):
    """`batch_norm` of volumes `[N, C, D, H, W]`; see `BatchNorm2d`."""

    _ndims = (5,)


class _InstanceNorm(_Statistics):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        dtype: DType = f32,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype, bias)

    def forward(self, x: TensorLike) -> Tensor:
        x = self._fitting(x)
        one = x.ndim == self._ndims[0]
        if x.shape[0 if one else 1] != self.num_features:
            fail(f"{type(self).__name__}: needs an input with {self.num_features} channels, got {x.type}")
        example = self.training or self.running_mean is None
        out = ops.instance_norm(
            ops.expand_dims(x, 0) if one else x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            example,
            self.momentum or 0.0,
            self.eps,
        )
        return ops.reshape(out, *x.shape)


class InstanceNorm1d(_InstanceNorm):
    """`instance_norm` of `[N, C, L]` or `[C, L]`; arguments as `InstanceNorm2d`."""

    _ndims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """`instance_norm` of images `[N, C, H, W]` or `[C, H, W]`: each channel of each example by itself.

    Args:
        num_features: C.
        eps: added to the variance.
        momentum: how far running statistics move towards the averages over the batch; None is 0.
        affine: whether there are weight (ones) and bias (zeros).
        track_running_stats: keep running statistics, with which evaluation normalizes.
        bias: False leaves out the bias alone.
    """

    _ndims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """`instance_norm` of volumes `[N, C, D, H, W]` or `[C, D, H, W]`; arguments as `InstanceNorm2d`."""

    _ndims = (4, 5)
