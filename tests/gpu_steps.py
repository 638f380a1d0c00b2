"""Training steps as they are compiled for a GPU, with cut sums and tiled matmuls, against the numpy device.

`tests/unit/test_naga_steps.py` runs all of them on the second device, `tests/browser/test_gpu_step.py` some on WebGPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tensorgrad as tg
from merging import CASES, train
from tensorgrad import nn, optim
from tensorgrad.backend import WebGPU


def as_gpu(backend: WebGPU) -> WebGPU:
    """The same device, taken for a GPU: with WebGPU's default limits on workgroups."""
    found = WebGPU(backend.device)
    found.limits = backend.limits._replace(software=False, invocations=256, workgroup_storage=16_384)
    return found


async def losses(device: Any, model: nn.Module, loss_fn: Any, specs: Any, batches: list[Any]) -> list[float]:
    train = await tg.compile(model, loss_fn, optim.AdamW(1e-3), specs, device=device, seed=0)
    found = [(await train.step(**batch)).loss for batch in batches]
    train.destroy()
    return found


class Deep(nn.Module):
    def __init__(self) -> None:
        self.table = nn.Embedding(11, 37)
        self.first, self.last = nn.Linear(37, 67), nn.Linear(67, 10)
        self.scale = nn.Parameter(np.ones(10, np.float32))

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        return self.last(tg.gelu(self.first(self.table(x)), approximate="tanh")) * self.scale


async def layers_of_odd_sizes(backend: WebGPU, rows: int) -> None:
    specs = {"x": tg.i32[rows], "y": tg.i32[rows]}
    rng = np.random.default_rng(0)
    batches = [{"x": rng.integers(0, 11, rows), "y": rng.integers(0, 10, rows)} for _ in range(3)]
    found = []
    for device in ("numpy", as_gpu(backend)):
        nn.init.manual_seed(1)
        found.append(await losses(device, Deep(), lambda m, x, y: tg.cross_entropy(m(x), y), specs, batches))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4)


async def matmuls_that_are_merged(backend: WebGPU, name: str) -> None:
    """A step of `merging.CASES`: its losses and the weights after it."""
    plain, merged = await train(CASES[name], "numpy"), await train(CASES[name], as_gpu(backend))
    if name == "heads":
        await merged[0].check()
    merged[0].destroy()
    np.testing.assert_allclose(merged[1], plain[1], rtol=1e-4)
    for weight, wanted in plain[2].items():
        np.testing.assert_allclose(merged[2][weight], wanted, rtol=1e-3, atol=1e-4, err_msg=weight)
