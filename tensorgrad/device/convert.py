"""Between what the user holds and the bytes that a device stores.

Given values become NumPy arrays of a tensor's exact shape and dtype, or an InputError
that names the tensor; arrays become bytes (bool as u32, padded to whole words) and back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorgrad.dtypes import DType, Shape
from tensorgrad.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt  # only annotations name it, and it takes 2 ms to import


def as_array(what: str, value: Any, shape: Shape, dtype: DType) -> np.ndarray:
    """`value` as an array of this shape and dtype.

    Floats narrow (float64 to f32), integers convert where every element is in range, and
    plain Python numbers and lists become what is wanted. Nothing is broadcast or reshaped.

    Args:
        what: how messages call the value, `input 'x'`.
        value: an array, anything with `__array__` or the buffer protocol, a number or a list.

    Raises:
        InputError: another shape, a kind that would lose information, integers out of range.
    """
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InputError(f"{what} is not an array: {error}") from None
    if array.shape != shape:
        raise InputError(f"{what} has shape {_show(array.shape)}, expected {dtype}{_show(shape)}")
    if array.dtype == dtype.numpy:
        return array
    weak = not hasattr(value, "dtype")
    if dtype.is_float and (array.dtype.kind == "f" or (weak and array.dtype.kind in "iub")):
        with np.errstate(over="ignore"):
            return array.astype(dtype.numpy)
    if array.size == 0 and weak:
        return array.astype(dtype.numpy)
    if dtype.kind in "iu" and array.dtype.kind in "iu":
        return _fit(what, array, dtype)
    found = f"{what} has dtype {array.dtype}, expected {dtype}{_show(shape)}"
    raise InputError(f"{found}; {_conversion(array, dtype)}")


def _conversion(array: np.ndarray, dtype: DType) -> str:
    """How an array gets another dtype."""
    if array.dtype.kind in "USO" and any(isinstance(x, str | bytes) for x in array.flat):
        return "text has to become numbers first: class numbers, say, by np.unique(labels, return_inverse=True)[1]"
    if array.dtype.kind == "O":
        return "it holds Python objects; make it an array of numbers, with rows of equal length"
    return f"convert it with .astype({_numpy_name(dtype)})"


def _fit(what: str, array: np.ndarray, dtype: DType) -> np.ndarray:
    info = np.iinfo(dtype.numpy)
    if array.size:
        low, high = int(array.min()), int(array.max())
        if low < info.min or high > info.max:
            bad = low if low < info.min else high
            raise InputError(f"{what} holds {bad}, which {dtype} cannot store ({info.min} to {info.max})")
    return array.astype(dtype.numpy)


def to_bytes(array: npt.ArrayLike, dtype: DType, nbytes: int) -> np.ndarray:
    """The device's bytes of an array (uint8), zero-padded to `nbytes`."""
    stored = np.ascontiguousarray(array, dtype=dtype.storage).reshape(-1).view(np.uint8)
    if stored.nbytes == nbytes:
        return stored
    padded = np.zeros(nbytes, np.uint8)
    padded[: stored.nbytes] = stored
    return padded


def from_bytes(data: np.ndarray, shape: Shape, dtype: DType) -> np.ndarray:
    """The array that some device bytes stand for; shares their memory where it can."""
    size = math.prod(shape)
    stored = data[: size * dtype.itemsize].view(dtype.storage).reshape(shape)
    return stored.astype(bool) if dtype.kind == "b" else stored


def check_names(what: str, given: Iterable[str], wanted: Iterable[str]) -> None:
    """Raise InputError unless both hold the same names; the message lists what differs."""
    given, wanted = set(given), set(wanted)
    if given == wanted:
        return
    missing, extra = sorted(wanted - given), sorted(given - wanted, key=str)
    parts = [f"{kind} {what} {_names(names)}" for kind, names in (("missing", missing), ("unknown", extra)) if names]
    raise InputError(f"{' and '.join(parts)}; expected {_names(sorted(wanted)) or 'none'}")


def _names(names: Iterable[Any]) -> str:
    return ", ".join(repr(name) for name in names)


def _show(shape: Shape) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _numpy_name(dtype: DType) -> str:
    return "bool" if dtype.kind == "b" else f"np.{dtype.numpy.name}"
