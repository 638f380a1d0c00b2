"""Element types, shape specs and the promotion rules.

A `DType` names how one element is stored on the device. Indexing a dtype with a
shape gives a `Spec`, the way the inputs of a compiled function are declared:

>>> from tensorgrad.dtypes import f32, i32
>>> f32[64, 784]
f32[64, 784]
>>> i32[None].concrete((7,))
i32[7]
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tensorgrad.callsite import call_site
from tensorgrad.errors import DtypeError

Kind = Literal["b", "u", "i", "f"]
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """An element type. There is one object of each, so they compare by identity.

    Attributes:
        name: how it prints, `f32`.
        kind: `b`, `u`, `i` or `f`, as in NumPy.
        itemsize: bytes of one stored element; a bool is stored as a u32.
        numpy: the NumPy dtype of a host array of it.
        storage: the NumPy dtype of its bytes on the device.
        rank: its place in the promotion order.
    """

    name: str
    kind: Kind
    itemsize: int
    numpy: np.dtype
    storage: np.dtype
    rank: int

    def __getitem__(self, shape: int | tuple[int | None, ...] | None) -> Spec:
        return Spec(shape if isinstance(shape, tuple) else (shape,), self)

    def __repr__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        """Whether it is f16 or f32."""
        return self.kind == "f"

    @property
    def type(self) -> type[np.generic]:
        """NumPy's scalar type, as `np.dtype.type`: jaxtyping's annotations ask for it."""
        return self.numpy.type


def _dtype(name: str, kind: Kind, numpy: str, storage: str, rank: int) -> DType:
    return DType(name, kind, np.dtype(storage).itemsize, np.dtype(numpy), np.dtype(storage), rank)


bool_ = _dtype("bool", "b", "bool", "uint32", 0)
"""True or false; the device stores each as a u32."""

u32 = _dtype("u32", "u", "uint32", "uint32", 1)
"""Whole numbers from 0 to 2**32 - 1, as random bits are."""

i32 = _dtype("i32", "i", "int32", "int32", 2)
"""Whole numbers from -2**31 to 2**31 - 1: labels, tokens and indices."""

f16 = _dtype("f16", "f", "float16", "float16", 3)
"""Half precision; as `dtype=` of `tg.compile` it is mixed precision. A GPU needs the feature `shader-f16`."""

f32 = _dtype("f32", "f", "float32", "float32", 4)
"""Single precision, the dtype of everything that does not ask for another: `tg.f32[64, 784]` declares an input."""

ALL = (bool_, u32, i32, f16, f32)
BY_NAME = {d.name: d for d in ALL}


@dataclass(frozen=True, slots=True)
class Spec:
    """A shape and a dtype; None stands for a size that the first call fixes."""

    shape: tuple[int | None, ...]
    dtype: DType

    def __post_init__(self) -> None:
        for size in self.shape:
            if size is not None and (not isinstance(size, int | np.integer) or size < 0):
                raise DtypeError(f"a spec's sizes are whole numbers from 0 or None, got {self.shape}", call_site())

    def __repr__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    @property
    def is_concrete(self) -> bool:
        """Whether no size is open."""
        return None not in self.shape

    @property
    def static_shape(self) -> Shape:
        """The shape, of which no size may be open.

        Raises:
            DtypeError: if one is.
        """
        sizes = tuple(n for n in self.shape if n is not None)
        if len(sizes) < len(self.shape):
            raise DtypeError(f"{self} has an open size; a trace needs all of them", call_site())
        return sizes

    def concrete(self, shape: Shape) -> Spec:
        """The same spec with its open sizes taken from `shape`."""
        return Spec(shape, self.dtype)


def from_numpy(dtype: np.dtype) -> DType:
    """The device dtype that holds a NumPy dtype: float64 narrows to f32, wide integers to i32."""
    kind = dtype.kind
    if kind == "b":
        return bool_
    if kind == "f":
        return f16 if dtype.itemsize == 2 else f32
    if kind == "u":
        return u32 if dtype.itemsize == 4 else i32
    if kind == "i":
        return i32
    raise DtypeError(f"no device dtype holds NumPy's {dtype}; use float, integer or bool arrays")


def as_dtype(value: Any, default: DType | None = None) -> DType:
    """The dtype that an argument names: one of ours, or NumPy's or Python's, which arrays of it become.

    Args:
        default: what None stands for.

    Raises:
        DtypeError: it names none.

    >>> as_dtype(np.int64), as_dtype("float32"), as_dtype(bool)
    (i32, f32, bool)
    """
    if isinstance(value, DType):
        return value
    if value is None and default is not None:
        return default
    if isinstance(value, str) and value in BY_NAME:
        return BY_NAME[value]
    if isinstance(value, str | type | np.dtype):  # np.dtype also takes None, and whatever has a dtype
        with suppress(DtypeError, TypeError, ValueError):
            return from_numpy(np.dtype(value))
    names = "tg.f32, tg.i32, tg.u32, tg.bool_ or tg.f16"
    raise DtypeError(f"a dtype is {names}, or NumPy's for one of them, got {value!r}", call_site())


def promote(a: DType, b: DType) -> DType:
    """The dtype in which two tensors meet, as in PyTorch: bool < integers < floats.

    Raises:
        DtypeError: for i32 with u32, which would need 64 bits.

    >>> promote(i32, f32)
    f32
    """
    if {a, b} == {i32, u32}:
        raise DtypeError("i32 and u32 have no common 32-bit dtype; convert one with .astype(tg.i32)")
    return a if a.rank >= b.rank else b


def promote_scalar(tensor: DType, value: bool | int | float) -> DType:
    """The dtype in which a tensor meets a Python number: the number is weak, as in PyTorch."""
    if isinstance(value, bool | np.bool_):
        return tensor
    if isinstance(value, int | np.integer):
        return i32 if tensor is bool_ else tensor
    return tensor if tensor.is_float else f32
