"""Small trainings that several tests run.

`start` makes a classifier with dropout, statistics and every optimizer state; `line` a linear layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import tensorgrad as tg
from tensorgrad import nn, optim

SPECS = {"x": tg.f32[8, 5], "t": tg.i32[8]}

Batch = dict[str, np.ndarray]


class Net(nn.Module):
    """Dropout, a buffer that follows the data, and a parameter that the loss does not reach."""

    def __init__(self, dropout: float = 0.3) -> None:
        self.into, self.out = nn.Linear(5, 16), nn.Linear(16, 3)
        self.drop = nn.Dropout(dropout)
        self.mean = nn.Buffer(np.zeros(5))
        self.unused = nn.Linear(2, 2)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        tg.update_state(self.mean, self.mean * 0.5 + tg.mean(x, axis=0) * 0.5)
        return self.out(self.drop(tg.relu(self.into(x))))


def loss_fn(model: Net, x: tg.Tensor, t: tg.Tensor) -> tg.Tensor:
    return tg.cross_entropy(model(x), t)


def batch(seed: int) -> Batch:
    rng = np.random.default_rng(seed)
    return {"x": rng.normal(size=(8, 5)).astype(np.float32), "t": rng.integers(0, 3, 8).astype(np.int32)}


async def start(device: Any, *, init: int = 1, dropout: float = 0.3, **options: Any) -> tg.Train:
    """A training from the weights that `init` draws, with momenta and a schedule."""
    nn.init.manual_seed(init)
    optimizer = optim.AdamW(optim.StepLR(0.05, 3), weight_decay=0.1)
    return await tg.compile(Net(dropout), loss_fn, optimizer, SPECS, device=device, **{"seed": 3, **options})


async def losses(train: tg.Train, first: int, last: int) -> list[float]:
    """The losses of the steps with the batches `first` up to `last`."""
    return [(await train.step(batch(i))).loss for i in range(first, last)]


def stacked(seeds: range) -> Batch:
    """The batches of these seeds on a leading axis."""
    each = [batch(seed) for seed in seeds]
    return {name: np.stack([one[name] for one in each]) for name in each[0]}


async def single(train: tg.Train, data: Batch, k: int) -> list[float]:
    """The losses of `k` steps on batches with a leading axis, round and round."""
    count = len(data["x"])
    return [(await train.step({name: data[name][i % count] for name in data})).loss for i in range(k)]


def assert_same(found: Mapping[str, Any], expected: Mapping[str, Any], *, counters: bool = True) -> None:
    """Two state dicts are equal bit for bit; without `counters`, the number of calls may differ."""
    for part in ("model", "optimizer"):
        assert found[part].keys() == expected[part].keys()
        for name, array in expected[part].items():
            assert found[part][name].tobytes() == array.tobytes(), name
    if counters:
        assert (found["calls"], found["seed"]) == (expected["calls"], expected["seed"])


LINE = {"x": tg.f32[3, 2]}
ONES = np.ones((3, 2), np.float32)


def squares(model: nn.Module, x: tg.Tensor) -> tg.Tensor:
    return tg.mean(model(x) ** 2)


async def line(loss: Any = squares, inputs: Any = LINE, **options: Any) -> tg.Train:
    """A 2-to-2 linear layer, under SGD unless another optimizer is given; the same weights each time."""
    nn.init.manual_seed(1)
    given = {"optimizer": optim.SGD(0.1), "device": "numpy", **options}
    return await tg.compile(nn.Linear(2, 2), loss, inputs=inputs, **given)
