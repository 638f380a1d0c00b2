"""`docs/examples.md`: every example has run in full and has reached its figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import train_examples
from example import Result
from picture import draw
from train_examples import Run, Target


def test_every_example_reached_its_targets() -> None:
    assert train_examples.missed(train_examples.stored()) == []


def test_the_page_says_what_was_reached() -> None:
    results, text = train_examples.stored(), train_examples.PAGE.read_text(encoding="utf-8")
    assert text == train_examples.page(results), "run make examples"
    for run in train_examples.RUNS:
        if run.picture:
            assert train_examples.picture_of(run).name in text
            assert train_examples.picture_of(run).stat().st_size < 100_000


def test_every_example_is_run() -> None:
    files = {
        file.stem
        for file in (train_examples.ROOT / "examples").glob("*.py")
        if "\nSTEPS = " in file.read_text(encoding="utf-8")
    }
    assert files == {run.module for run in train_examples.RUNS}


def test_a_missed_target_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = (Run("a", {"accuracy": Target(">=", 0.9)}), Run("b", {"loss": Target("<=", 2)}, {"n": 1}))
    monkeypatch.setattr(train_examples, "RUNS", runs)
    good = {"a": {"figures": {"accuracy": 0.9}}, "b n=1": {"figures": {"loss": 1.5}}}
    assert train_examples.missed(good) == []
    assert train_examples.missed({}) == ["a has not run", "b n=1 has not run"]
    bad = {"a": {"figures": {}}, "b n=1": {"figures": {"loss": 2.5}}}
    assert train_examples.missed(bad) == ["a: accuracy is missing, not ≥ 0.9", "b n=1: loss is 2.5, not ≤ 2"]
    assert train_examples.missed({**good, "a": {"figures": {"accuracy": float("nan")}}})


@pytest.mark.parametrize("images", [None, 1, 9])
def test_pictures(images: int | None, tmp_path: Path) -> None:
    losses = [-float(step) for step in range(60)]
    shown = None if images is None else np.ones((images, 4, 4))
    captions = () if images is None else ("3, not 5",) * images
    draw(Result({"accuracy": 0.5}, losses, shown, captions), tmp_path / "new" / "picture.png")
    assert (tmp_path / "new" / "picture.png").read_bytes()[1:4] == b"PNG"
