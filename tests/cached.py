"""What the tests of the plan cache share: a storage in memory, and a step's recipe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tensorgrad as tg
from tensorgrad import nn, optim
from tensorgrad.backend import Numpy
from tensorgrad.program import Recipe
from tensorgrad.state import State
from tensorgrad.step import step_recipe
from tensorgrad.structure import Structure

SPECS = {"x": tg.f32[4, 3], "y": tg.i32[4]}

Loss = Callable[..., tg.Tensor]


class Memory:
    """A storage that counts its calls."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.used: dict[str, float] = {}
        self.calls: list[str] = []

    async def get(self, key: str, now: float) -> str | None:
        self.calls.append("get")
        if key in self.texts:
            self.used[key] = now
        return self.texts.get(key)

    async def put(self, key: str, text: str, now: float, size: int) -> None:
        self.calls.append("put")
        self.texts[key], self.used[key] = text, now

    async def uses(self) -> dict[str, tuple[int, float]]:
        return {key: (len(text), self.used[key]) for key, text in self.texts.items()}

    async def delete(self, keys: list[str]) -> None:
        for key in keys:
            del self.texts[key], self.used[key]

    async def clear(self) -> None:
        self.texts.clear()
        self.used.clear()


class Net(nn.Module):
    """A linear layer, dropout, a running mean and a table of constants."""

    def __init__(self, width: int = 3, scale: float = 2.0, init: int = 1) -> None:
        nn.init.manual_seed(init)
        self.out, self.drop, self.mean = nn.Linear(3, width), nn.Dropout(0.25), nn.Buffer(np.zeros(3))
        self.table = np.arange(width, dtype=np.float32) * np.float32(scale)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        tg.update_state(self.mean, self.mean * 0.5 + tg.mean(x, axis=0) * 0.5)
        return self.out(self.drop(x)) + tg.tensor(self.table)


def loss_fn(model: Net, x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
    logits = model(x)
    tg.capture("top", tg.max(logits, axis=1))
    return tg.cross_entropy(logits, y)


def recipe(
    model: Net | None = None, loss: Loss = loss_fn, optimizer: optim.Optimizer | None = None, specs: Any = None
) -> Recipe:
    """A step of a new state."""
    model, optimizer = model or Net(), optimizer or optim.AdamW(1e-2)
    state = State(model, Numpy(), 0)
    with state.entering(optimizer):
        return step_recipe(model, loss, optimizer, Structure(specs or SPECS), state)(state.spans("optim"))
