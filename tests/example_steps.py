"""The first steps of every example, to be compared with those of the same model in PyTorch.

Both sides take the initial weights from a recipe and their batches from the example, cut to a few rows; the losses
that PyTorch then has are stored, by `reference/make_examples.py`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Coroutine, Mapping
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import tensorgrad as tg
from example import load
from tensorgrad import nn
from tensorgrad.dtypes import Spec

ROOT = Path(__file__).parents[1]
STEPS = 20
ROWS = 8
"""Examples of a batch."""

TOLERANCE = 2e-4
"""Relative. A loss is a mean of f32 terms, exact to 1e-6; twenty updates, of which Adam's first ones are as large for a
gradient of rounding errors as for any other, amplify that. A wrong gradient, or decay, changes the second loss by more.
The residual network has no ReLU: near 0 rounding decides its gradient, and batch norm made 5e-3 of that."""


def first_weights(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The initial values of a parameter, which follow from its name: moderate ones, no two alike."""
    drawn = np.random.RandomState(zlib.crc32(name.encode())).uniform(-1, 1, shape).astype(np.float32)
    if len(shape) > 1:
        return drawn * np.float32(np.prod(shape[1:]) ** -0.5)
    return drawn * np.float32(0.1) + np.float32(name.endswith("weight"))


def first_batches(example: Any, rows: int = ROWS) -> list[dict[str, np.ndarray]]:
    """The first rows of the batches of the first steps."""
    batches = example.batches(load(ROOT / "build" / "data" / example.DATA))
    return [{name: array[:rows] for name, array in batch.items()} for batch in islice(batches, STEPS)]


def with_first_weights(model: nn.Module) -> nn.Module:
    """The same model, with weights by the recipe."""
    for name, parameter in model.named_parameters():
        parameter.data[...] = first_weights(name, parameter.shape)
    return model


def of_rows(inputs: Mapping[str, Spec], rows: int = ROWS) -> dict[str, Spec]:
    """The inputs of a step with smaller batches."""
    return {name: Spec((rows, *spec.shape[1:]), spec.dtype) for name, spec in inputs.items()}


async def supervised(name: str, device: str) -> list[float]:
    """The losses of an example that has one model and one loss."""
    example = import_module(name)
    model, optimizer = with_first_weights(example.Model()), example.optimizer(example.STEPS)
    train = await tg.compile(model, example.loss_fn, optimizer, of_rows(example.inputs), device=device, seed=0)
    losses = [(await train.step(batch)).loss for batch in first_batches(example)]
    train.destroy()
    return losses


async def adversarial(name: str, device: str) -> list[float]:
    """The losses of an example of two networks that play against each other, in turn.

    Each makes half of the steps: they amplify differences, so that after 20 rounds PyTorch's losses in f32 and those in
    float64 are 1e-3 apart.
    """
    example, losses = import_module(name), []
    trainings = await example.compiled(with_first_weights(example.Model()), ROWS, device)
    for batch in first_batches(example)[: STEPS // 2]:
        given = ({name: batch[name] for name in train.inputs.leaves} for train in trainings)
        losses += [(await train.step(inputs)).loss for train, inputs in zip(trainings, given, strict=True)]
    for train in trainings:
        train.destroy()
    return losses


CASES: dict[str, Callable[[str, str], Coroutine[Any, Any, list[float]]]] = {
    "mnist": supervised,
    "convnet": supervised,
    "resnet": supervised,
    "vae": supervised,
    "names": supervised,
    "gru": supervised,
    "gan": adversarial,
}
"""How the losses of an example come about."""


async def agrees(name: str, device: str) -> None:
    """The losses of an example's first steps are PyTorch's."""
    wanted = json.loads((ROOT / "tests" / "reference" / "examples.json").read_text())[name]
    np.testing.assert_allclose(await CASES[name](name, device), wanted, rtol=TOLERANCE, err_msg=name)
