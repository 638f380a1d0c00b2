"""What a training loop did, as it is returned and printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tensorgrad.callsite import call_site
from tensorgrad.errors import InputError
from tensorgrad.inspect.tables import counted
from tensorgrad.progress import show_seconds

Metrics = float | dict[str, float]
"""What validation gives: a number, or numbers by name."""


class Validation(NamedTuple):
    """What `validate` gave after a step; steps count from 1."""

    step: int
    value: Metrics


@dataclass(eq=False, repr=False)
class Record:
    """What `train.fit` did.

    Attributes:
        steps: how many steps were made.
        seconds: how long it took, validation included.
        validation: what `validate` gave, oldest first.
        skipped: steps that changed nothing, because something was not finite.
        stopped: why it ended before its time: `"on_step"`, `"interrupt"`, or the error's name; empty where it did not.
    """

    steps: int = 0
    seconds: float = 0.0
    validation: list[Validation] = field(default_factory=list)
    skipped: int = 0
    stopped: str = ""
    _losses: list[np.ndarray] = field(default_factory=list)

    @property
    def losses(self) -> np.ndarray:
        """The loss of every step, f32[steps]; of a run that did not end well, those that could be read."""
        if len(self._losses) != 1:
            self._losses = [np.concatenate(self._losses) if self._losses else np.zeros(0, np.float32)]
        return self._losses[0]

    def add(self, losses: np.ndarray) -> None:
        """Notes the losses of some more steps."""
        self._losses.append(losses)

    @property
    def last(self) -> str:
        """The last loss and the last validation, as text."""
        loss = f"loss {self._losses[-1][-1]:.4g}" if self._losses and len(self._losses[-1]) else ""
        return ", ".join(part for part in (loss, _show(self.validation)) if part)

    def __repr__(self) -> str:
        found = self.losses
        rate = f", {self.steps / self.seconds:,.3g} a second" if self.seconds else ""
        lines = [f"{counted(self.steps, 'step')} in {show_seconds(self.seconds)}{rate}"]
        if len(found):
            best = "" if np.isnan(found).all() else f", {np.nanmin(found):.4g} at best"
            lines.append(f"loss {found[0]:.4g} at first, {found[-1]:.4g} at last{best}")
        if self.validation:
            lines.append(f"{_show(self.validation)} after step {self.validation[-1].step:,}")
        if self.skipped:
            lines.append(f"{counted(self.skipped, 'step')} skipped, where the loss was not finite")
        if self.stopped:
            lines.append(f"stopped by {self.stopped}")
        return "\n".join(lines)


def metrics(value: Any) -> Metrics:
    """What validation gave, as floats."""
    try:
        return {str(k): float(v) for k, v in value.items()} if isinstance(value, Mapping) else float(value)
    except (TypeError, ValueError):
        what = f"{value!r:.80}"
    raise InputError(f"validate returns a number, or numbers by name, got {what}", call_site())


def _show(validation: list[Validation]) -> str:
    """The last validation as text."""
    if not validation:
        return ""
    value = validation[-1].value
    named = value if isinstance(value, dict) else {"": value}
    return ", ".join(f"validation {name}{' ' * bool(name)}{number:.4g}" for name, number in named.items())
