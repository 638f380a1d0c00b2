"""Checks of stored numbers that every device runs: through `tg.jit`, so with passes, fusion and kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from reference.cases import Case
from reference.stored import array, arrays, pytorch
from tensorgrad import nn, ops, optim
from tensorgrad.autodiff import append_grad
from tensorgrad.dtypes import from_numpy
from tensorgrad.predict import Predictor
from tensorgrad.state import open_state
from tensorgrad.structure import Structure
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
    _compare(case, await tg.jit(operation(case), device=device)(**arrays(case["inputs"])))


async def operations_agree(cases: Sequence[dict[str, Any]], device: str, at_once: int = 32) -> list[str]:
    """The same for many, of which so many are one program; gives what differs.

    Equal inputs are one leaf of a program, so that what reads them shares kernels: compiling them is most of the time.
    """
    wrong = []
    for first in range(0, len(cases), at_once):
        part = cases[first : first + at_once]
        held: dict[str, np.ndarray] = {}
        names: dict[str, str] = {}
        places: list[dict[str, str]] = [{} for _ in part]
        for case, place in zip(part, places, strict=True):
            for name, entry in case["inputs"].items():
                place[name] = names.setdefault(str(entry), f"x{len(names)}")
                held[place[name]] = array(entry)

        def fn(leaves: dict[str, Tensor], part: Any = part, places: Any = places) -> list[list[Tensor]]:
            return [operation(c)(**{n: leaves[x] for n, x in p.items()}) for c, p in zip(part, places, strict=True)]

        for case, found in zip(part, await tg.jit(fn, device=device)(held), strict=True):
            try:
                _compare(case, found)
            except AssertionError as error:
                wrong.append(str(error))
    return wrong


def _compare(case: dict[str, Any], found: Sequence[np.ndarray]) -> None:
    y, *grads = found
    np.testing.assert_allclose(y, array(case["y"]), RTOL, ATOL, err_msg=case["name"])
    for (name, expected), grad in zip(case.get("grads", {}).items(), grads, strict=True):
        np.testing.assert_allclose(
            grad, array(expected), 5 * RTOL, 3 * ATOL, err_msg=f"{case['name']}: the gradient of {name}"
        )


def module_cases() -> list[dict[str, Any]]:
    """All stored calls of modules."""
    forwards = [
        {**case, "inputs": {"x": case["x"]}, "call": "m(x)", "results": [case["y"]], "training": True}
        for case in pytorch()["forwards"]
    ]
    return forwards + pytorch()["called"]


def tensors(nest: Any) -> list[Tensor]:
    """The tensors of nested tuples."""
    return [t for part in nest for t in tensors(part)] if isinstance(nest, tuple) else [nest]


def module_call(case: dict[str, Any], module: nn.Module, leaves: dict[str, Tensor]) -> list[Tensor]:
    """A stored call of a module: its results, then the gradients of parameters and inputs of their weighted sum."""
    results = tensors(eval(case["call"], {"m": module, "nn": nn, **leaves}))
    loss = sum((ops.sum(y * weights(y)) for y in results), start=ops.zeros(()))
    wanted = {**dict(module.named_parameters()), **leaves}
    return [*results, *append_grad(loss, [wanted[name] for name in case["grads"]])]


async def modules_agree(cases: Sequence[dict[str, Any]], device: Any, rtol: float, atol: float) -> list[str]:
    """Modules' results and gradients on a device against PyTorch's, all in one program; gives what differs.

    Values may differ by `atol + rtol * |y|`, gradients, which are sums over more numbers, by three times as much.
    """
    modules: list[nn.Module] = [eval(case["module"], {"nn": nn}) for case in cases]
    for module, case in zip(modules, cases, strict=True):
        assert list(module.state_dict()) == list(case["state"])
        module.load_state_dict(arrays(case["state"]))
        module.train(case["training"])
    inputs = {str(at): arrays(case["inputs"]) for at, case in enumerate(cases)}
    specs = {at: {n: from_numpy(a.dtype)[a.shape] for n, a in given.items()} for at, given in inputs.items()}

    def calls(model: nn.ModuleList, given: dict[str, dict[str, Tensor]]) -> list[list[Tensor]]:
        return [module_call(case, model[at], given[str(at)]) for at, case in enumerate(cases)]

    predict = Predictor(
        await open_state(nn.ModuleList(modules), None, device, None), calls, Structure({"given": specs}), True
    )
    wrong = []
    for case, found in zip(cases, await predict(given=inputs), strict=True):
        expected = [(f"result {n}", y, 1) for n, y in enumerate(case["results"])]
        expected += [(f"the gradient of {name}", y, 3) for name, y in case["grads"].items()]
        for (what, y, more), got in zip(expected, found, strict=True):
            try:
                np.testing.assert_allclose(got, array(y), more * rtol, more * atol, err_msg=f"{case['name']}: {what}")
            except AssertionError as error:
                wrong.append(str(error))
    predict.destroy()
    return wrong


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
