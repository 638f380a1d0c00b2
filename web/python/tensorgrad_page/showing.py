"""`show(name=value)`: gives values to the picture of a lesson."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

MOST_NUMBERS = 512
"""A larger array is a picture: it goes as bytes, 256 shades between its least and its greatest number."""


class Show:
    """Give values to the picture of the page, each by a name that the picture knows.

    Args:
        post: takes one JSON text, an object of the values by name.

    Example:
        >>> sent = []
        >>> show = Show(sent.append)
        >>> show(slope=np.float32(1.5), x=np.arange(3))
        >>> sent
        ['{"slope": 1.5, "x": [0, 1, 2]}']
    """

    def __init__(self, post: Callable[[str], None]) -> None:
        self._post = post

    def __repr__(self) -> str:
        return "show(name=value): gives values to the picture of a lesson"

    def __call__(self, **values: Any) -> None:
        """Show values: numbers, words, arrays, and lists, tuples and mappings of them."""
        self._post(json.dumps(form(values)))


def form(value: Any) -> Any:
    """A value as JSON can hold it; numbers that are not finite become null.

    Example:
        >>> form({"a": (1, float("nan"))})
        {'a': [1, None]}
        >>> form(np.linspace(0, 1, 1024))["shape"]
        [1024]
    """
    if isinstance(value, Mapping):
        return {str(name): form(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [form(part) for part in value]
    if value is None or isinstance(value, str | bool):
        return value
    array = np.asarray(value)
    if array.dtype.kind not in "buif":
        raise TypeError(f"show() takes numbers, words and arrays, not {type(value).__name__}")
    return _shades(array) if array.size > MOST_NUMBERS else _numbers(array.tolist())


def _numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [_numbers(part) for part in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def _shades(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    finite = np.nan_to_num(array.astype(np.float32), posinf=0, neginf=0)
    low, high = float(finite.min()), float(finite.max())
    levels = np.rint((finite - low) * (255 / ((high - low) or 1))).astype(np.uint8)
    data = base64.b64encode(levels.tobytes()).decode()
    return {"shape": list(array.shape), "low": low, "high": high, "data": data}
