"""A variational autoencoder that learns to write digits, from 10 numbers for each.

The encoder says which numbers a digit may stand for, the decoder draws the digit of some numbers. They are trained to
raise a lower bound of the digits' log-likelihood, the ELBO (Kingma and Welling, Auto-Encoding Variational Bayes, 2013).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np

import convnet
import mnist
import tensorgrad as tg
from example import OnStep, Result, command_line, fitted, quiet
from tensorgrad import nn, optim

DATA = "mnist.npz"
STEPS = 2500
BATCH = 64
LATENT = 10
SURE = 0.9

inputs = {"x": tg.f32[BATCH, 784], "noise": tg.f32[BATCH, LATENT]}


class Model(nn.Module):
    """Encoder and decoder, the other way round."""

    def __init__(self) -> None:
        self.encoder = layers(784, 400, 200, 2 * LATENT)
        self.decoder = layers(LATENT, 200, 400, 784)

    def forward(self, x: tg.Tensor, noise: tg.Tensor) -> tuple[tg.Tensor, tg.Tensor, tg.Tensor]:
        """The drawing's logits [n, 784], and the mean and log variance of its numbers, [n, LATENT] each."""
        mean, log_variance = tg.split(self.encoder(x), LATENT, 1)
        return self.decoder(mean + tg.exp(log_variance / 2) * noise), mean, log_variance


def layers(*sizes: int) -> nn.Sequential:
    """Linear layers from size to size, with a ReLU after all but the last."""
    linear = [nn.Linear(inside, out) for inside, out in pairwise(sizes)]
    return nn.Sequential(*(part for layer in linear for part in (layer, nn.ReLU())))[:-1]


def loss_fn(model: Model, x: tg.Tensor, noise: tg.Tensor) -> tg.Tensor:
    """The ELBO of a digit, in nats, with its sign turned: what its pixels cost, and what its numbers cost."""
    logits, mean, log_variance = model(x, noise)
    pixels = tg.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    numbers = (mean**2 + tg.exp(log_variance) - 1 - log_variance).sum() / 2
    return (pixels + numbers) / len(x)


def optimizer(steps: int) -> optim.Optimizer:
    return optim.Adam(optim.CosineAnnealingLR(2e-3, steps))


def batches(data: Mapping[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
    """Digits and noise, without end."""
    loader = tg.data.DataLoader({"x": drawn(data["train_images"])}, BATCH, shuffle=True, drop_last=True, seed=0)
    random = np.random.default_rng(0)
    while True:
        for batch in loader:
            yield {**batch, "noise": random.standard_normal((BATCH, LATENT), np.float32)}


def drawn(images: np.ndarray) -> np.ndarray:
    """Pixels that are ink (1) or not (0), so that the likelihood is one of bits."""
    return (images > 127).astype(np.float32)


async def main(
    data: Mapping[str, np.ndarray], *, steps: int = STEPS, on_step: OnStep = quiet, device: str | None = None
) -> Result:
    """Train, measure the held-out digits' ELBO, draw 1,000 digits, and show them to the convolutional network.

    Arguments as for `mnist.main`.
    """
    nn.init.manual_seed(0)
    train = await tg.compile(Model(), loss_fn, optimizer(steps), inputs, device=device, seed=0)
    losses = await fitted(train, batches(data), steps, on_step)
    random = np.random.default_rng(1)
    held_out = drawn(data["test_images"])
    measure = await train.attach(loss_fn, {"x": tg.f32[None, 784], "noise": tg.f32[None, LATENT]})
    elbo = -await measure(x=held_out, noise=random.standard_normal((len(held_out), LATENT), np.float32))
    write = await train.attach(lambda model, z: tg.sigmoid(model.decoder(z)), {"z": tg.f32[None, LATENT]})
    chances = await write(z=random.standard_normal((1000, LATENT), np.float32))
    train.destroy()
    figures, captions = await recognised(data, drawn(255 * chances), device)
    figures = {"held-out ELBO, nats": float(elbo), **figures}
    return Result(figures, losses, chances[:32].reshape(-1, 28, 28), captions[:32])


async def recognised(
    data: Mapping[str, np.ndarray], digits: np.ndarray, device: str | None
) -> tuple[dict[str, float], tuple[str, ...]]:
    """How many of the written digits a network that has learned real ones is sure of, and what it reads in each."""
    train, _ = await convnet.trained(data, shift=2, steps=500, on_step=quiet, device=device)
    read = await train.attach(lambda model, x: tg.softmax(model(x), axis=1), {"x": tg.f32[None, 1, 28, 28]})

    async def sure_of(digits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        chances = await read(x=mnist.pixels(255 * digits).reshape(-1, 1, 28, 28))
        return chances.argmax(1), chances.max(1) >= SURE

    kinds, sure = await sure_of(digits)
    _, sure_of_real = await sure_of(drawn(data["test_images"]))
    train.destroy()
    captions = (f"{kind}" if known else f"{kind}, not sure" for kind, known in zip(kinds, sure, strict=True))
    figures = {
        f"written digits read with {SURE:.0%} certainty": float(sure.mean()),
        "real ones": float(sure_of_real.mean()),
        "kinds of digits written": float(len(set(kinds[sure]))),
    }
    return figures, tuple(captions)


if __name__ == "__main__":
    command_line(main)
