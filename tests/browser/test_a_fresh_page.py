"""A 4-layer character transformer: compile time, dispatches, and the same losses as the reference.

By its name this file comes first: a reader's page has compiled nothing before either. After hundreds of other tests
in one page the same compilation takes half as long again.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

import tensorgrad as tg
from models import CharGPT, characters, next_token_loss
from tensorgrad import nn, optim

pytestmark = pytest.mark.webgpu(timeout=300)

BATCH, CONTEXT, VOCABULARY = 16, 64, 65


async def losses(device: str, steps: int) -> tuple[list[float], tg.Train, float]:
    nn.init.manual_seed(1)
    model = CharGPT(layers=4, width=128, heads=4, context=CONTEXT, vocabulary=VOCABULARY)
    specs = {"x": tg.i32[BATCH, CONTEXT], "y": tg.i32[BATCH, CONTEXT]}
    start = time.perf_counter()
    train = await tg.compile(model, next_token_loss, optim.AdamW(1e-3), specs, device=device, seed=0)
    seconds = time.perf_counter() - start
    found = []
    for step in range(steps):
        x, y = characters(BATCH, CONTEXT, VOCABULARY, seed=step)
        found.append((await train.step(x=x, y=y)).loss)
    return found, train, seconds


async def test_a_character_transformer_trains_as_the_reference_does() -> None:
    on_gpu, train, seconds = await losses("webgpu", 3)
    reference, _, _ = await losses("numpy", 3)
    dispatches = sum(kernel.runs for kernel in train.built.kernels)
    print(f"compiled in {seconds:.2f} s, {dispatches} dispatches a step, losses {on_gpu}")
    # f32 sums in another order, amplified by three updates
    np.testing.assert_allclose(on_gpu, reference, rtol=1e-4)
    assert dispatches <= 250
    assert seconds <= 5
