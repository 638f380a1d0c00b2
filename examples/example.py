"""What the examples share: the result that they return, their data, and how a shell runs them.

Every other file here is one example, and has

- `DATA`, the file in `build/data/` that it learns from, and `STEPS`, how long it trains,
- its `Model`, `loss_fn`, `optimizer(steps)` and `inputs`, as `tg.compile` takes them (`gan.py`, which has two losses,
  has `compiled(model)`, which returns both trainings),
- `batches(data)`, an endless iterator of batches. It is seeded, and draws the random numbers that the model needs, so
  that another library can be given the same,
- `main(data, steps=..., on_step=..., device=...)`, which trains, evaluates, and returns a `Result`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tensorgrad as tg

OnStep = Callable[[int, int, float], Any]
"""Called after every step with its number, the number of all, and the loss."""


@dataclass
class Result:
    """What an example found.

    Attributes:
        figures: numbers by name.
        losses: of each step.
        images: some to look at, [n, height, width] from 0 (paper) to 1 (ink).
        captions: one for each image; one that says "not" is of a mistake.
        text: something to read.
    """

    figures: dict[str, float]
    losses: list[float]
    images: np.ndarray | None = None
    captions: tuple[str, ...] = ()
    text: str = ""


def quiet(step: int, steps: int, loss: float) -> None:
    """An `OnStep` that does nothing."""


async def fitted(train: tg.Train, batches: Iterable[Any], steps: int, on_step: OnStep) -> list[float]:
    """The losses of so many steps, each of which is told."""
    record = await train.fit(
        batches, steps=steps, on_step=lambda step, result: on_step(step, steps, result.loss), progress=False
    )
    return record.losses.tolist()


def load(path: str | Path) -> Any:
    """A data file: the arrays of an .npz by name, or a text."""
    if str(path).endswith(".npz"):
        with np.load(path) as archive:
            return dict(archive)
    return Path(path).read_text(encoding="utf-8")


def command_line(main: Callable[..., Coroutine[Any, Any, Result]]) -> None:
    """`python examples/NAME.py build/data/FILE [argument=number ...]`."""
    path, *rest = sys.argv[1:]
    arguments = {name: int(number) for name, _, number in (word.partition("=") for word in rest)}

    def show(step: int, steps: int, loss: float) -> None:
        print(f"\r{step}/{steps} {loss:.4f} ", end="", flush=True)

    result = asyncio.run(main(load(path), on_step=show, **arguments))
    print()
    for name, figure in result.figures.items():
        print(f"{name}: {figure:.4g}")
    print(result.text, end="")
