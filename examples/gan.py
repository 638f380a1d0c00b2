"""Two networks that play against each other, a GAN: one draws digits, the other tells them from real ones.

Both are in one module, so that they lie on one state. Each has a loss and an optimizer of its own, which trains its
part of the weights (Goodfellow et al., Generative adversarial networks, 2014; the convolutions are those of Radford et
al., 2015). What is drawn at the end are the running averages of the generator's weights, which jitter less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np

import mnist
import tensorgrad as tg
from example import OnStep, Result, command_line, quiet
from tensorgrad import nn, optim

DATA = "mnist.npz"
STEPS = 1000
BATCH = 32
NOISE = 32
"""Numbers that a drawing is made of."""

REAL = 0.9
"""How sure the discriminator may be of a real digit: with 1.0 it would win, and teach nothing."""

SAMPLES = 200
SURE = 0.9
"""The least certainty with which a drawing counts as a digit of some kind."""


class Model(nn.Module):
    """The generator makes images from -1 (paper) to 1 (ink) of noise, the discriminator a logit of an image."""

    def __init__(self) -> None:
        self.generator = nn.Sequential(
            nn.Linear(NOISE, 16 * 7 * 7),
            nn.ReLU(),
            nn.Unflatten(1, (16, 7, 7)),
            nn.ConvTranspose2d(16, 8, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(8, 1, 4, 2, 1),
            nn.Tanh(),
        )
        self.discriminator = nn.Sequential(
            nn.Conv2d(1, 8, 4, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(8, 16, 4, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Flatten(),
            nn.Linear(16 * 7 * 7, 1),
        )


def discriminator_loss(model: Model, digits: tg.Tensor, noise: tg.Tensor) -> tg.Tensor:
    """What it costs to take drawings for digits, and digits for drawings."""
    real, drawn = model.discriminator(digits), model.discriminator(model.generator(noise))
    of_real = tg.binary_cross_entropy_with_logits(real, tg.full_like(real, REAL))
    return of_real + tg.binary_cross_entropy_with_logits(drawn, tg.zeros_like(drawn))


def generator_loss(model: Model, noise: tg.Tensor) -> tg.Tensor:
    """What it costs to be found out."""
    drawn = model.discriminator(model.generator(noise))
    return tg.binary_cross_entropy_with_logits(drawn, tg.ones_like(drawn))


def optimizer(part: str) -> optim.Optimizer:
    """That of one of the two networks."""
    return optim.Adam(2e-3, betas=(0.5, 0.999), params=f"{part}.*", ema_decay=0.99 if part == "generator" else None)


async def compiled(model: Model, rows: int = BATCH, device: str | None = None) -> tuple[tg.Train, tg.Train]:
    """The training of the discriminator and that of the generator, on one state."""
    noise = {"noise": tg.f32[rows, NOISE]}
    both = {"digits": tg.f32[rows, 1, 28, 28], **noise}
    discriminator = await tg.compile(model, discriminator_loss, optimizer("discriminator"), both, device=device, seed=0)
    generator = await tg.compile(model, generator_loss, optimizer("generator"), noise, state=discriminator.state)
    return discriminator, generator


def batches(data: Mapping[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
    """Digits and noise, without end."""
    images = (data["train_images"].astype(np.float32) / 127.5 - 1).reshape(-1, 1, 28, 28)
    loader = tg.data.DataLoader({"digits": images}, BATCH, shuffle=True, drop_last=True, seed=0)
    random = np.random.default_rng(0)
    while True:
        for batch in loader:
            yield {**batch, "noise": random.standard_normal((BATCH, NOISE), np.float32)}


async def main(
    data: Mapping[str, np.ndarray], *, steps: int = STEPS, on_step: OnStep = quiet, device: str | None = None
) -> Result:
    """Train both, draw 200 digits, and show them to a network that was trained on real ones.

    Arguments as for `mnist.main`; the losses are those of the discriminator.
    """
    nn.init.manual_seed(0)
    discriminator, generator = await compiled(Model(), device=device)
    losses = []
    for step, batch in enumerate(islice(batches(data), steps), 1):
        losses.append((await discriminator.step(batch)).loss)
        await generator.submit(noise=batch["noise"])
        on_step(step, steps, losses[-1])

    draw = await generator.attach(
        lambda model, noise: (model.generator(noise) + 1) / 2, {"noise": tg.f32[None, NOISE]}, averaged=True
    )
    samples = await draw(noise=np.random.default_rng(1).standard_normal((SAMPLES, NOISE), np.float32))
    discriminator.destroy()
    generator.destroy()
    return await judged(data, samples, losses, device)


async def judged(
    data: Mapping[str, np.ndarray], samples: np.ndarray, losses: list[float], device: str | None
) -> Result:
    """What the network of `mnist.py` sees in the samples, and how sure it is of them, and of digits held out."""
    specs, optimizer = mnist.inputs, mnist.optimizer(mnist.STEPS)
    judge = await tg.compile(mnist.Model(), mnist.loss_fn, optimizer, specs, device=device, seed=0)
    await judge.fit(mnist.batches(data), steps=mnist.STEPS, progress=False)
    look = await judge.attach(lambda model, x: tg.softmax(model(x), axis=1), {"x": tg.f32[None, 784]})
    drawn, real = (255 * samples).reshape(-1, 784), data["test_images"]
    chances, of_real = [await look(x=mnist.pixels(images)) for images in (drawn, real)]
    judge.destroy()
    kinds, sure = chances.argmax(1), chances.max(1)
    figures = {
        "kinds of digits drawn": float(len(set(kinds[sure >= SURE]))),
        "mean certainty": float(sure.mean()),
        "of real ones": float(of_real.max(1).mean()),
    }
    captions = (f"{kinds[n]}" if sure[n] >= SURE else f"{kinds[n]}, not sure" for n in range(32))
    return Result(figures, losses, samples[:32].reshape(-1, 28, 28), tuple(captions))


if __name__ == "__main__":
    command_line(main)
