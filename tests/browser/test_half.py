"""f16 on WebGPU. The browser of the tests has none: `tests/unit/test_half.py` runs the same programs elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import half_cases
import tensorgrad as tg
from tensorgrad import nn, optim

pytestmark = pytest.mark.webgpu


async def has_half() -> bool:
    from tensorgrad.device.webgpu import request_device

    device = await request_device()
    features = device.limits.features
    device.close()
    return "shader-f16" in features


@pytest.mark.parametrize("case", half_cases.CASES, ids=lambda case: case.__name__)
async def test_programs_with_f16(case: Any) -> None:
    if not await has_half():
        pytest.skip("this adapter has no shader-f16")
    await case("webgpu")


async def test_a_gpu_without_f16_says_so_and_the_state_can_be_trained_in_f32() -> None:
    if await has_half():
        pytest.skip("this adapter has shader-f16")
    model, specs = nn.Linear(2, 2), {"x": tg.f32[3, 2]}

    def loss(model: nn.Module, x: tg.Tensor) -> tg.Tensor:
        return tg.mean(model(x) ** 2)

    with pytest.raises(tg.UnsupportedError, match="'shader-f16', which this GPU does not offer"):
        await tg.compile(model, loss, optim.SGD(0.1), specs, device="webgpu", dtype=tg.f16)
    with pytest.raises(tg.UnsupportedError, match="'shader-f16'"):
        await tg.jit(lambda x: x.astype(tg.f16), device="webgpu")(np.ones(3, np.float32))
    train = await tg.compile(model, loss, optim.SGD(0.1), specs, device="webgpu")
    assert np.isfinite((await train.step(x=np.ones((3, 2), np.float32))).loss)
