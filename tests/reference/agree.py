"""Checks of stored numbers that every device runs: through `tg.jit`, so with passes, fusion and kernels."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from reference.cases import Case
from reference.stored import array, arrays
from tensorgrad import nn, ops, optim
from tensorgrad.autodiff import append_grad
from tensorgrad.tensor import Tensor

RTOL, ATOL = 1e-5, 1e-6
"""Of f32 sums in another order, and of exp and log a few units in the last place."""

NORMAL_ATOL = ATOL / 0.2
"""Of normalized numbers: what rounding leaves of x - mean is divided by the standard deviation, 0.2 and more."""


def weights(y: Tensor) -> np.ndarray:
    """Numbers with which no two elements count the same; `make_pytorch.py` uses them too."""
    return np.cos(np.arange(y.size, dtype=np.float32)).reshape(y.shape)


def operation(case: dict[str, Any]) -> Callable[..., list[Tensor]]:
    """A stored operation: its value, then the gradients of its weighted sum."""
    wanted = case.get("grads", {})

    def fn(**leaves: Tensor) -> list[Tensor]:
        y = eval(case["expr"], {**vars(ops), **leaves})
        if not wanted:
            return [y]
        return [y, *append_grad(ops.sum(y * weights(y)), [leaves[name] for name in wanted])]

    return fn


async def operation_agrees(case: dict[str, Any], device: str) -> None:
    """An operation's value and gradients on a device against PyTorch's."""
    y, *grads = await tg.jit(operation(case), device=device)(**arrays(case["inputs"]))
    np.testing.assert_allclose(y, array(case["y"]), RTOL, ATOL, err_msg=case["name"])
    for (name, expected), grad in zip(case.get("grads", {}).items(), grads, strict=True):
        np.testing.assert_allclose(
            grad, array(expected), 5 * RTOL, 3 * ATOL, err_msg=f"{case['name']}: the gradient of {name}"
        )


async def case_agrees(case: Case, device: str) -> None:
    """An agreed case on a device."""
    explained = case.name == "index_out_of_range"
    with pytest.warns(RuntimeWarning, match="the result holds NaN: input") if explained else nullcontext():
        results = await tg.jit(lambda **leaves: case.fn(**leaves), device=device)(**case.inputs)
    for result, expected in zip(results, case.expected, strict=True):
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype), case.name
        np.testing.assert_allclose(result, expected, 3e-6, 1e-7, err_msg=case.name)


class Given(nn.Module):
    """Parameters that move by gradients which are given."""

    def __init__(self, start: dict[str, np.ndarray]) -> None:
        for name, value in start.items():
            setattr(self, name, nn.Parameter(value))


def product(model: nn.Module, grads: dict[str, Tensor]) -> Tensor:
    """A loss whose gradients are `grads`."""
    loss = ops.zeros(())
    for name, grad in grads.items():
        loss = loss + ops.sum(model.get_parameter(name) * grad)
    return loss


async def given(start: dict[str, np.ndarray], optimizer: optim.Optimizer, device: str) -> tg.Train:
    """A training whose steps take gradients: `step(grads={name: array})`."""
    specs = {"grads": {name: tg.f32[value.shape] for name, value in start.items()}}
    return await tg.compile(Given(start), product, optimizer, specs, device=device)


async def optimizer_agrees(case: dict[str, Any], device: str) -> None:
    """An optimizer's steps on a device against PyTorch's."""
    train = await given(arrays(case["start"]), getattr(optim, case["name"])(**case["options"]), device)
    for grads, expected in zip(case["grads"], case["params"], strict=True):
        await train.step(grads=arrays(grads))
        found = (await train.state_dict())["model"]
        for name, entry in expected.items():
            np.testing.assert_allclose(found[name], array(entry), rtol=5e-6, atol=5e-7)
    train.destroy()


class Normalized(nn.Module):
    """A module whose statistics move, beside a parameter to be trained."""

    def __init__(self, inner: nn.Module) -> None:
        self.inner, self.scale = inner, nn.Parameter(np.ones((), np.float32))

    def forward(self, x: Tensor) -> Tensor:
        return tg.capture("y", self.inner(x)).mean() * self.scale


async def statistics_agree(case: dict[str, Any], device: str) -> None:
    """A batch norm's results and running statistics, batch by batch, and its evaluation; a bad batch between."""
    xs = [array(x) for x in case["xs"]]
    model = Normalized(eval(case["module"], {"nn": nn}))
    optimizer = optim.SGD(0.0)
    train = await tg.compile(model, lambda m, x: m(x), optimizer, {"x": tg.f32[xs[0].shape]}, device=device)
    for x, y, state in zip(xs, case["ys"], case["states"], strict=True):
        assert not np.isfinite((await train.step(x=np.full_like(x, np.nan))).loss)
        result = await train.step(x=x)
        np.testing.assert_allclose(result.captures["y"], array(y), RTOL, NORMAL_ATOL)
        found = (await train.state_dict())["model"]
        for name, entry in state.items():
            np.testing.assert_allclose(found[f"inner.{name}"], array(entry), RTOL, ATOL, err_msg=name)
    predict = await train.attach(lambda m, x: m.inner(x), {"x": tg.f32[xs[0].shape]})
    np.testing.assert_allclose(await predict(x=xs[0]), array(case["evaluated"]), RTOL, NORMAL_ATOL)
    train.destroy()
