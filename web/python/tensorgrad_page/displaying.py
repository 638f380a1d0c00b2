"""`display(value)`: pictures, tables and figures between the printed lines."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorgrad_page.pictures import is_picture, picture

LARGEST = 20_000_000
"""Characters of one message."""

MOST_LINES = 20
"""Of an array in numbers; of a longer one both ends are shown."""


class Display:
    """Show values in the transcript, each in the richest form that it has.

    Args:
        post: takes one JSON text, `{"kind", "data", "alt"}`: `html` (untrusted) and `text` as they are,
            `svg` and `png` in base64; a `png` of an array has its `width` and `height` too.

    Example:
        >>> sent = []
        >>> display = Display(sent.append)
        >>> display("two", 2)
        >>> [json.loads(text)["data"] for text in sent]
        ["'two'", '2']
    """

    def __init__(self, post: Callable[[str], None]) -> None:
        self._post = post

    def __repr__(self) -> str:
        return "display(*values): shows arrays as pictures, and figures, images and tables as what they are"

    def __call__(self, *values: object) -> None:
        """Show values one below the other.

        A value is shown by its `_repr_html_`, `_repr_svg_` or `_repr_png_`, the first that gives something;
        a matplotlib figure as the image that it saves; an array of rows and columns (and colours, or several)
        as a picture, other arrays as numbers, of long ones both ends and the shape; anything else as its repr.
        """
        for value in values:
            message = json.dumps(form(value))
            if len(message) > LARGEST:
                raise ValueError(f"display() was given {len(message) / 1e6:.0f} MB to show; it shows at most 20 MB")
            self._post(message)


def form(value: Any) -> dict[str, Any]:
    """The message for one value."""
    kind = type(value).__name__
    for name in ("html", "svg", "png"):
        method = getattr(type(value), f"_repr_{name}_", None)
        found = method(value) if method is not None else None
        if isinstance(found, tuple):  # with metadata, as IPython allows
            found = found[0]
        if found:
            data = found if name == "html" else _base64(found)
            return {"kind": name, "data": data, "alt": kind}
    if hasattr(value, "savefig"):
        file = io.BytesIO()
        value.savefig(file, format="png", bbox_inches="tight")
        return {"kind": "png", "data": _base64(file.getvalue()), "alt": kind}
    if (array := _array(value)) is not None:
        data, width, height, words = picture(array)
        return {"kind": "png", "data": _base64(data), "width": width, "height": height, "alt": words}
    return {"kind": "text", "data": _text(value), "alt": kind}


def _text(value: Any) -> str:
    text = repr(value)
    if not isinstance(value, np.ndarray) or not value.ndim or len(value) <= MOST_LINES or text.count("\n") < MOST_LINES:
        return text
    with np.printoptions(threshold=0, edgeitems=MOST_LINES // 2 if value.ndim < 3 else 3):
        return repr(value)


def _array(value: Any) -> np.ndarray[Any, Any] | None:
    """The array to draw, where there is one."""
    if not isinstance(value, np.ndarray):
        try:
            value = np.asarray(value) if hasattr(value, "__array__") else None
        except Exception:  # what cannot become an array now is shown by its repr
            return None
    return value if value is not None and is_picture(value) else None


def _base64(data: bytes | str) -> str:
    """Bytes, or text as UTF-8."""
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()
