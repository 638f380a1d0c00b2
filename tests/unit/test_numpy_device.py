"""The numpy device: evaluation with the reference rules, and a runtime that steps like the GPU's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest

from reference.modules import Tied
from reference.stored import f, step_row
from tensorgrad import nn, ops, optim
from tensorgrad.autodiff import append_grad
from tensorgrad.device.numpy import Evaluator, NumpyRuntime, evaluate
from tensorgrad.dtypes import bool_, i32
from tensorgrad.errors import InputError, TensorgradError
from tensorgrad.graph import Graph
from tensorgrad.primitive import REGISTRY, Primitive
from tensorgrad.tensor import Tensor
from tensorgrad.trace import capture, current_graph, param_input, state_input, tensor_input, trace, update_state


def wait(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(coroutine)


def counting() -> Tensor:
    """A parameter that falls by 1 a step and a state that counts them; the loss is their product with x."""
    x, p = tensor_input("x", (2,)), param_input("p", (2,))
    n = state_input("n", (), i32, initial=3)
    update_state(p, p - 1.0)
    update_state(n, n + 1)
    current_graph().grads["p"] = (x * 2.0).value
    capture("doubled", p * 2.0)
    return ops.sum(p * x) + n


def runtime(**kw: Any) -> NumpyRuntime:
    made = NumpyRuntime(trace(counting), **kw)
    made.upload_params({"p": f([10, 20])})
    return made


X = {"x": f([1, 2])}


def test_a_step_reads_old_values_and_then_updates() -> None:
    made = runtime()
    assert [wait(made.step(X)) for _ in range(3)] == [50 + 3, 47 + 4, 44 + 5]
    np.testing.assert_array_equal(wait(made.download_params())["p"], [7, 17])
    assert wait(made.download_states()) == {"n": 6}
    np.testing.assert_array_equal(wait(made.download_param_grads())["p"], [2, 4])
    assert set(wait(made.download())) == {"p", "n"}


def test_outputs_by_name() -> None:
    made = runtime()
    results = wait(made.run(X))
    assert set(results) == {"loss", "doubled"}
    np.testing.assert_array_equal(results["doubled"], [20, 40])
    results["doubled"][:] = 0  # a copy
    np.testing.assert_array_equal(wait(made.run(X, ["doubled"]))["doubled"], [18, 38])
    with pytest.raises(InputError, match="no output 'other'; outputs are"):
        wait(made.run(X, ["other"]))


def test_losses_that_nobody_read() -> None:
    made = runtime()
    assert wait(made.losses()).tolist() == []
    wait(made.submit(X))
    wait(made.step(X))
    wait(made.submit(X))
    wait(made.run(X, ["doubled"]))
    losses = wait(made.losses())
    assert losses.dtype == np.float32
    assert losses.tolist() == [53, 49, 47]
    assert wait(made.losses()).tolist() == []


def test_two_steps_at_once_run_one_after_the_other() -> None:
    made, other = runtime(), runtime()

    async def both() -> list[float]:
        return list(await asyncio.gather(made.step(X), made.step({"x": f([0, 1])})))

    assert wait(both()) == [wait(other.step(X)), wait(other.step({"x": f([0, 1])}))]


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ({}, "missing inputs 'x'"),
        ({**X, "y": 1}, "unknown inputs 'y'"),
        ({"x": f([1, 2, 3])}, r"input 'x' has shape \[3\], expected f32\[2\]"),
        ({"x": np.array([1, 2])}, "input 'x' has dtype int64"),
    ],
)
def test_wrong_inputs_change_nothing(inputs: Any, text: str) -> None:
    made = runtime()
    for call in (made.step, made.submit, made.run):
        with pytest.raises(InputError, match=text):
            wait(call(inputs))
    assert wait(made.download_states()) == {"n": 3}


def test_an_interrupted_step_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made = runtime()
    calls = 0

    def interrupted(xp: Any, a: Any, b: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise KeyboardInterrupt
        return a + b

    add = REGISTRY["add"]
    monkeypatch.setitem(REGISTRY, "add", Primitive("add", add.shape, interrupted))
    with pytest.raises(KeyboardInterrupt):
        wait(made.step(X))
    assert calls == 2
    np.testing.assert_array_equal(wait(made.download_params())["p"], [10, 20])
    assert wait(made.download_states()) == {"n": 3}


def test_uploads() -> None:
    made = runtime()
    source = f([1, 2])
    made.upload({"p": source, "n": 7})
    source[:] = 9
    np.testing.assert_array_equal(wait(made.download(["p"]))["p"], [1, 2])
    made.upload_states({"n": 8})
    with pytest.raises(InputError, match="missing parameters 'p'"):
        made.upload_params({})
    made.upload_params({}, strict=False)
    with pytest.raises(InputError, match="unknown parameters and states 'q'"):
        made.upload({"p": f([5, 5]), "q": 1})
    with pytest.raises(InputError, match=r"shape \[3\]"):
        made.upload({"n": 1, "p": f([1, 2, 3])})
    with pytest.raises(InputError, match="unknown"):
        wait(made.download(["q"]))
    assert wait(made.download(["n"])) == {"n": 8}


def test_runtimes_share_a_store() -> None:
    store: dict[str, np.ndarray] = {}
    made = runtime(store=store)
    reader = NumpyRuntime(trace(lambda: param_input("p", (2,)) * tensor_input("s", ())), store=store)
    wait(made.step(X))
    np.testing.assert_array_equal(wait(reader.run({"s": 2.0}))["0"], [18, 38])
    with pytest.raises(InputError, match=r"holds 'p' as float32\[2\], not f32\[3\]"):
        NumpyRuntime(trace(lambda: param_input("p", (3,))), store=store)
    made.destroy()
    np.testing.assert_array_equal(wait(reader.run({"s": 1.0}))["0"], [9, 19])


def test_after_destroy_every_call_says_so() -> None:
    made = runtime()
    made.destroy()
    made.destroy()
    calls: list[Callable[[], Any]] = [
        lambda: wait(made.step(X)),
        lambda: wait(made.submit(X)),
        lambda: wait(made.losses()),
        lambda: wait(made.download()),
        lambda: wait(made.download_param_grads()),
        lambda: made.upload({}),
    ]
    for call in calls:
        with pytest.raises(TensorgradError, match="was destroyed"):
            call()
    assert "destroyed" in repr(made)


def test_without_a_loss_or_gradients() -> None:
    made = NumpyRuntime(trace(lambda: param_input("p", (2,)) * 2.0))
    with pytest.raises(TensorgradError, match="no output named 'loss'"):
        wait(made.step({}))
    with pytest.raises(TensorgradError, match="keep_grads"):
        wait(made.download_param_grads())


def test_profiles_name_the_nodes() -> None:
    made = runtime()
    times = wait(made.profile(X))
    assert any("= add(" in time.name for time in times)
    assert all(time.nanoseconds >= 0 for time in times)
    assert wait(made.download_states()) == {"n": 4}


# Evaluation -----------------------------------------------------------------------------------


def test_only_what_is_wanted_is_evaluated_and_nothing_is_kept_longer_than_needed() -> None:
    def fn() -> Tensor:
        x = tensor_input("x", (2,))
        y = tensor_input("unused", (2,))
        _ = y * 2.0
        return ops.exp(x) + ops.exp(x) * x

    graph = trace(fn)
    results = evaluate(graph, {"x": f([0, 1])})
    np.testing.assert_allclose(results[graph.outputs[0]], [1, 2 * np.e], rtol=1e-6)
    assert list(results) == graph.outputs
    steps = Evaluator(graph).steps
    made = {value for step in steps for value in step.node.values}
    dropped = [value for step in steps for value in step.dead]
    assert len(dropped) == len(set(dropped))
    assert made - set(dropped) == set(graph.outputs)


def test_results_have_the_declared_types_or_the_primitive_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = trace(lambda: tensor_input("x", (2,)) + 1.0)
    assert evaluate(graph, {"x": np.array([1.0, 2.0])}, exact=False)[graph.outputs[0]].dtype == np.float64
    with pytest.raises(AssertionError, match=r"evaluated to float64\[2\], declared f32\[2\]"):
        evaluate(graph, {"x": np.array([1.0, 2.0])})
    with pytest.raises(InputError, match="missing input 'x'"):
        evaluate(graph, {})


def test_initial_values_of_states() -> None:
    graph = trace(lambda: [state_input("a", (2,), initial=1.5), state_input("b", (), bool_, initial=1)])
    a, b = (evaluate(graph, {})[value] for value in graph.outputs)
    np.testing.assert_array_equal(a, [1.5, 1.5])
    assert b
    assert b.dtype == bool


# Training ---------------------------------------------------------------------------------------


def training(module: nn.Module, loss: Callable[[], Tensor], optimizer: optim.Optimizer) -> Graph:
    def fn() -> Tensor:
        value = loss()
        params = {name: p for name, p in module.named_parameters() if p.requires_grad}
        grads = dict(zip(params, append_grad(value, list(params.values())), strict=True))
        optimizer.update(params, grads, value)
        return value

    return trace(fn, training=True, names=nn.leaf_names(module))


def test_tied_weights_train_as_one_parameter() -> None:
    nn.init.manual_seed(0)
    module, optimizer = Tied(), optim.SGD(0.1)

    def loss() -> Tensor:
        return ops.cross_entropy(module(tensor_input("x", (3,), i32)), tensor_input("t", (3,), i32))

    made = NumpyRuntime(training(module, loss, optimizer))
    params = {name: p.numpy() for name, p in module.named_parameters()}
    made.upload_params(params)
    weight = params["embed.weight"].astype(np.float64)
    x, t = np.array([0, 1, 1], np.int32), np.array([1, 2, 3], np.int32)
    for step in range(1, 4):
        row = step_row(0, step, made.graph.slots, optimizer.scalars(step))
        found = wait(made.step({"x": x, "t": t, "step": row}))
        rows = weight[x]
        logits = rows @ weight.T
        chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        assert found == pytest.approx(-np.log(chances[np.arange(3), t]).mean(), rel=1e-5)
        slope = (chances - np.eye(4)[t]) / 3
        grad = slope.T @ rows
        np.add.at(grad, x, slope @ weight)
        weight -= 0.1 * grad
        np.testing.assert_allclose(wait(made.download())["embed.weight"], weight, rtol=1e-4, atol=1e-6)
    assert set(wait(made.download())) == {"embed.weight", "scale"}


def test_an_update_that_reads_its_parameter_transposed() -> None:
    class Square(nn.Module):
        def __init__(self) -> None:
            self.p = nn.Parameter(np.random.default_rng(0).normal(size=(65, 65)) / 8)

    module, optimizer = Square(), optim.SGD(0.01)
    graph = training(module, lambda: ops.sum(ops.square(module.p @ module.p.T)), optimizer)
    made, p = NumpyRuntime(graph), module.p.numpy()
    made.upload_params({"p": p})
    wait(made.step({"step": step_row(0, 1, graph.slots, optimizer.scalars(1))}))
    wide = p.astype(np.float64)
    np.testing.assert_allclose(wait(made.download())["p"], wide - 0.01 * 4 * wide @ wide.T @ wide, rtol=1e-4, atol=1e-5)


def test_learning_a_spiral() -> None:
    nn.init.manual_seed(0)
    rng = np.random.default_rng(0)
    turn = rng.uniform(0, 1, 300)
    label = rng.integers(0, 2, 300).astype(np.int32)
    angle = turn * 5 + label * np.pi
    points = f(np.stack([turn * np.cos(angle), turn * np.sin(angle)], 1) * 2)
    module = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2))
    optimizer = optim.AdamW(optim.CosineAnnealingLR(2e-2, 200))

    def loss() -> Tensor:
        logits = module(tensor_input("x", (300, 2)))
        t = tensor_input("t", (300,), i32)
        capture("right", ops.sum(ops.argmax(logits, 1) == t))
        return ops.cross_entropy(logits, t)

    made = NumpyRuntime(training(module, loss, optimizer))
    made.upload_params(module.state_dict())
    results: dict[str, Any] = {}
    for step in range(1, 201):
        row = step_row(0, step, made.graph.slots, optimizer.scalars(step))
        results = wait(made.run({"x": points, "t": label, "step": row}))
    assert results["right"] >= 295
    assert results["loss"] < 0.1
