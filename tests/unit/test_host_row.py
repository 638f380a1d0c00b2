"""The host's numbers of a step, made when it is due or while the device works on the one before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tensorgrad import optim
from tensorgrad.optim.row import HostRow


def row_of(optimizer: optim.Optimizer, seed: int = 7) -> HostRow:
    slots = {name: index for index, name in enumerate(optimizer.scalars(1), 2)}

    def row() -> np.ndarray:
        return np.zeros(2 + len(slots), np.uint32)

    state: Any = SimpleNamespace(seed=seed, row=row)
    made = HostRow(state, optimizer)
    made.use(slots)
    return made


def numbers(row: np.ndarray) -> list[float]:
    return row[2:].view(np.float32).tolist()


def expected(optimizer: optim.Optimizer, step: int) -> list[float]:
    return np.array([*optimizer.scalars(step).values()], np.float32).tolist()


def test_foreseen_or_not_the_numbers_are_the_same() -> None:
    optimizer = optim.AdamW(1e-2)
    row = row_of(optimizer)
    for step in range(1, 6):
        found = row.at(step + 10, step)
        assert found[:2].tolist() == [7, step + 10]
        assert numbers(found) == expected(optimizer, step)
        if step % 2:
            row.foresee()


def test_what_is_foreseen_is_not_computed_again() -> None:
    class Counting(optim.SGD):
        asked: tuple[int, ...] = ()

        def host(self, step: int, lr: float, hyper: Any) -> dict[str, float]:
            Counting.asked += (step,)
            return super().host(step, lr, hyper)

    row = row_of(Counting(0.1))
    Counting.asked = ()
    row.at(0, 1)
    row.foresee()
    row.at(1, 2)
    assert Counting.asked == (1, 2)


@pytest.mark.parametrize("edit", [{"lr": 0.5}, {"betas": (0.5, 0.5)}, {"groups": [("*", {"lr": 0.3})]}])
def test_an_edit_after_it_was_foreseen_counts(edit: dict[str, Any]) -> None:
    optimizer = optim.Adam(1e-2)
    row = row_of(optimizer)
    row.at(0, 1)
    row.foresee()
    for name, value in edit.items():
        setattr(optimizer, name, value)
    assert numbers(row.at(1, 2)) == expected(optimizer, 2)[: len(numbers(row.at(1, 2)))]


def test_a_step_that_was_skipped_has_the_numbers_of_its_own_count() -> None:
    optimizer = optim.Adam(1e-2)
    row = row_of(optimizer)
    row.at(0, 1)
    row.foresee()
    assert numbers(row.at(1, 1)) == expected(optimizer, 1)


def test_a_schedule_is_asked_once_a_step_and_not_ahead() -> None:
    asked: list[int] = []

    def schedule(step: int) -> float:
        asked.append(step)
        return 1 / (1 + step)

    row = row_of(optim.SGD(schedule))
    asked.clear()
    for step in (1, 2, 3):
        row.at(0, step)
        row.foresee()
        assert asked == list(range(step))


def test_many_rows_are_those_of_the_steps() -> None:
    optimizer = optim.Adam(lambda step: 1 / (1 + step))
    rows = row_of(optimizer).many(4, 2**32 - 2, 3)
    assert rows[:, 1].tolist() == [2**32 - 2, 2**32 - 1, 0, 1]
    assert [numbers(row) for row in rows] == [expected(optimizer, step) for step in range(3, 7)]
