"""einops on traced tensors: `rearrange`, `reduce`, `repeat`, `einsum`, `pack` and `unpack`, and layers.

einops finds the library of a tensor among the subclasses of its `AbstractBackend`, and has no other registry. So this
module defines one, and is imported when a trace starts and einops is there; nothing here imports einops before the user
does. The layers are modules, as those of `einops.layers.torch` are PyTorch's:

    from tensorgrad.einops import EinMix, Rearrange, Reduce
"""

# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from einops._backends import AbstractBackend
from einops.layers import RearrangeMixin, ReduceMixin
from einops.layers._einmix import _EinmixMixin

from tensorgrad import nn, ops
from tensorgrad.tensor import Tensor

__all__ = ["EinMix", "Rearrange", "Reduce"]


class TensorgradBackend(AbstractBackend):
    """What einops asks of a library."""

    framework_name = "tensorgrad"

    def is_appropriate_type(self, tensor: Any) -> bool:
        return isinstance(tensor, Tensor)

    def transpose(self, x: Tensor, axes: tuple[int, ...]) -> Tensor:
        return ops.permute(x, *axes)

    def reduce(self, x: Tensor, operation: str, axes: tuple[int, ...]) -> Tensor:
        return getattr(ops, operation)(x, axes)

    def stack_on_zeroth_dimension(self, tensors: list[Tensor]) -> Tensor:
        return ops.stack(tensors)

    def add_axes(self, x: Tensor, n_axes: int, pos2len: dict[int, int]) -> Tensor:
        for place in pos2len:
            x = ops.expand_dims(x, place)
        return ops.broadcast_to(x, *(pos2len.get(i, n) for i, n in enumerate(x.shape)))

    def concat(self, tensors: list[Tensor], axis: int) -> Tensor:
        return ops.concat(tensors, axis)

    def is_float_type(self, x: Tensor) -> bool:
        return x.dtype.is_float

    def einsum(self, pattern: str, *x: Tensor) -> Tensor:
        return ops.einsum(pattern, *x)


class _Layer(nn.Module):
    """What `Rearrange` and `Reduce` have in common."""

    pattern: str
    axes_lengths: dict[str, int]
    _apply_recipe: Callable[[Tensor], Tensor]

    def forward(self, x: Tensor) -> Tensor:
        return self._apply_recipe(x)

    def extra_repr(self) -> str:
        return ", ".join([repr(self.pattern), *(f"{name}={size}" for name, size in self.axes_lengths.items())])


class Rearrange(RearrangeMixin, _Layer):
    """`einops.rearrange` as a module."""


class Reduce(ReduceMixin, _Layer):
    """`einops.reduce` as a module."""


class EinMix(_EinmixMixin, nn.Module):
    """An einsum with a weight, and a bias; see `einops.layers.torch.EinMix`."""

    weight: nn.Parameter
    bias: nn.Parameter | None

    def _create_parameters(self, weight_shape: Any, weight_bound: float, bias_shape: Any, bias_bound: float) -> None:
        self.weight = nn.Parameter(np.zeros(weight_shape))
        nn.init.uniform_(self.weight, -weight_bound, weight_bound)
        self.bias = None if bias_shape is None else nn.Parameter(np.zeros(bias_shape))
        if self.bias is not None:
            nn.init.uniform_(self.bias, -bias_bound, bias_bound)

    def _create_rearrange_layers(
        self,
        pre_reshape_pattern: str | None,
        pre_reshape_lengths: Any,
        post_reshape_pattern: str | None,
        post_reshape_lengths: Any,
    ) -> None:
        before, after = pre_reshape_pattern, post_reshape_pattern
        self.before = None if before is None else Rearrange(before, **pre_reshape_lengths)
        self.after = None if after is None else Rearrange(after, **post_reshape_lengths)

    def forward(self, x: Tensor) -> Tensor:
        x = x if self.before is None else self.before(x)
        x = ops.einsum(self.einsum_pattern, x, self.weight)
        x = x if self.bias is None else x + self.bias
        return x if self.after is None else self.after(x)
