"""`attach` and `compile_forward`: functions on a state's weights, one program a shape."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad import backend, nn, optim
from tensorgrad.predict import CACHED
from training import LINE, ONES, SPECS, Net, batch, line, loss_fn, start

OPEN = {"x": tg.f32[None, 2]}


class Answer(NamedTuple):
    label: Any
    scores: Any


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A line for each program that is built."""
    built: list[str] = []
    original = backend.Numpy.build

    async def build(self: Any, graph: Any, *rest: Any) -> Any:
        built.append(str(graph))
        return await original(self, graph, *rest)

    monkeypatch.setattr(backend.Numpy, "build", build)
    return built


def forward(model: nn.Module, x: tg.Tensor) -> tg.Tensor:
    return model(x)


async def test_each_size_is_compiled_once_and_the_last_ones_are_kept(builds: list[str]) -> None:
    model = nn.Linear(2, 2, bias=False)
    predict = await tg.compile_forward(model, forward, OPEN, device="numpy")
    assert not builds, "nothing is compiled before the first call tells the shapes"
    for n in (*range(1, CACHED + 1), 1, 3, CACHED + 1, 1):
        x = np.random.default_rng(n).normal(size=(n, 2)).astype(np.float32)
        np.testing.assert_allclose(await predict(x=x), x @ model.weight.data.T, rtol=1e-5, atol=1e-6)
    assert len(builds) == CACHED + 1
    await predict(x=np.ones((2, 2)))
    assert len(builds) == CACHED + 2, "the size that was unused longest was dropped"
    assert (await predict(x=np.ones((0, 2)))).shape == (0, 2)


async def test_several_open_sizes_are_one_key(builds: list[str]) -> None:
    fn = lambda model, a, b: tg.sum(a, axis=1) @ b  # noqa: E731
    specs = {"a": tg.f32[None, None], "b": tg.f32[None, 3]}
    predict = await tg.compile_forward(nn.Linear(1, 1), fn, specs, device="numpy")
    for n, m in ((2, 3), (3, 2), (2, 3), (2, 4)):
        assert (await predict(a=np.ones((n, m)), b=np.ones((n, 3)))).tolist() == [n * m] * 3
    assert len(builds) == 3
    with pytest.raises(tg.ShapeError):
        await predict(a=np.ones((2, 2)), b=np.ones((3, 3)))


async def test_weights_are_shared_as_they_are_now() -> None:
    train = await line()
    predict = await train.attach(forward, OPEN)
    alone = await tg.compile_forward(train.state.module, forward, OPEN, state=train.state)
    initial = await tg.compile_forward(train.state.module, forward, OPEN, device="numpy")
    first = await predict(x=ONES)
    np.testing.assert_array_equal(await alone(x=ONES), first)
    await train.step(x=ONES)
    weights = (await train.state_dict())["model"]
    np.testing.assert_allclose(await predict(x=ONES), ONES @ weights["weight"].T + weights["bias"], rtol=1e-5)
    np.testing.assert_array_equal(await predict(x=ONES), await alone(x=ONES))
    np.testing.assert_array_equal(await initial(x=ONES), first, "a state of its own begins at the module's values")
    await train.load_state_dict({name: np.ones_like(array) for name, array in weights.items()})
    np.testing.assert_array_equal(await predict(x=ONES), np.full((3, 2), 3))


async def test_results_have_the_form_that_the_function_gave_them() -> None:
    def answer(model: nn.Linear, x: tg.Tensor) -> dict[str, Any]:
        scores = model(x)
        return {
            "answer": Answer(tg.argmax(scores, axis=1), [scores, model.weight]),
            "x": x,
            "weight": tg.add(model.bias, 0),
        }

    for device in ("numpy", "interpret"):
        train = await line(device=device)
        found = await (await train.attach(answer, OPEN))(x=ONES)
        assert type(found["answer"]) is Answer
        assert found["answer"].label.dtype == np.int32
        weights = (await train.state_dict())["model"]
        np.testing.assert_array_equal(found["answer"].scores[1], weights["weight"])
        np.testing.assert_array_equal(found["weight"], weights["bias"])
        np.testing.assert_array_equal(found["x"], ONES)
        found["answer"].scores[1][...] = 9
        np.testing.assert_array_equal((await train.state_dict())["model"]["weight"], weights["weight"])


async def test_calls_and_steps_take_turns() -> None:
    train, twin = await line(), await line()
    predict, other = await train.attach(forward, OPEN), await twin.attach(forward, OPEN)
    sizes = range(1, 2 * CACHED)
    work = [f for n in sizes for f in (predict(x=np.ones((n, 2))), train.step(x=ONES))]
    found = await asyncio.gather(*work)
    for n, (mine, step) in zip(sizes, zip(found[::2], found[1::2], strict=True), strict=True):
        np.testing.assert_array_equal(mine, await other(x=np.ones((n, 2))))
        assert step.loss == (await twin.step(x=ONES)).loss


async def test_predictions_count_as_calls_only_where_they_draw() -> None:
    train = await start("numpy", dropout=0.5)
    still = await train.attach(forward, {"x": SPECS["x"]})
    drops = await train.attach(forward, {"x": SPECS["x"]}, training=True)
    x = batch(0)["x"]
    await still(x=x)
    assert train.state.calls == 0
    assert not np.array_equal(await drops(x=x), await drops(x=x))
    assert (train.state.calls, train.state.steps) == (2, 0)
    with pytest.raises(tg.InputError):
        await drops(x=x.astype(complex))
    assert train.state.calls == 2


async def test_a_forward_pass_alone_has_no_optimizer_and_can_be_trained_later() -> None:
    nn.init.manual_seed(1)
    model = Net(0.0)
    predict = await tg.compile_forward(model, forward, {"x": SPECS["x"]}, device="numpy", seed=3)
    before = await predict(x=batch(0)["x"])
    assert (await predict.state.state_dict())["optimizer"] == {}
    train = await tg.compile(
        model, loss_fn, optim.AdamW(optim.StepLR(0.05, 3), weight_decay=0.1), SPECS, state=predict.state
    )
    twin = await start("numpy", dropout=0.0)
    for i in range(2):
        assert (await train.step(batch(i))).loss == (await twin.step(batch(i))).loss
    assert not np.array_equal(await predict(x=batch(0)["x"]), before)
    assert train.state.seed == 3


async def test_it_follows_a_state_that_is_restored() -> None:
    train = await line(snapshot_every=1)
    predict = await train.attach(forward, OPEN)
    await train.step(x=ONES)
    expected = await predict(x=ONES)
    await train.restore()
    np.testing.assert_array_equal(await predict(x=ONES), expected)
    predict.destroy()
    predict.destroy()
    np.testing.assert_array_equal(await predict(x=ONES), expected, "the next call compiles again")


# Errors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, r"missing \['x'\]"),
        ({"y": ONES}, r"missing \['x'\] and unknown \['y'\]"),
        ({"x": np.ones((3, 4))}, r"input 'x' has shape \[3, 4\], expected f32\[None, 2\]"),
        ({"x": np.ones(2)}, r"input 'x' has shape \[2\], expected f32\[None, 2\]"),
        ({"x": [[1.0], [1.0, 2.0]]}, "input 'x' is not an array"),
        ({"x": np.ones((3, 2), complex)}, "input 'x' has dtype complex128"),
        ({"x": np.ones((3, 2), int)}, "input 'x' has dtype int64"),
        ({"x": [["a", "b"]]}, "input 'x' has dtype <U1"),
    ],
    ids=str,
)
async def test_inputs_that_do_not_fit(given: dict[str, Any], message: str) -> None:
    train = await line()
    predict = await train.attach(forward, OPEN)
    with pytest.raises(tg.InputError, match=message):
        await predict(**given)
    assert not train.state.unsure
    assert (await predict(x=ONES)).shape == (3, 2)


@pytest.mark.parametrize(
    ("fn", "error", "message"),
    [
        (lambda model, x: 1.0, tg.TraceError, "must return tensors .* got float"),
        (lambda model, x: [x, None], tg.TraceError, "must return tensors .* got NoneType"),
        (lambda model, x: model(x.T), tg.ShapeError, ""),
        (lambda model, x: float(tg.sum(x)), tg.TraceError, r"float\(\) needs the numbers"),
    ],
)
async def test_functions_that_cannot_be_compiled(fn: Callable[..., Any], error: type[Exception], message: str) -> None:
    train = await line()
    predict = await train.attach(fn, OPEN)
    for _ in range(2):
        with pytest.raises(error, match=message or None):
            await predict(x=ONES)
    assert np.isfinite((await train.step(x=ONES)).loss)


async def test_what_a_training_and_a_predictor_show_of_themselves() -> None:
    train = await line()
    await train.step(x=ONES)
    about = "Linear, 6 parameters on numpy, steps made: 1"
    assert repr(train) == f"<Train of {about} with {train.optimizer!r}; await train.step(x=f32[3, 2])>"
    predict = await train.attach(lambda model, x, y: x, (tg.f32[None, 2], tg.i32[()]))
    assert repr(predict) == f"<Predictor of {about}; await it as predict(f32[None, 2], i32[])>"


async def test_names_that_are_taken_and_models_that_are_none() -> None:
    train = await line()
    for name in ("weight", "step"):
        with pytest.raises(tg.InputError, match=f"{name!r} has the name of"):
            await train.attach(forward, {name: LINE["x"]})
        with pytest.raises(tg.InputError, match=f"{name!r} has the name of"):
            await tg.compile_forward(nn.Linear(2, 2), forward, {name: LINE["x"]}, device="numpy")
    with pytest.raises(tg.InputError, match="Module, got function"):
        await tg.compile_forward(forward, forward, OPEN, device="numpy")  # type: ignore[arg-type]
    with pytest.raises(tg.InputError, match="must be a spec"):
        await train.attach(forward, {"x": ONES})
    other: Callable[..., Any] = lambda model, y: y  # noqa: E731
    for attached in (train.attach(other, OPEN), tg.compile_forward(nn.Linear(2, 2), other, OPEN, device="numpy")):
        with pytest.raises(tg.InputError, match=r"the function does not take these inputs.*fn\(model, x=f32\["):
            await attached
