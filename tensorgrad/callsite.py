"""Where in the user's code an operation was called."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class CallSite(NamedTuple):
    """A line of the user's code."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


_OTHERS = frozenset({"tensorgrad", "asyncio", "pyodide", "contextlib"})
"""Top-level modules whose frames are nobody's: the library's own, and what runs coroutines."""

_standing: list[CallSite] = []


@contextmanager
def standing_at(site: CallSite | None) -> Iterator[None]:
    """Operations in the block belong to this line: a gradient's to the line of what it is the gradient of."""
    if site is None:
        yield
        return
    _standing.append(site)
    try:
        yield
    finally:
        _standing.pop()


def deferred(site: CallSite | None, work: Callable[[], T]) -> T:
    """Does work that was put off: to it, the user's call was at `site`, whoever wants the result now."""
    return work()


def call_site() -> CallSite | None:
    """The innermost frame outside the library, found by module name, or the line that `standing_at` says."""
    if _standing:
        return _standing[-1]
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code is deferred.__code__:
            return frame.f_locals["site"]
        name: str = frame.f_globals.get("__name__", "")
        if name.partition(".")[0] not in _OTHERS:
            return CallSite(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return None
