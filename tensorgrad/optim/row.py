"""What the host computes for each step, in float64, and sends as one small input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from tensorgrad.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from tensorgrad.state import State


class HostRow:
    """The numbers of a step, u32[slots]: the seed, the call, and bit by bit what the optimizer's rules read.

    Args:
        state: gives the seed.
        optimizer: gives the numbers; its prefix now is that of the numbers' names.
    """

    def __init__(self, state: State, optimizer: Optimizer) -> None:
        self._state, self._optimizer, self._prefix = state, optimizer, optimizer.prefix
        self._row = state.row()
        self._floats = self._row.view(np.float32)
        self._slots: Mapping[str, int] = {}
        self._step = 0  # the last one that was asked for
        self._foreseen: tuple[int, int] | None = None  # the step whose numbers it holds, and the optimizer's edits then

    def use(self, slots: Mapping[str, int]) -> None:
        """From now on the numbers lie so, those that a program does not read nowhere."""
        self._slots, self._foreseen = slots, None

    def at(self, call: int, step: int) -> np.ndarray:
        """The row of a step.

        Args:
            call: counted from 0, over everything that runs on the state.
            step: counted from 1.
        """
        self._row[0], self._row[1] = self._state.seed % 2**32, call % 2**32
        if self._foreseen != (step, self._optimizer.edits):
            self._write(self._floats, step)
        self._step, self._foreseen = step, None
        return self._row

    def foresee(self) -> None:
        """Computes the next step's numbers, while the device is at work; schedules are asked when a step is made."""
        optimizer = self._optimizer
        if not (callable(optimizer.lr) or optimizer.groups):
            self._write(self._floats, self._step + 1)
            self._foreseen = self._step + 1, optimizer.edits

    def many(self, count: int, call: int, step: int) -> np.ndarray:
        """The rows of steps one after the other, u32[count, slots]."""
        rows = np.repeat(self.at(call, step)[None], count, axis=0)
        rows[:, 1] = np.arange(call, call + count, dtype=np.uint64) % 2**32
        floats = rows.view(np.float32)
        for i in range(1, count):
            self._write(floats[i], step + i)
        return rows

    def _write(self, floats: np.ndarray, step: int) -> None:
        if self._optimizer.prefix != self._prefix:  # an optimizer may train on several states
            self._optimizer.prefix = self._prefix
        for name, number in self._optimizer.scalars(step).items():
            if name in self._slots:
                floats[self._slots[name]] = number
