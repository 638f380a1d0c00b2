"""A residual network for digits, with batch norm: running statistics are learned beside the weights."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

import convnet
import mnist
import tensorgrad as tg
from example import OnStep, Result, command_line, fitted, quiet
from tensorgrad import nn, optim

DATA = "mnist.npz"
STEPS = 1000

inputs = convnet.inputs
loss_fn = mnist.loss_fn
batches = partial(convnet.batches, shift=2)


class Block(nn.Module):
    """Two convolutions, whose result is added to what came in, with SiLU after each.

    Args:
        channels: that come in.
        out: channels that go out.
        stride: 2 halves height and width.
    """

    def __init__(self, channels: int, out: int, stride: int = 1) -> None:
        self.conv1 = nn.Conv2d(channels, out, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.shortcut = nn.Sequential()
        if channels != out or stride != 1:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        y = tg.silu(self.bn1(self.conv1(x)))
        return tg.silu(self.bn2(self.conv2(y)) + self.shortcut(x))


class Model(nn.Module):
    """Three blocks: 14 by 14, 7 by 7, 4 by 4."""

    def __init__(self) -> None:
        self.stem = nn.Conv2d(1, 8, 3, 2, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(8)
        self.blocks = nn.Sequential(Block(8, 8), Block(8, 16, 2), Block(16, 32, 2))
        self.out = nn.Linear(32, 10)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        x = self.blocks(tg.silu(self.bn(self.stem(x))))
        return self.out(x.mean((2, 3)))


def optimizer(steps: int) -> optim.Optimizer:
    return optim.SGD(optim.OneCycleLR(0.2, steps), momentum=0.9, nesterov=True, weight_decay=5e-4)


async def main(
    data: Mapping[str, np.ndarray], *, steps: int = STEPS, on_step: OnStep = quiet, device: str | None = None
) -> Result:
    """Train on moved digits, then classify the ones held out; arguments as for `mnist.main`."""
    nn.init.manual_seed(0)
    train = await tg.compile(Model(), loss_fn, optimizer(steps), inputs, device=device, seed=0)
    losses = await fitted(train, batches(data), steps, on_step)
    # attached functions evaluate: here the batch norms use their running statistics
    predict = await train.attach(lambda model, x: tg.argmax(model(x), axis=1), {"x": tg.f32[None, 1, 28, 28]})
    predictions = await predict(x=mnist.pixels(data["test_images"]).reshape(-1, 1, 28, 28))
    train.destroy()
    return mnist.judged(data, predictions, losses)


if __name__ == "__main__":
    command_line(main)
