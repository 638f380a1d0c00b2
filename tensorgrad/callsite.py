"""Where in the user's code an operation was called."""

from __future__ import annotations

import sys
from typing import NamedTuple


class CallSite(NamedTuple):
    """A line of the user's code."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


def call_site() -> CallSite | None:
    """The innermost frame outside the library, found by module name."""
    frame = sys._getframe(1)
    while frame is not None:
        name: str = frame.f_globals.get("__name__", "")
        if name != "tensorgrad" and not name.startswith("tensorgrad."):
            return CallSite(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return None
