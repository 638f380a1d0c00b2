"""A convolutional network for digits; with `shift=2` each one is moved by up to two pixels whenever it is seen.

python examples/convnet.py build/data/mnist.npz shift=2
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

import mnist
import tensorgrad as tg
from example import OnStep, Result, command_line, fitted, quiet
from tensorgrad import nn, optim

DATA = "mnist.npz"
STEPS = 1000
BATCH = mnist.BATCH

inputs = {"x": tg.f32[BATCH, 1, 28, 28], "y": tg.i32[BATCH]}
loss_fn = mnist.loss_fn


class Model(nn.Module):
    """Two convolutions, each with the largest of every two by two pixels, and a linear layer."""

    def __init__(self) -> None:
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(32 * 7 * 7, 10),
        )

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        return self.layers(x)


def optimizer(steps: int) -> optim.Optimizer:
    return optim.AdamW(optim.OneCycleLR(5e-3, steps), weight_decay=0.05)


def batches(data: Mapping[str, np.ndarray], shift: int = 0) -> Iterator[dict[str, np.ndarray]]:
    """The digits as images, without end, moved by up to `shift` pixels."""
    random = np.random.default_rng(1)
    for batch in mnist.batches(data):
        images = batch["x"].reshape(BATCH, 28, 28)
        yield {"x": shifted(images, shift, random)[:, None], "y": batch["y"]}


def shifted(images: np.ndarray, most: int, random: np.random.Generator) -> np.ndarray:
    """Images [n, h, w], each moved by another number of pixels in both directions; what comes in is as their corner."""
    padded = np.pad(images, ((0, 0), (most, most), (most, most)), constant_values=images.min())
    places = np.lib.stride_tricks.sliding_window_view(padded, images.shape[1:], axis=(1, 2))
    down, right = random.integers(0, 2 * most + 1, (2, len(images)))
    return places[np.arange(len(images)), down, right]


async def main(
    data: Mapping[str, np.ndarray],
    *,
    shift: int = 0,
    steps: int = STEPS,
    on_step: OnStep = quiet,
    device: str | None = None,
) -> Result:
    """Train on the digits of `data`, then classify the ones held out.

    Args:
        data: as for `mnist.main`.
        shift: by how many pixels digits are moved, at most.
        steps, on_step, device: as for `mnist.main`.
    """
    train, losses = await trained(data, shift=shift, steps=steps, on_step=on_step, device=device)
    predict = await train.attach(lambda model, x: tg.argmax(model(x), axis=1), {"x": tg.f32[None, 1, 28, 28]})
    predictions = await predict(x=mnist.pixels(data["test_images"]).reshape(-1, 1, 28, 28))
    train.destroy()
    return mnist.judged(data, predictions, losses)


async def trained(
    data: Mapping[str, np.ndarray], *, shift: int, steps: int, on_step: OnStep, device: str | None
) -> tuple[tg.Train, list[float]]:
    """The model after training, and the loss of each step."""
    nn.init.manual_seed(0)
    train = await tg.compile(Model(), loss_fn, optimizer(steps), inputs, device=device, seed=0)
    return train, await fitted(train, batches(data, shift), steps, on_step)


if __name__ == "__main__":
    command_line(main)
