"""Modules that move elements about: flattening, padding, resizing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tensorgrad import ops
from tensorgrad.nn.module import Module
from tensorgrad.ops.core import TensorLike
from tensorgrad.ops.padding import pad_from_last
from tensorgrad.ops.windows import numbers
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
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, x: TensorLike) -> Tensor:
        return ops.unflatten(x, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"{self.dim}, {self.unflattened_size}"


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
