"""A digit classifier: 784 pixels, a hidden layer of 128, ten digits.

`make demo` trains it in a browser, on the GPU. It runs wherever tensorgrad does: on
ordinary Python (`python examples/mnist.py build/data/mnist.npz`) on the numpy device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np

import tensorgrad as tg
from example import OnStep, Result, command_line, quiet
from tensorgrad import nn, optim

DATA = "mnist.npz"
STEPS = 1120
BATCH = 64

inputs = {"x": tg.f32[BATCH, 784], "y": tg.i32[BATCH]}


class Model(nn.Module):
    """One hidden layer."""

    def __init__(self) -> None:
        self.hidden = nn.Linear(784, 128)
        self.out = nn.Linear(128, 10)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        return self.out(tg.relu(self.hidden(x)))


def loss_fn(model: nn.Module, x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
    return tg.cross_entropy(model(x), y)


def optimizer(steps: int) -> optim.Optimizer:
    return optim.AdamW(optim.CosineAnnealingLR(1e-2, steps), weight_decay=0.1)


async def main(
    data: Mapping[str, np.ndarray], *, steps: int = STEPS, on_step: OnStep = quiet, device: str | None = None
) -> Result:
    """Train on the digits of `data`, then classify the ones held out.

    Args:
        data: `train_images` and `test_images` as bytes [n, 784], `train_labels` and `test_labels`.
        steps: how many batches to train on.
        on_step: called after every step with its number, the number of all, and the loss.
        device: None takes WebGPU where there is an adapter.
    """
    nn.init.manual_seed(0)  # the same start each time
    train = await tg.compile(Model(), loss_fn, optimizer(steps), inputs, device=device, seed=0)

    losses = []
    for step, batch in enumerate(islice(batches(data), steps), 1):
        result = await train.step(batch)
        losses.append(result.loss)
        on_step(step, steps, result.loss)

    predict = await train.attach(lambda model, x: tg.argmax(model(x), axis=1), {"x": tg.f32[None, 784]})
    predictions = await predict(x=pixels(data["test_images"]))
    train.destroy()
    return judged(data, predictions, losses)


def batches(data: Mapping[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
    """The digits in another order each time, in batches, without end."""
    random = np.random.default_rng(0)
    images, labels = data["train_images"], data["train_labels"]
    while True:
        order = random.permutation(len(images))
        for start in range(0, len(images) - BATCH + 1, BATCH):
            chosen = order[start : start + BATCH]
            yield {"x": pixels(images[chosen]), "y": labels[chosen]}


def pixels(images: np.ndarray) -> np.ndarray:
    """Bytes as numbers of mean 0 and deviation 1, more or less."""
    return (images.astype(np.float32) / 255 - 0.1307) / 0.3081


def judged(data: Mapping[str, np.ndarray], predictions: np.ndarray, losses: list[float]) -> Result:
    """How many of the held-out digits are right, and 32 of them to look at, the wrong ones first."""
    labels = data["test_labels"]
    right = predictions == labels
    shown = np.concatenate([np.flatnonzero(~right)[:8], np.flatnonzero(right)])[:32]
    images = data["test_images"][shown].reshape(-1, 28, 28) / 255
    captions = (f"{predictions[n]}" if right[n] else f"{predictions[n]}, not {labels[n]}" for n in shown)
    return Result({"held-out accuracy": float(right.mean())}, losses, images, tuple(captions))


if __name__ == "__main__":
    command_line(main)
