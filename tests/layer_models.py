"""Small models of layers that a PyTorch model would have, whose losses every device has to agree about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tensorgrad as tg
from tensorgrad import nn, optim

STEPS = 3


class Work(NamedTuple):
    """A model, its inputs' types, and its loss."""

    make: Callable[[], nn.Module]
    specs: dict[str, Any]
    loss: Callable[..., tg.Tensor]


def classes(model: nn.Module, x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
    return tg.cross_entropy(model(x), y)


def itself(model: nn.Module, x: tg.Tensor) -> tg.Tensor:
    return tg.mse_loss(model(x), x)


class Encoder(nn.Module):
    """Tokens, padding of its own, a transformer encoder, and a mean over the tokens."""

    def __init__(self) -> None:
        self.embed = nn.Embedding(11, 16, padding_idx=0)
        layer = nn.TransformerEncoderLayer(16, 2, 24, dropout=0.1, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, nn.LayerNorm(16))
        self.head = nn.Linear(16, 3)

    def forward(self, tokens: tg.Tensor) -> tg.Tensor:
        hidden = self.encoder(self.embed(tokens), src_key_padding_mask=tokens == 0)
        return self.head(hidden.mean(1))


class Sequences(nn.Module):
    """A recurrence in both directions, and a class of its last outputs."""

    def __init__(self, kind: type[nn.GRU] | type[nn.LSTM], layers: int) -> None:
        self.layers = kind(5, 12, layers, batch_first=True, dropout=0.2, bidirectional=True)
        self.head = nn.Linear(24, 3)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        return self.head(self.layers(x)[0][:, -1])


def images() -> nn.Module:
    """A convolutional net with group norms, one of instances, and channels that are dropped."""
    return nn.Sequential(
        *[nn.Conv2d(2, 8, 3, padding=1, padding_mode="circular", bias=False), nn.GroupNorm(4, 8), nn.SiLU()],
        *[nn.MaxPool2d(2), nn.Dropout2d(0.2), nn.Conv2d(8, 12, 3, padding="same", dilation=2)],
        *[
            nn.InstanceNorm2d(12, affine=True),
            nn.PReLU(12),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.RMSNorm(12),
            nn.Linear(12, 3),
        ],
    )


def autoencoder() -> nn.Module:
    """Down by strides and up by transposed convolutions."""
    return nn.Sequential(
        *[nn.Conv2d(1, 6, 3, stride=2, padding=1), nn.BatchNorm2d(6), nn.ELU(), nn.Conv2d(6, 8, 3, 2, 1), nn.Mish()],
        *[nn.ConvTranspose2d(8, 6, 2, 2), nn.LeakyReLU(0.1), nn.ConvTranspose2d(6, 1, 4, 2, 1), nn.Softplus()],
    )


CLASSES = tg.i32[4]
WORK = {
    "transformer": Work(Encoder, {"x": tg.i32[4, 6], "y": CLASSES}, classes),
    "gru": Work(lambda: Sequences(nn.GRU, 1), {"x": tg.f32[4, 4, 5], "y": CLASSES}, classes),
    "lstm": Work(lambda: Sequences(nn.LSTM, 2), {"x": tg.f32[4, 3, 5], "y": CLASSES}, classes),
    "images": Work(images, {"x": tg.f32[4, 2, 10, 8], "y": CLASSES}, classes),
    "autoencoder": Work(autoencoder, {"x": tg.f32[3, 1, 12, 8]}, itself),
}


def batch(work: Work, seed: int) -> dict[str, np.ndarray]:
    """Numbers of the inputs' types; classes are from 0 to 2, tokens from 0."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, spec in work.specs.items():
        drawn = rng.normal(size=spec.shape) if spec.dtype is tg.f32 else rng.integers(0, 3, spec.shape)
        found[name] = drawn.astype(spec.dtype.numpy)
    return found


async def losses(name: str, device: Any) -> list[float]:
    """Of three steps, and then of the model in evaluation."""
    work = WORK[name]
    nn.init.manual_seed(6)
    optimizer = optim.AdamW(1e-2, eps=1e-2)  # a large eps: what rounding does to the smallest gradients is not seen
    train = await tg.compile(work.make(), work.loss, optimizer, work.specs, device=device, seed=8)
    found = [(await train.step(batch(work, step))).loss for step in range(STEPS)]
    evaluate = await train.attach(work.loss, work.specs)
    found.append(float(await evaluate(batch(work, 9))))
    train.destroy()
    return found


async def agrees(name: str, device: Any) -> None:
    """With the numpy device, to what three updates make of rounding."""
    found, wanted = await losses(name, device), await losses(name, "numpy")
    np.testing.assert_allclose(found, wanted, rtol=1e-4, err_msg=name)
