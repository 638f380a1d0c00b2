"""Layers that read the same values, and steps on them: some of their matmuls can be merged, others cannot.

`tests/unit/test_merge.py` runs them by their kernels' formulas, `gpu_steps.py` in WGSL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tensorgrad as tg
from tensorgrad import nn, optim


class Heads(nn.Module):
    """Attention of two heads over sequences of 8, its three layers apart."""

    def __init__(self, width: int = 16, sizes: tuple[int, int, int] = (16, 16, 16), bias: bool = True) -> None:
        self.q, self.k, self.v = (nn.Linear(width, size, bias=bias) for size in sizes)
        self.out = nn.Linear(sizes[2], 3)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        batch, length, _ = x.shape
        split = lambda z: z.reshape(batch, length, 2, -1).permute(0, 2, 1, 3)  # noqa: E731
        q, k, v = (split(self.project(layer, x)) for layer in (self.q, self.k, self.v))
        mixed = tg.softmax(q @ k.mT, -1) @ v
        # x is read by the layers and beside them
        return self.out(mixed.permute(0, 2, 1, 3).reshape(batch, length, -1)) + tg.tanh(x).sum(-1, keepdims=True)

    def project(self, layer: nn.Module, x: tg.Tensor) -> tg.Tensor:
        return layer(x)


class Rounded(Heads):
    """Queries, keys and values have 16 bits, and so have their gradients."""

    def project(self, layer: nn.Module, x: tg.Tensor) -> tg.Tensor:
        return layer(x).astype(tg.f16).astype(tg.f32)


class Tied(Heads):
    """Keys are values."""

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        self.v = self.k
        return super().forward(x)


class Stacked(nn.Module):
    """A layer before the heads, so that their gradient goes on, and one pair of layers in use twice."""

    def __init__(self, **options: Any) -> None:
        width = options.get("width", 16)
        self.first, self.heads = nn.Linear(5, width), Heads(**options)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        return self.heads(tg.tanh(self.first(x)))


class Branches(nn.Module):
    """Layers side by side, their activations joined; `count` of them lie at equal distances."""

    def __init__(self, count: int = 4, width: int = 64) -> None:
        self.first = nn.Linear(5, width)
        self.branches = nn.ModuleList(nn.Linear(width, width) for _ in range(count))
        self.last = nn.Linear(width, 3)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        h = tg.tanh(self.first(x))
        parts = [tg.relu(branch(h)) for branch in self.branches]
        total = parts[0]
        for part in parts[1:]:
            total = total * 0.5 + part
        return self.last(total)


class Twice(nn.Module):
    """The same two layers on two values."""

    def __init__(self) -> None:
        self.first, self.a, self.b = nn.Linear(5, 16), nn.Linear(16, 16), nn.Linear(16, 16)
        self.last = nn.Linear(16, 3)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        h = tg.tanh(self.first(x))
        for _ in range(2):
            h = h + tg.tanh(self.a(h)) * tg.sigmoid(self.b(h))
        return self.last(h)


def frozen(model: Stacked) -> Stacked:
    model.heads.k.requires_grad_(False)
    return model


def loss(model: nn.Module, x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
    return tg.mse_loss(model(x), y)


def penalized(model: nn.Module, x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
    """With the size of the gradient by x, so that second derivatives are taken."""
    slope = tg.grad(lambda x: tg.mse_loss(model(x), y))(x)
    return loss(model, x, y) + (slope * slope).sum()


class Case(NamedTuple):
    """A step.

    Attributes:
        model: makes the module.
        saved: matmul kernels that merging saves.
        optimizer: options of SGD.
        options: of `tg.compile`.
        length: of the sequences.
    """

    model: Callable[[], nn.Module]
    saved: int
    optimizer: dict[str, Any] = {}  # noqa: RUF012  # nobody changes it
    options: dict[str, Any] = {}  # noqa: RUF012
    length: int = 8
    loss: Callable[..., tg.Tensor] = loss


CASES = {
    "heads": Case(Stacked, 6),
    "heads on the input": Case(lambda: Heads(width=5), 2),
    "no bias": Case(lambda: Stacked(bias=False), 6),
    # slots are multiples of 64 elements: what is no such multiple does not lie side by side
    "odd width": Case(lambda: Stacked(width=17, sizes=(18, 18, 18)), 4),
    "odd sizes": Case(lambda: Stacked(width=7, sizes=(6, 6, 6)), 4, length=13),
    "values of another width": Case(lambda: Stacked(sizes=(16, 16, 20)), 3),
    "shared weights": Case(lambda: Tied(width=5), 1),
    "layers used twice": Case(Twice, 2),
    "frozen": Case(lambda: frozen(Stacked()), 3),
    "gradients kept": Case(Stacked, 4, options={"keep_grads": True}),
    "two groups": Case(Stacked, 3, {"groups": [("*.k.*", {"lr": 0.1})]}),
    "clipped": Case(Stacked, 6, {"clip_norm": 0.05}),
    "four branches": Case(Branches, 6),
    "two branches": Case(lambda: Branches(2), 2),
    "second derivatives": Case(Stacked, 8, loss=penalized),
}


async def train(case: Case, device: Any, steps: int = 3) -> tuple[Any, list[float], dict[str, np.ndarray]]:
    """What `tg.compile` gave, the losses of some steps, and the weights after them."""
    nn.init.manual_seed(0)
    rng = np.random.default_rng(1)
    x, y = (rng.normal(size=(32, case.length, n)).astype(np.float32) for n in (5, 3))
    found = await tg.compile(
        case.model(),
        case.loss,
        optim.SGD(0.1, momentum=0.9, **case.optimizer),
        {"x": tg.f32[x.shape], "y": tg.f32[y.shape]},
        device=device,
        seed=0,
        **case.options,
    )
    losses = [(await found.step(x=x, y=y)).loss for _ in range(steps)]
    return found, losses, (await found.state_dict())["model"]
