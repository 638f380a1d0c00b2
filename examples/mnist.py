"""Train a digit classifier: 784 pixels, a hidden layer of 128, ten digits.

`make demo` runs this in a browser, on the GPU. It runs wherever tensorgrad does: on
ordinary Python (`python examples/mnist.py build/data/mnist.npz`) on the numpy device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorgrad as tg
from tensorgrad import nn, optim

BATCH = 64


class Classifier(nn.Module):
    """One hidden layer."""

    def __init__(self) -> None:
        self.hidden = nn.Linear(784, 128)
        self.out = nn.Linear(128, 10)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        return self.out(tg.relu(self.hidden(x)))


def loss_fn(model: Classifier, x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
    return tg.cross_entropy(model(x), y)


@dataclass
class Result:
    """What training gives: the loss of each step, and what the model makes of the held-out digits."""

    losses: list[float]
    predictions: np.ndarray
    accuracy: float


async def main(
    data: Mapping[str, np.ndarray],
    *,
    epochs: int = 8,
    on_step: Callable[[int, int, float], Any] = lambda step, steps, loss: None,
    device: str | None = None,
) -> Result:
    """Train on the digits of `data`, then classify the ones held out.

    Args:
        data: `train_images` and `test_images` as bytes [n, 784], `train_labels` and `test_labels`.
        epochs: how often each digit is seen.
        on_step: called after every step with its number, the number of all, and the loss.
        device: None takes WebGPU where there is an adapter.
    """
    steps = epochs * (len(data["train_images"]) // BATCH)
    optimizer = optim.AdamW(optim.CosineAnnealingLR(1e-2, steps), weight_decay=0.1)
    nn.init.manual_seed(0)  # the same start each time
    inputs = {"x": tg.f32[BATCH, 784], "y": tg.i32[BATCH]}
    train = await tg.compile(Classifier(), loss_fn, optimizer, inputs, device=device, seed=0)

    losses = []
    for x, y in batches(data["train_images"], data["train_labels"], epochs):
        result = await train.step(x=x, y=y)
        losses.append(result.loss)
        on_step(len(losses), steps, result.loss)

    predict = await train.attach(lambda model, x: tg.argmax(model(x), axis=1), {"x": tg.f32[None, 784]})
    predictions = await predict(x=pixels(data["test_images"]))
    accuracy = float((predictions == data["test_labels"]).mean())
    train.destroy()
    return Result(losses, predictions, accuracy)


def batches(images: np.ndarray, labels: np.ndarray, epochs: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The digits in another order each time, in batches."""
    random = np.random.default_rng(0)
    for _ in range(epochs):
        order = random.permutation(len(images))
        for start in range(0, len(images) - BATCH + 1, BATCH):
            chosen = order[start : start + BATCH]
            yield pixels(images[chosen]), labels[chosen]


def pixels(images: np.ndarray) -> np.ndarray:
    """Bytes as numbers of mean 0 and deviation 1, more or less."""
    return (images.astype(np.float32) / 255 - 0.1307) / 0.3081


if __name__ == "__main__":
    import asyncio
    import sys

    with np.load(sys.argv[1]) as archive:
        digits = dict(archive)
    result = asyncio.run(main(digits, on_step=lambda step, steps, loss: print(f"\r{step}/{steps} {loss:.4f}", end="")))
    print(f"\ntest accuracy: {result.accuracy:.3f}")
