"""Where in the user's code an operation was called."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class CallSite(NamedTuple):
    """A line of the user's code."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


OTHERS = frozenset({"tensorgrad", "numpy", "asyncio", "pyodide", "contextlib"})
"""Top-level modules whose frames are nobody's: the library's own, NumPy's that called it, what runs coroutines."""

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
    frame, inner = _user_frame()
    if inner is not None and inner.f_code is deferred.__code__:
        return inner.f_locals["site"]
    return None if frame is None else CallSite(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def called() -> str:
    """The name of the library's function that the user's line called."""
    _, inner = _user_frame()
    return "" if inner is None else inner.f_code.co_name


def warn(message: str) -> None:
    """A RuntimeWarning at the user's line, however deep in the library it is found."""
    frame, _ = _user_frame()
    if frame is None:
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        return
    place = frame.f_code.co_filename, frame.f_lineno
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, RuntimeWarning, *place, frame.f_globals.get("__name__") or "<string>", registry)


def _user_frame() -> tuple[FrameType | None, FrameType | None]:
    """The innermost frame outside the library (None where work was put off), and the library's frame that it called."""
    frame, inner = sys._getframe(1), None
    while frame is not None:
        name: str = frame.f_globals.get("__name__", "")
        top = name.partition(".")[0]
        if top not in OTHERS:
            return frame, inner
        inner = frame if top == "tensorgrad" else inner
        if frame.f_code is deferred.__code__:
            return None, frame
        frame = frame.f_back
    return None, inner
