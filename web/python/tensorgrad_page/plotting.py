"""`plot(value)`: a training loop draws a curve in the page by calling one function.

The curves are those of one run of the program. While the next run has drawn nothing they are marked as the run
before's; its first point removes them. What is plotted at the prompt goes on with them, as the prompt goes on with the
program's names.

Points are gathered here and sent a few times a second, so that a fast loop is not slowed
down by its own picture.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Callable, Iterable
from typing import SupportsFloat

SECONDS_BETWEEN_SENDS = 0.06


class Plot:
    """Draw a curve beside the console, point by point.

    Args:
        post: takes one JSON text: `{"kind": "points", "series": {name: [[step, value], ...]}}`
            or `{"kind": "clear", "name": name or null}`; or `{"kind": "old"}`, what is drawn is the run before's.

    Example:
        >>> sent = []
        >>> plot = Plot(sent.append)
        >>> plot(0.5)
        >>> plot.flush()
        >>> sent
        ['{"kind": "points", "series": {"loss": [[1, 0.5]]}}']
    """

    def __init__(self, post: Callable[[str], None]) -> None:
        self._post = post
        self._waiting: dict[str, list[list[float | None]]] = {}
        self._charts: dict[str, dict[str, float]] = {}  # chart -> curve -> the next point's step
        self.draw_in("")
        self._sent_at = -math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._over = False  # whether the curves are those of a run before
        self.__doc__ = type(self).__call__.__doc__  # what `plot?` and the editor tell

    def __repr__(self) -> str:
        return (
            "plot(value, name='loss', *, step=None): adds a point to a curve. Each run of the program begins new "
            "curves, the prompt goes on with them; plot.clear() removes them"
        )

    def __call__(self, value: SupportsFloat, name: str = "loss", *, step: float | None = None) -> None:
        """Add one point to the curve called `name`.

        Each run of the program begins new curves. At the prompt a curve goes on where it is, until `plot.clear()`.

        Args:
            value: the height of the point; NaN and infinity leave a gap.
            name: which curve; a new name starts a new one.
            step: where the point stands from left to right; one further than the last by default.
        """
        try:
            height = float(value)
        except (TypeError, ValueError):
            raise TypeError(f"plot() takes a number, such as result.loss, not {type(value).__name__}") from None
        if not isinstance(name, str):
            raise TypeError(
                f"plot() takes a curve's name as a string, not {name!r}; a step goes in by name: step={name!r}"
            )
        at = None if step is None else _number(step)
        if self._over:
            self.clear()
        if at is None:
            at = self._next_step.get(name, 1.0)
        self._next_step[name] = at + 1
        where = int(at) if at.is_integer() else at
        self._waiting.setdefault(name, []).append([where, height if math.isfinite(height) else None])
        if time.monotonic() - self._sent_at >= SECONDS_BETWEEN_SENDS:
            self.flush()
        elif self._timer is None:
            self._send_later()

    def add(self, values: Iterable[SupportsFloat]) -> None:
        """Add points to the curve called `loss`: what `train.fit` reads."""
        for value in values:
            self(value)

    def clear(self, name: str | None = None) -> None:
        """Remove the curve called `name`, or all of them."""
        self.flush()
        if name is None:
            self._over = False
            self._next_step.clear()
        else:
            self._next_step.pop(name, None)
        self._post(json.dumps({"kind": "clear", "name": name}))

    def draw_in(self, chart: str) -> None:
        """What is plotted from now on goes to this chart of the page, whose curves go on where they are."""
        self._next_step = self._charts.setdefault(chart, {})

    def begin(self) -> None:
        """A run of the program, or of a cell with its own chart, starts.

        What is drawn is the run before's; the first point of this one removes it.
        """
        self.flush()
        self._over = True
        self._post(json.dumps({"kind": "old"}))

    def flush(self) -> None:
        """Send what has gathered now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._sent_at = time.monotonic()
        if self._waiting:
            series, self._waiting = self._waiting, {}
            self._post(json.dumps({"kind": "points", "series": series}))

    def _send_later(self) -> None:
        """The last points of a burst must not wait for the next call, which may never come."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._timer = loop.call_later(SECONDS_BETWEEN_SENDS, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.flush()


def _number(step: float) -> float:
    try:
        at = float(step)
    except (TypeError, ValueError):
        at = math.nan
    if not math.isfinite(at):
        raise TypeError(f"plot() takes a finite number as step, not {step!r}")
    return at
