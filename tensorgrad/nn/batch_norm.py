"""Batch normalization: PyTorch's arguments, defaults and keys."""

from __future__ import annotations

import numpy as np

from tensorgrad import ops
from tensorgrad.dtypes import DType, f32
from tensorgrad.nn import init
from tensorgrad.nn.normalization import Affine
from tensorgrad.nn.parameter import Buffer
from tensorgrad.ops.core import TensorLike
from tensorgrad.shape import fail
from tensorgrad.tensor import Tensor
from tensorgrad.trace import update_state, updated_state


class _BatchNorm(Affine):
    _ndims: tuple[int, ...] = ()

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
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._add_affine((num_features,), affine, affine and bias, dtype)
        tracks = track_running_stats
        self.running_mean = Buffer(np.zeros(num_features, dtype.numpy)) if tracks else None
        self.running_var = Buffer(np.ones(num_features, dtype.numpy)) if tracks else None
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

    def forward(self, x: TensorLike) -> Tensor:
        x = ops.tensor(x)
        if x.ndim not in self._ndims:
            fail(f"{type(self).__name__}: needs an input with {' or '.join(map(str, self._ndims))} axes, got {x.type}")
        momentum = 0.0 if self.momentum is None else self.momentum
        count = self.num_batches_tracked
        if self.training and count is not None:
            seen = updated_state(count) + 1
            update_state(count, seen)
            if self.momentum is None:
                momentum = 1.0 / ops.cast(seen, x.dtype)  # the plain average of all batches
        batch = self.training or self.running_mean is None
        return ops.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, batch, momentum, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps:g}, momentum={self.momentum}"


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
