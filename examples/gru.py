"""A recurrent network, a GRU, that reads digits row by row, as a sequence of 28 rows of 28 pixels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

import mnist
import tensorgrad as tg
from example import OnStep, Result, command_line, fitted, quiet
from tensorgrad import nn, optim

DATA = "mnist.npz"
STEPS = 700
BATCH = mnist.BATCH

inputs = {"x": tg.f32[BATCH, 28, 28], "y": tg.i32[BATCH]}
loss_fn = mnist.loss_fn


class Model(nn.Module):
    """What the GRU remembers after the last row says which digit it was."""

    def __init__(self) -> None:
        self.gru = nn.GRU(28, 64, batch_first=True)
        self.out = nn.Linear(64, 10)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        _, last = self.gru(x)
        return self.out(last[-1])


def optimizer(steps: int) -> optim.Optimizer:
    return optim.AdamW(optim.OneCycleLR(1e-2, steps))


def batches(data: Mapping[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
    """The digits as rows, without end."""
    for batch in mnist.batches(data):
        yield {"x": rows(batch["x"]), "y": batch["y"]}


def rows(pixels: np.ndarray) -> np.ndarray:
    return pixels.reshape(-1, 28, 28)


async def main(
    data: Mapping[str, np.ndarray], *, steps: int = STEPS, on_step: OnStep = quiet, device: str | None = None
) -> Result:
    """Train on the digits of `data`, then classify the ones held out. Arguments as for `mnist.main`."""
    nn.init.manual_seed(0)
    train = await tg.compile(Model(), loss_fn, optimizer(steps), inputs, device=device, seed=0)
    losses = await fitted(train, batches(data), steps, on_step)
    predict = await train.attach(lambda model, x: tg.argmax(model(x), axis=1), {"x": tg.f32[None, 28, 28]})
    predictions = await predict(x=rows(mnist.pixels(data["test_images"])))
    train.destroy()
    return mnist.judged(data, predictions, losses)


if __name__ == "__main__":
    command_line(main)
