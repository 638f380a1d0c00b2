"""The first steps of the examples on the numpy device."""

from __future__ import annotations

import pytest

import tensorgrad as tg
import train_examples
from example_steps import CASES, agrees


@pytest.mark.parametrize("name", CASES)
def test_the_first_losses_are_pytorchs(name: str) -> None:
    tg.sync(agrees(name, "numpy"))


def test_every_example_has_its_losses() -> None:
    assert set(CASES) == {run.module for run in train_examples.RUNS}
