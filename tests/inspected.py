"""A small classifier whose compiled step several tests look into."""

from __future__ import annotations

import asyncio

import numpy as np

import tensorgrad as tg
from tensorgrad import nn, optim
from tensorgrad.lower.lowering import Lowered

SPECS = {"x": tg.f32[8, 20], "y": tg.i32[8]}
BATCH = {
    "x": np.random.default_rng(0).normal(size=(8, 20)).astype(np.float32),
    "y": np.random.default_rng(1).integers(0, 10, 8).astype(np.int32),
}


class MLP(nn.Module):
    """Two layers; with dropout, random numbers are looked into too."""

    def __init__(self, dropout: float = 0.0) -> None:
        nn.init.manual_seed(3)
        self.hidden = nn.Linear(20, 16)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(16, 10)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        hidden = tg.relu(self.hidden(x))  # the hidden layer's line
        return self.out(self.dropout(hidden))


def loss_fn(model: MLP, x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
    return tg.cross_entropy(model(x), y)


def compiled(device: str = "interpret") -> tg.Train:
    return asyncio.run(tg.compile(MLP(), loss_fn, optim.AdamW(1e-2), SPECS, device=device, seed=5))


def lowered(train: tg.Train) -> Lowered:
    assert train.built.lowered is not None
    return train.built.lowered


def weights(train: tg.Train) -> dict[str, np.ndarray]:
    state = asyncio.run(train.state_dict())
    return {**state["model"], **state["optimizer"], "calls": np.array(state["calls"]), "seed": np.array(state["seed"])}
