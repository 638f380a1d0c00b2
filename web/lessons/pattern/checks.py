"""The checks of lesson 2's exercises."""

from __future__ import annotations

import numpy as np

import tensorgrad as tg
from tensorgrad import nn
from tensorgrad_page.checking import Work, Wrong, compare, number

MOST_WEIGHTS = 25


async def small(work: Work) -> str:
    """A small network that tells the disc from the ring."""
    if "circles" not in work.sample.__code__.co_names:
        raise Wrong("The network learns another pattern now: choose the circles.")
    weights = sum(int(np.prod(weight.shape)) for weight in work.model.parameters())
    accuracy = number("The accuracy", (await work.seen(**work.shown))["test"]["accuracy"])
    if weights > MOST_WEIGHTS:
        raise Wrong(f"It has {weights} weights; at most {MOST_WEIGHTS} are allowed. Take fewer neurons or layers.")
    if accuracy < 0.95:
        trained = "It has not been trained: press Play." if work.done == 0 else "Let it learn on, or try another seed."
        raise Wrong(
            f"{weights} weights are few enough, but only {accuracy:.1%} of the test points are right. {trained}"
        )
    return f"Right: {weights} weights, {accuracy:.1%} of the test points."


async def loss(work: Work) -> str:
    """The mean squared error of probabilities."""
    given = np.float32([[-2, 0], [0, 0], [1, 0], [3, 0]]), np.float32([0, 1, 1, 0])
    first = nn.Linear(2, 1)
    fixed = {"weight": np.float32([[1, 0]]), "bias": np.float32([0])}
    first.load_state_dict(fixed)
    run = await tg.compile_forward(first, work.squared_loss, {"x": tg.f32[4, 2], "y": tg.f32[4]})
    found = await run(x=given[0], y=given[1])
    answers = given[0][:, 0]
    raw = float(np.mean((answers - given[1]) ** 2))
    right = float(np.mean((1 / (1 + np.exp(-answers)) - given[1]) ** 2))
    if abs(number("The loss", found) - raw) < 1e-4:
        raise Wrong("This compares the raw answers with 0 and 1: they have to go through tg.sigmoid first.")
    compare("For answers -2, 0, 1, 3 and labels 0, 1, 1, 0 the loss", found, right)
    return "Right. It learns, though more slowly: where the answer is very wrong, the sigmoid is flat."
