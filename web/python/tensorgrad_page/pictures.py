"""Arrays as PNG files, with nothing but zlib."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

MOST_TILES = 100
SMALLEST_SIDE = 4  # a smaller array is read more easily as numbers


def is_picture(array: np.ndarray[Any, Any]) -> bool:
    """Whether an array is shown as a picture rather than as numbers: rows and columns of numbers, with
    colours in a last axis of 3 or 4, or several such pictures without colours.

    Example:
        >>> is_picture(np.zeros((28, 28))), is_picture(np.zeros((2, 3))), is_picture(np.zeros((8, 8, 3)))
        (True, False, True)
    """
    if array.dtype.kind not in "buif" or array.ndim not in (2, 3) or array.size == 0:
        return False
    sides = array.shape[:2] if array.ndim == 2 or _has_colours(array) else array.shape[1:]
    return min(sides) >= SMALLEST_SIDE


def picture(array: np.ndarray[Any, Any]) -> tuple[bytes, int, int, str]:
    """A PNG file of an array that `is_picture`, its width and height, and what it shows in words.

    Bytes are shown as they are and numbers from 0 to 1 as black to white; other numbers are stretched
    so that the least is black and the greatest white. What is not finite is transparent.
    """
    size, kind = " × ".join(map(str, array.shape)), str(array.dtype)
    tiles = array.ndim == 3 and not _has_colours(array)
    shown = _sheet(array[:MOST_TILES]) if tiles else array
    levels, scale = _levels(shown)
    left_out = f", the first {MOST_TILES}" if tiles and len(array) > MOST_TILES else ""
    gaps = "" if np.isfinite(array).all() else ", transparent where not finite"
    data, height, width = encode(levels), *levels.shape[:2]
    return data, width, height, f"{size} {kind}{scale}{gaps}{left_out}"


def encode(pixels: np.ndarray[Any, Any]) -> bytes:
    """A PNG file of bytes (height, width, 1, 2, 3 or 4): grey or RGB, each without or with opacity.

    The format is https://www.w3.org/TR/png-3/.
    """
    height, width, channels = pixels.shape
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # a row begins with its filter, 0 for none
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b""))
    chunks = (struct.pack(">I", len(d)) + tag + d + struct.pack(">I", zlib.crc32(tag + d)) for tag, d in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _has_colours(array: np.ndarray[Any, Any]) -> bool:
    return array.ndim == 3 and array.shape[2] in (3, 4)


def _levels(array: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], str]:
    """Bytes (height, width, channels) of an array, and how its numbers became them."""
    channels: np.ndarray[Any, Any] = array if array.ndim == 3 else array[:, :, None]
    if channels.dtype == np.uint8:
        return channels, ""
    if channels.dtype == np.bool_:
        return channels * np.uint8(255), ""
    finite = np.isfinite(channels)
    numbers = channels[finite].astype(np.float64)
    least, most = (float(numbers.min()), float(numbers.max())) if numbers.size else (0.0, 1.0)
    low, high = (0.0, 1.0) if least >= 0 and most <= 1 else (least, most)
    levels: np.ndarray[Any, Any] = np.zeros(channels.shape, np.uint8)
    levels[finite] = np.rint((numbers - low) * (255 / (high - low or 1)))
    words = f", {least:.4g} to {most:.4g}"
    if finite.all():
        return levels, words
    opaque = finite.all(axis=2, keepdims=True) * np.uint8(255)
    colours = levels[:, :, :3] if levels.shape[2] == 4 else levels
    return np.concatenate([colours, opaque], axis=2), words


def _sheet(pictures: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Pictures (n, height, width) side by side in rows, a line apart, as one."""
    count, height, width = pictures.shape
    columns = min(count, max(1, round((count * height / width) ** 0.5 * 1.6)))
    rows = -(-count // columns)
    gap = pictures.max() if pictures.dtype.kind != "f" else np.nan
    sheet = np.full((rows * (height + 1) - 1, columns * (width + 1) - 1), gap, pictures.dtype)
    for i, one in enumerate(pictures):
        y, x = i // columns * (height + 1), i % columns * (width + 1)
        sheet[y : y + height, x : x + width] = one
    return sheet
