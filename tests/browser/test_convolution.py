"""Convolutional networks on WebGPU: statistics as PyTorch's, a residual block's kernels, and learning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from reference.agree import statistics_agree
from reference.stored import pytorch
from tensorgrad import nn, ops, optim

pytestmark = pytest.mark.webgpu


@pytest.mark.parametrize("case", pytorch()["statistics"], ids=lambda case: case["name"])
async def test_running_statistics_as_pytorch(case: dict[str, Any]) -> None:
    await statistics_agree(case, "webgpu")


async def test_the_padding_of_a_pool_gets_no_gradient() -> None:
    """What is compared with the padding is infinite, and shader compilers may assume that nothing is."""
    x = np.random.default_rng(0).normal(size=(2, 3, 9, 9)).astype(np.float32)
    x[:, :, :5, 4:] = -np.inf

    def loss(x: tg.Tensor) -> tg.Tensor:
        y = ops.max_pool2d(x, 3, 2, 1)
        return tg.sum(y * tg.where(tg.isfinite(y), 1.0, 3.0))

    found, wanted = [await tg.grad(loss, device=device)(x) for device in ("webgpu", "numpy")]
    np.testing.assert_array_equal(found, wanted)
    assert wanted.sum() == 6 * (21 * 1 + 4 * 3), "of 25 windows of an image, 4 are infinite"


class Net(nn.Module):
    """A residual block and a pool."""

    def __init__(self) -> None:
        self.stem, self.norm = nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.down = nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False)
        self.side = nn.Conv2d(8, 16, 1, stride=2)
        self.after = nn.BatchNorm2d(16)
        self.fc = nn.Linear(16, 4)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        h = tg.relu(self.norm(self.stem(x)))
        h = tg.relu(self.after(self.down(h)) + self.side(h))
        return self.fc(ops.adaptive_avg_pool2d(ops.max_pool2d(h, 2), 1).flatten(1))


async def test_a_residual_network_learns_where_a_bright_spot_is() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 64).astype(np.int32)
    x = rng.normal(size=(64, 1, 8, 8)).astype(np.float32) * 0.3
    for image, corner in zip(x, y, strict=True):
        image[0, corner // 2 * 4 : corner // 2 * 4 + 4, corner % 2 * 4 : corner % 2 * 4 + 4] += corner + 1
    nn.init.manual_seed(0)
    specs = {"x": tg.f32[64, 1, 8, 8], "y": tg.i32[64]}
    train = await tg.compile(Net(), lambda m, x, y: tg.cross_entropy(m(x), y), optim.Adam(1e-2), specs)
    await train.check(x=x, y=y)  # every kernel against the reference
    losses = [(await train.step(x=x, y=y)).loss for _ in range(40)]
    assert losses[-1] < 0.1 < losses[0]
    predict = await train.attach(lambda m, x: tg.softmax(m(x)), {"x": tg.f32[None, 1, 8, 8]})
    assert ((await predict(x=x)).argmax(1) == y).mean() > 0.95
