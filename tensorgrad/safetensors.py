"""Files of tensors in the safetensors format: named arrays with a JSON header, and no code in them.

A file is the header's length (u64), the header, and the tensors' bytes. The header gives each tensor's dtype, shape
and place; here the places have to fill the rest of the file exactly, so that nothing hides between them. Whatever is
wrong with a file is a `CheckpointError` that says what, before any tensor is made of it.

The format is described at https://github.com/huggingface/safetensors.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np

from tensorgrad.callsite import call_site
from tensorgrad.errors import CheckpointError, InputError

__all__ = ["load", "load_file", "metadata", "save", "save_file"]

Source = bytes | bytearray | memoryview | str | Path | BinaryIO
"""Bytes, a path, or a file that is open for reading bytes."""

MOST_HEADER = 100_000_000
"""Bytes of a header, as in the format's own library."""

MOST_AXES = 64
"""Of a NumPy array."""

DTYPES = {
    "BOOL": np.dtype("bool"),
    "U8": np.dtype("u1"),
    "I8": np.dtype("i1"),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),  # NumPy has none: read as bits, and widened
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "F32": np.dtype("<f4"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F64": np.dtype("<f8"),
}
NAMES = {(dtype.kind, dtype.itemsize): name for name, dtype in DTYPES.items() if name != "BF16"}


class _Entry(NamedTuple):
    """A tensor as the header has it; `start` and `stop` count from the end of the header."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


def save(tensors: Mapping[str, Any], metadata: Mapping[str, str] | None = None, *, dtype: str | None = None) -> bytes:
    """Arrays as the bytes of a safetensors file.

    Args:
        tensors: arrays by name, of floats, integers or bools; of any shape.
        metadata: texts by name, kept in the header.
        dtype: how arrays of floats are written: `"F32"`, `"F16"`, `"BF16"` or `"F64"`; None: as they are.
            Rounded to the nearest, ties to even.

    Raises:
        InputError: a name that is no text, an array of another dtype.

    >>> import numpy as np
    >>> from tensorgrad import safetensors
    >>> data = safetensors.save({"w": np.ones((2, 3), np.float32)}, {"made by": "me"})
    >>> safetensors.load(data)["w"].shape, safetensors.metadata(data)
    ((2, 3), {'made by': 'me'})
    """
    header, arrays = _encode(tensors, metadata, dtype)
    return b"".join([header, *(array.tobytes() for array in arrays)])


def save_file(
    tensors: Mapping[str, Any],
    file: str | Path | BinaryIO,
    metadata: Mapping[str, str] | None = None,
    *,
    dtype: str | None = None,
) -> None:
    """Writes a safetensors file, to a path or to a file that is open for writing bytes; see `save`."""
    header, arrays = _encode(tensors, metadata, dtype)
    if isinstance(file, str | Path):
        with open(file, "wb") as opened:
            _write(opened, header, arrays)
    else:
        _write(file, header, arrays)


def load(source: Source) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file by name.

    They are views of the bytes where these lie aligned (and so read-only, if the bytes are). bfloat16, which NumPy
    lacks, is widened to float32.

    Args:
        source: bytes, a path, or a file that is open for reading bytes.

    Raises:
        CheckpointError: it is no such file, or a damaged one; the message says where.
    """
    return read(source)[0]


load_file = load
"""The name that the format's own library has for reading a path."""


def metadata(source: Source) -> dict[str, str]:
    """The texts in the header of a safetensors file; see `load`."""
    return read(source)[1]


def read(source: Source) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays and the texts of a safetensors file; see `load`."""
    data = _bytes(source)
    entries, texts, start = _decode(data)
    return {name: _array(data, start, entry) for name, entry in entries.items()}, texts


# -- writing -------------------------------------------------------------------------------------


def _encode(
    tensors: Mapping[str, Any], metadata: Mapping[str, str] | None, dtype: str | None
) -> tuple[bytes, list[np.ndarray]]:
    """The length and header of a file, and the arrays that follow."""
    if dtype not in (None, "F64", "F32", "F16", "BF16"):
        raise InputError(f"floats are written as 'F64', 'F32', 'F16' or 'BF16', not as {dtype!r}", call_site())
    found = {name: _stored(name, value, dtype) for name, value in tensors.items()}
    # wide elements first, so that everything is aligned; the header is padded for the same reason
    order = sorted(found, key=lambda name: (-found[name][1].itemsize, name))
    header: dict[str, Any] = {"__metadata__": _texts(metadata)} if metadata else {}
    at = 0
    for name in order:
        kind, array = found[name]
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": (at, at + array.nbytes)}
        at += array.nbytes
    try:
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise InputError(f"a name or text of the file is not Unicode: {error}", call_site()) from None
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text, [found[name][1] for name in order]


def _stored(name: Any, value: Any, dtype: str | None) -> tuple[str, np.ndarray]:
    """An array's dtype in the file, and the array in it."""
    if not isinstance(name, str) or name == "__metadata__":
        raise InputError(f"a tensor's name is a string other than '__metadata__', got {name!r}", call_site())
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name!r} is not an array: {error}", call_site()) from None
    if array.dtype.kind == "f" and dtype == "BF16":
        return "BF16", _to_bfloat16(array)
    if array.dtype.kind == "f" and dtype is not None:
        with np.errstate(over="ignore"):
            array = array.astype(DTYPES[dtype])
    kind = NAMES.get((array.dtype.kind, array.dtype.itemsize))
    if kind is None:
        raise InputError(f"{name!r} has dtype {array.dtype}; floats, integers and bools can be saved", call_site())
    return kind, np.asarray(array, DTYPES[kind], order="C")


def _to_bfloat16(array: np.ndarray) -> np.ndarray:
    """The upper half of float32, rounded to nearest, ties to even, as bits."""
    with np.errstate(over="ignore"):
        bits = array.astype(np.float32).view(np.uint32)
        rounded = bits + 0x7FFF + (bits >> 16 & 1)
    # rounding may carry a NaN's bits out of their field
    return np.asarray(np.where(np.isnan(array), bits >> 16 | 0x40, rounded >> 16), "<u2", order="C")


def _texts(metadata: Mapping[str, str]) -> dict[str, str]:
    for key, value in metadata.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise InputError(f"metadata are texts by name, got {key!r}: {value!r}", call_site())
    return dict(metadata)


def _write(file: BinaryIO, header: bytes, arrays: list[np.ndarray]) -> None:
    file.write(header)
    for array in arrays:
        file.write(array.tobytes())


# -- reading -------------------------------------------------------------------------------------


def _bytes(source: Any) -> memoryview:
    if isinstance(source, str | Path):
        return memoryview(Path(source).read_bytes())
    data = source.read() if hasattr(source, "read") else source
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InputError(
            f"expected bytes, a path or a file open for reading bytes, got {type(source).__name__}", call_site()
        )
    view = memoryview(data)
    return view.cast("B") if view.c_contiguous else memoryview(view.tobytes())


def _decode(data: memoryview) -> tuple[dict[str, _Entry], dict[str, str], int]:
    """The header's tensors and texts, checked, and where the tensors' bytes start."""
    if len(data) < 8:
        _refuse(f"it has {len(data)} bytes, and its first 8 give the length of the header")
    if data[:4] == b"PK\3\4":
        _refuse("it is a zip, as PyTorch's .pt files are; there, write it with safetensors.torch.save_file")
    (length,) = struct.unpack_from("<Q", data)
    if length > MOST_HEADER:
        _refuse(f"its header would have {length:,} bytes; {MOST_HEADER:,} are allowed")
    if length > len(data) - 8:
        _refuse(f"it is cut off: its header has {length:,} bytes, and {len(data) - 8:,} are there")
    header = _json(bytes(data[8 : 8 + length]))
    texts = header.pop("__metadata__", {})
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        _refuse("its __metadata__ are not texts by name")
    entries = {name: _entry(name, given) for name, given in header.items()}
    _check_places(entries, len(data) - 8 - length)
    return entries, texts, 8 + length


def _json(text: bytes) -> dict[str, Any]:
    if not text.startswith(b"{"):
        _refuse("its header does not start with '{'")
    try:
        return json.loads(text.decode(), object_pairs_hook=_once, parse_constant=_no_number)
    except CheckpointError:
        raise
    except RecursionError:
        _refuse("its header is nested too deeply")
    except ValueError as error:  # of JSON and of UTF-8
        _refuse(f"its header is not JSON: {error}")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of a list of pairs, of which no two have one name."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        _refuse(f"its header has {next(n for n in names if names.count(n) > 1)!r} twice")
    return found


def _no_number(text: str) -> NoReturn:
    _refuse(f"its header is not JSON: {text} is no number there")


def _entry(name: str, given: Any) -> _Entry:
    if not isinstance(given, dict) or not {"dtype", "shape", "data_offsets"} <= given.keys():
        _refuse(f"{name!r} has no dtype, shape and data_offsets")
    dtype, shape, place = given["dtype"], given["shape"], given["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        _refuse(f"{name!r} has dtype {dtype!r}, which is none of {', '.join(DTYPES)}")
    if not _are_sizes(shape):
        _refuse(f"{name!r} has the shape {shape!r}, which is no list of whole numbers from 0")
    if not _are_sizes(place) or len(place) != 2:
        _refuse(f"{name!r} has the data_offsets {place!r}, which are no two whole numbers from 0")
    itemsize = DTYPES[dtype].itemsize
    if len(shape) > MOST_AXES or math.prod(max(size, 1) for size in shape) * itemsize >= 2**63:
        _refuse(f"{name!r} has a shape that is too large for an array: {dtype}{shape}")
    wanted, (start, stop) = math.prod(shape) * itemsize, place
    if stop - start != wanted:
        _refuse(f"{name!r} is {dtype}{shape}, {wanted:,} bytes, but its data_offsets {place} hold {stop - start:,}")
    return _Entry(dtype, tuple(shape), start, stop)


def _are_sizes(given: Any) -> bool:
    return isinstance(given, list) and all(type(size) is int and 0 <= size < 2**63 for size in given)


def _check_places(entries: Mapping[str, _Entry], room: int) -> None:
    """The tensors have to fill the bytes after the header, one after the other."""
    at = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].start, item[1].stop)):
        if entry.start != at:
            _refuse(f"{name!r} starts at byte {entry.start:,}, but what lies before it ends at {at:,}")
        at = entry.stop
    if at > room:
        _refuse(f"it is cut off: its tensors have {at:,} bytes, and {room:,} are there")
    if at < room:
        _refuse(f"{room - at:,} bytes follow its last tensor, which belong to none")


def _array(data: memoryview, start: int, entry: _Entry) -> np.ndarray:
    dtype = DTYPES[entry.dtype]
    flat = np.frombuffer(data[start + entry.start : start + entry.stop], np.uint8)
    # bools are copied: whatever byte is not 0 is True
    flat = flat != 0 if dtype.kind == "b" else flat.view(dtype)
    if entry.dtype == "BF16":
        flat = (flat.astype(np.uint32) << 16).view(np.float32)
    return (flat if flat.flags.aligned else flat.copy()).reshape(entry.shape)


def _refuse(why: str) -> NoReturn:
    raise CheckpointError(f"this is no valid safetensors file, and nothing was loaded: {why}", call_site())
