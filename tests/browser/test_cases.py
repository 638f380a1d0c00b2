"""PyTorch's numbers, the agreed cases and optimizers on WebGPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from averaging_cases import accumulation, averages, normalization
from draw_cases import agree
from reference.agree import case_agrees, given, module_cases, modules_agree, operations_agree, optimizer_agrees
from reference.cases import CASES, Case
from reference.stored import f, pytorch
from tensorgrad import optim

pytestmark = pytest.mark.webgpu


@pytest.mark.parametrize("part", range(6))
async def test_operations_agree_with_pytorch(part: int) -> None:
    rows = pytorch()["operations"]
    wrong = await operations_agree(rows[len(rows) * part // 6 : len(rows) * (part + 1) // 6], "webgpu")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("part", range(4))
async def test_modules_agree_with_pytorch(part: int) -> None:
    wrong = await modules_agree(module_cases()[part::4], "webgpu", 1e-5, 3e-6)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_agreed_cases(case: Case) -> None:
    await case_agrees(case, "webgpu")


# small and zero gradients of the longer cases take no other kernels
OPTIMIZERS = [n for n, case in enumerate(pytorch()["optimizers"]) if len(case["grads"]) < 10 or case["size"] == 1]


@pytest.mark.parametrize("at", OPTIMIZERS)
async def test_optimizers_step_as_pytorch(at: int) -> None:
    await optimizer_agrees(pytorch()["optimizers"][at], "webgpu")


@pytest.mark.parametrize("case", [accumulation, averages, normalization], ids=lambda case: case.__name__)
async def test_averaging(case: Any) -> None:
    await case("webgpu")


async def test_draws() -> None:
    await agree("webgpu")


async def test_a_loss_that_is_not_finite_changes_nothing() -> None:
    start = {"w": f([[1, 2], [3, 4]]), "b": f([5])}
    train = await given(start, optim.AdamW(0.1), "webgpu")
    good = {"w": f([[1, -1], [0.5, 2]]), "b": f([1])}
    await train.step(grads=good)
    before = await train.state_dict()
    for bad in (np.nan, np.inf):
        result = await train.step(grads={**good, "b": f([bad])})
        assert not np.isfinite(result.loss)
    after = await train.state_dict()
    for part in ("model", "optimizer"):
        for name, value in before[part].items():
            np.testing.assert_array_equal(after[part][name], value)
    assert train.state.steps == 1
    await train.step(grads=good)
    assert not np.array_equal((await train.state_dict())["model"]["w"], before["model"]["w"])
    train.destroy()
