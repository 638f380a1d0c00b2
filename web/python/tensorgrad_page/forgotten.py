"""The commonest slip at a prompt: `await` left out. Said once, with the line where it was.

Python warns when the coroutine is thrown away, which may be some inputs later, names a line
of whatever runs then, and repeats itself in a loop.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Coroutine
from typing import Any

Warn = Callable[[Coroutine[Any, Any, Any]], None]


class Forgotten:
    """Tells of coroutines of the user that nobody awaited.

    Args:
        is_input: whether a file name is that of an input.
        otherwise: tells of the coroutines made elsewhere; Python's own warning.
    """

    def __init__(self, is_input: Callable[[str], bool], otherwise: Warn) -> None:
        self._is_input, self._otherwise = is_input, otherwise
        self._hinted: set[int] = set()
        self._told: set[tuple[str, int, str]] = set()

    @classmethod
    def watch(cls, is_input: Callable[[str], bool]) -> Forgotten:
        """From now on, in place of Python's own warning."""
        watcher = cls(is_input, warnings._warn_unawaited_coroutine)  # type: ignore[attr-defined]
        warnings._warn_unawaited_coroutine = watcher.tell  # type: ignore[attr-defined]  the interpreter calls it
        sys.set_coroutine_origin_tracking_depth(1)
        return watcher

    def hint(self, value: object) -> str:
        """A line for an input whose value is a coroutine; nothing more is said when it is thrown away."""
        if not inspect.iscoroutine(value):
            return ""
        self._hinted.add(id(value))
        return "Nothing has run yet: write await before the call.\n"

    def tell(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """A coroutine is being thrown away that was never awaited."""
        if id(coroutine) in self._hinted:
            self._hinted.remove(id(coroutine))
            return
        origin = getattr(coroutine, "cr_origin", None)
        if not origin or not self._is_input(origin[0][0]):
            self._otherwise(coroutine)
            return
        where = (*origin[0][:2], coroutine.__qualname__)
        if where not in self._told:
            self._told.add(where)
            file, line, name = where
            print(f"{file}, line {line}: {name}() has not run: write await before the call.", file=sys.stderr)
