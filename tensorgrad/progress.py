"""How far a long run is, in one line: redrawn in a terminal, a notebook and the page; else printed now and then."""

from __future__ import annotations

import importlib
import shutil
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

BETWEEN_DRAWS = 0.25
"""Seconds from one drawing of the line to the next."""

BETWEEN_LINES = 10.0
"""Seconds from one line to the next, where lines cannot be redrawn."""

WIDTH = 24
"""Characters of a bar."""


_follower: Callable[[np.ndarray], Any] | None = None


def follow(take: Callable[[np.ndarray], Any] | None) -> None:
    """Has `take` called with the losses of whatever shows its progress, a few times a second: a page may draw them.

    Args:
        take: gets the losses of the steps since it was called last; None calls nobody.
    """
    global _follower
    _follower = take


class Progress:
    """A bar, a count and a text.

    Args:
        total: steps to make; None where that is not known.
        show: False draws nothing.
    """

    def __init__(self, total: int | None, show: bool = True) -> None:
        self._total, self._write = total, _writer() if show else None
        self._start = self._drawn = time.perf_counter()
        self._done = 0

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self._start

    @property
    def due(self) -> bool:
        """Whether the line should be drawn again, or would be if it were shown."""
        return time.perf_counter() - self._drawn >= BETWEEN_DRAWS

    def tell(self, losses: np.ndarray) -> None:
        """Passes losses on to who follows."""
        if self._write is not None and _follower is not None:
            _follower(losses)

    def draw(self, done: int, text: str, *, last: bool = False) -> None:
        """Shows how many steps were made; the `last` time, the line stays."""
        if self._write is not None:
            self._write(progress_line(done, self._total, self.seconds, text, last), last)
        self._drawn = time.perf_counter()


def progress_line(done: int, total: int | None, seconds: float, text: str, last: bool = False) -> str:
    """The line: a bar where the total is known, the count, a text, and times.

    >>> progress_line(250, 1000, 2.0, "loss 0.5000")
    '[######------------------] 250/1,000 steps, loss 0.5000, 125/s, 6 s left'
    >>> progress_line(250, None, 2.0, "")
    '250 steps, 125/s'
    """
    rate = done / seconds if seconds > 0 else 0.0
    parts = [
        f"{done:,}{f'/{total:,}' if total else ''} steps",
        text,
        f"{rate:,.3g}/s" if rate < 100 else f"{rate:,.0f}/s",
    ]
    if last:
        parts.append(show_seconds(seconds))
    elif total and rate:
        parts.append(f"{show_seconds((total - done) / rate)} left")
    filled = min(WIDTH, WIDTH * done // total) if total else 0
    bar = f"[{'#' * filled}{'-' * (WIDTH - filled)}] " if total else ""
    return bar + ", ".join(part for part in parts if part)


def show_seconds(seconds: float) -> str:
    """
    >>> show_seconds(0.25), show_seconds(75), show_seconds(7300)
    ('0.25 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _writer() -> Callable[[str, bool], None]:
    """Takes a line, and whether it is the last one."""
    if (display := _notebook_display()) is not None:
        handle = display({"text/plain": ""}, raw=True, display_id=True)
        return lambda line, last: handle.update({"text/plain": line}, raw=True)
    try:
        redraws = sys.stdout.isatty()
    except (AttributeError, ValueError):  # no stdout, or a closed one
        return lambda line, last: None
    return _redraw if redraws else _Lines()


def _notebook_display() -> Any:
    """IPython's `display` where a notebook runs this; IPython's terminal is one like any other."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or type(shell).__name__ == "TerminalInteractiveShell":
        return None
    return importlib.import_module("IPython.display").display


def _redraw(line: str, last: bool) -> None:
    """Writes over the line; what it leaves of a longer one is erased."""
    most = shutil.get_terminal_size().columns - 1
    sys.stdout.write(f"\r{line[:most]}\x1b[K" + "\n" * last)
    sys.stdout.flush()


class _Lines:
    """Prints the last line, and one now and then before."""

    def __init__(self) -> None:
        self._printed = time.perf_counter()

    def __call__(self, line: str, last: bool) -> None:
        if last or time.perf_counter() - self._printed >= BETWEEN_LINES:
            self._printed = time.perf_counter()
            print(line, flush=True)
