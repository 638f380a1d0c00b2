"""The checks of lesson 4's exercises."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np

from tensorgrad_page.checking import Work, Wrong, compare, number


async def trigrams(work: Work) -> str:
    """The loss of trigrams on the test names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine = np.asarray(work.trigrams, np.float64)
    if mine.size == 1 and not np.isfinite(mine):
        raise Wrong("The loss is infinite: a triple of the test names was never seen. Begin to count at 1, not at 0.")
    counts = np.ones((27, 27, 27))
    np.add.at(counts, _triples(work.tokens, work.targets), 1)
    surprise = -np.log(counts / counts.sum(2, keepdims=True))
    right = float(surprise[_triples(work.test_tokens, work.test_targets)].mean())
    found = number("`trigrams`", mine)
    for other, why in (
        (float(work.bigrams), "That is the loss of bigrams: count triples, in a table of 27 × 27 × 27."),
        (
            float(surprise[_triples(work.tokens, work.targets)].mean()),
            "That is the loss on the names that were counted. How good is it for others?",
        ),
    ):
        if abs(found - other) < 1e-4:
            raise Wrong(f"{found:.3f}: {why}")
    compare("`trigrams`", found, right, tolerance=1e-4)
    loss = float(await work.measure(tokens=work.test_tokens, targets=work.test_targets))
    network = "The network is better" if loss < right else "The network is not there yet; let it train"
    return f"Right: {right:.3f}, with {counts.size:,} counts. {network}: {loss:.3f}."


def _triples(tokens: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, ...]:
    before = np.pad(tokens, ((0, 0), (1, 0)))[:, :-1]
    return tuple(part[targets >= 0] for part in (before, tokens, targets))


def temperature(work: Work) -> str:
    """The softmax of numbers that were divided by the temperature."""
    numbers = np.array([2.0, 0.0, 1.0, -1.0])
    for degree in (0.5, 2.0):
        got = np.asarray(work.chances_at(numbers, degree), np.float64)
        if got.shape != numbers.shape:
            raise Wrong(f"Of 4 numbers it makes {got.size}, of shape {list(got.shape)}.")
        if np.allclose(got, _softmax(numbers)):
            raise Wrong(f"At temperature {degree} the chances are those at 1: the temperature is not used.")
        if np.allclose(got, _softmax(numbers * degree)):
            raise Wrong("It is turned round: a low temperature should make the largest chance larger.")
        compare(f"At temperature {degree} the sum of the chances", got.sum(), 1.0)
        compare(f"At temperature {degree} the chance of the first", got[0], float(_softmax(numbers / degree)[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cold = np.asarray(work.chances_at(numbers * 1000, 0.01))
    if not np.allclose(cold, [1, 0, 0, 0]):
        raise Wrong(f"Near temperature 0 only the largest is left, but of large numbers it makes {cold.tolist()}.")
    return "Right. Near 0 the likeliest letter is always taken; the hotter, the more alike are all letters."


async def ahead(work: Work) -> str:
    """A test that tells a network that looks ahead from one that does not."""
    if await _answer(work, work.answers):
        raise Wrong(
            "It accuses the network that has the mask. At the changed letter and after it the answers may differ: "
            "compare those before it only."
        )
    if not await _answer(work, work.peeking_answers):
        raise Wrong("The network without the mask passes your test, though it looks ahead.")
    return "Right. Whoever trains a network on what comes next should have this test: a loss alone does not tell."


async def _answer(work: Work, answers: Any) -> bool:
    found = work.looks_ahead(answers)
    return bool(await found if inspect.isawaitable(found) else found)


def _softmax(numbers: np.ndarray) -> np.ndarray:
    powers = np.exp(numbers - numbers.max())
    return powers / powers.sum()
