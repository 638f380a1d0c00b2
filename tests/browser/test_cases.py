"""PyTorch's numbers, the agreed cases and optimizers on WebGPU."""

from __future__ import annotations

import numpy as np
import pytest

import tensorgrad as tg
from reference.agree import case_agrees, operation_agrees
from reference.cases import CASES, Case
from reference.stored import array, arrays, f, pytorch
from tensorgrad import nn, optim
from tensorgrad.trace import current_graph

pytestmark = pytest.mark.webgpu


async def test_operations_agree_with_pytorch() -> None:
    wrong = []
    for case in pytorch()["operations"]:
        try:
            await operation_agrees(case, "webgpu")
        except AssertionError as error:
            wrong.append(str(error))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_agreed_cases(case: Case) -> None:
    await case_agrees(case, "webgpu")


class Given(nn.Module):
    """Parameters whose gradients are inputs."""

    def __init__(self, start: dict[str, np.ndarray]) -> None:
        for name, value in start.items():
            setattr(self, name, nn.Parameter(value))


def product(model: nn.Module, grads: dict[str, tg.Tensor]) -> tg.Tensor:
    """A loss whose gradients are what it is given."""
    loss = tg.zeros(())
    for name, grad in grads.items():
        loss = loss + tg.sum(model.get_parameter(name) * grad)
    assert current_graph() is loss.graph
    return loss


@pytest.mark.parametrize("at", range(len(pytorch()["optimizers"])))
async def test_optimizers_step_as_pytorch(at: int) -> None:
    case = pytorch()["optimizers"][at]
    start = arrays(case["start"])
    specs = {"grads": {name: tg.f32[value.shape] for name, value in start.items()}}
    optimizer = getattr(optim, case["name"])(**case["options"])
    train = await tg.compile(Given(start), product, optimizer, specs, device="webgpu")
    for grads, expected in zip(case["grads"], case["params"], strict=True):
        await train.step(grads=arrays(grads))
        found = (await train.state_dict())["model"]
        for name, entry in expected.items():
            np.testing.assert_allclose(found[name], array(entry), rtol=5e-6, atol=5e-7)
    train.destroy()


async def test_a_loss_that_is_not_finite_changes_nothing() -> None:
    start = {"w": f([[1, 2], [3, 4]]), "b": f([5])}
    specs = {"grads": {name: tg.f32[value.shape] for name, value in start.items()}}
    train = await tg.compile(Given(start), product, optim.AdamW(0.1), specs, device="webgpu")
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
