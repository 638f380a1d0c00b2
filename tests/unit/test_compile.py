"""What `tg.compile` refuses, each with its error and nothing changed: loss functions, options, states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad import nn, optim
from tensorgrad.testing.asynchronous import run_coroutine
from training import LINE, ONES, SPECS, assert_same, line, loss_fn, losses, squares, start

OTHER = nn.Linear(2, 2)


# Loss functions -----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:the loss reads parameters that the model does not hold")
@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda model, x: None, "must return a Tensor, got NoneType"),
        (lambda model, x: 1.0, "must return a Tensor, got float"),
        (lambda model, x: (squares(model, x), x), "must return a Tensor, got tuple"),
        (lambda model, x: model(x), r"one floating-point number, got f32\[3, 2\]; mean\(\) or sum\(\) it"),
        (lambda model, x: tg.argmax(model(x)), r"one floating-point number, got i32\[\]"),
        (lambda model, x: tg.sum(x), "depends on no parameter"),
        (lambda model, x: tg.mean(OTHER(x)), "depends on no parameter"),
        (lambda model, x: squares(model, x.detach()) * float("nan") + tg.sum(model.weight > 0), None),
    ],
    ids=["none", "float", "tuple", "rows", "integer", "input only", "another module", "sound"],
)
async def test_a_loss_is_one_float_that_depends_on_the_model(loss: Any, message: str | None) -> None:
    if message is None:
        assert np.isnan((await (await line(loss)).step(x=ONES)).loss)
        return
    with pytest.raises(tg.TraceError, match=message) as caught:
        await line(loss)
    assert caught.value.site is not None
    assert caught.value.site.function in ("line", "<lambda>"), "the call of tg.compile, or the line of the result"


async def test_a_loss_of_one_element_with_axes_is_a_number() -> None:
    train = await line(lambda model, x: tg.mean(model(x) ** 2, axis=(0, 1), keepdims=True))
    assert (await train.step(x=ONES)).loss == (await (await line()).step(x=ONES)).loss


async def test_a_tensor_of_another_trace_is_refused_by_the_line_that_uses_it() -> None:
    kept: list[tg.Tensor] = []

    def keeps(model: nn.Linear, x: tg.Tensor) -> tg.Tensor:
        kept.append(model.weight * 2.0)
        return squares(model, x)

    def uses(model: nn.Module, x: tg.Tensor) -> tg.Tensor:
        return squares(model, x) + tg.sum(kept[0])  # here

    await line(keeps)
    with pytest.raises(tg.TraceError, match=r"f32\[2, 2\].* belongs to another trace") as caught:
        await line(uses)
    assert_here(caught.value, uses)


async def test_errors_of_shape_and_dtype_name_the_users_line() -> None:
    def shapes(model: nn.Module, x: tg.Tensor) -> tg.Tensor:
        return tg.sum(model(x) + tg.ones((5,)))  # here

    def dtypes(model: nn.Linear, x: tg.Tensor) -> tg.Tensor:
        return tg.sum(tg.embedding(model.weight, x))  # here

    with pytest.raises(tg.ShapeError, match=r"\[3, 2\].*\[5\]") as shape:
        await line(shapes)
    assert_here(shape.value, shapes)
    with pytest.raises(tg.DtypeError) as dtype:
        await line(dtypes)
    assert_here(dtype.value, dtypes)


def assert_here(error: tg.TensorgradError, fn: Callable[..., Any]) -> None:
    """The error names the line of `fn` after its `def`."""
    assert error.site is not None
    assert (error.site.line, error.site.function) == (fn.__code__.co_firstlineno + 1, fn.__name__)
    assert str(error).endswith(f"{__file__}:{error.site.line} in {fn.__name__}")


async def test_a_parameter_that_the_model_updates_itself_is_not_trained_too() -> None:
    def decays(model: nn.Linear, x: tg.Tensor) -> tg.Tensor:
        tg.update_state(model.weight, model.weight * 0.5)
        return squares(model, x)

    with pytest.raises(tg.TraceError, match="the model updates 'weight' itself, and so does the optimizer"):
        await line(decays)
    model = nn.Linear(2, 2)
    model.weight.requires_grad = False
    train = await tg.compile(model, decays, optim.SGD(0.1), LINE, device="numpy")
    await train.step(x=ONES)
    np.testing.assert_array_equal((await train.state_dict())["model"]["weight"], model.weight.data * 0.5)


async def test_a_compilation_that_fails_leaves_the_state_as_it_was() -> None:
    train = await start("numpy")
    expected = await losses(await start("numpy"), 0, 3)
    assert await losses(train, 0, 1) == expected[:1]
    before = await train.state_dict()
    model, failing = train.state.module, optim.Adam(0.1)
    loss: Any
    for loss, error in ((lambda m, x, t: m(x), tg.TraceError), (lambda m, x, t: m(t), tg.TensorgradError)):
        with pytest.raises(error):
            await tg.compile(model, loss, failing, SPECS, state=train.state)
    with pytest.raises(tg.InputError, match="the loss function does not take these inputs"):
        await tg.compile(model, lambda m, x: x, failing, SPECS, state=train.state)
    assert train.state.counts == {"optim": 1}
    assert_same(await train.state_dict(), before)
    assert await losses(train, 1, 3) == expected[1:]
    second = optim.Adam(0.1)
    await tg.compile(model, loss_fn, second, SPECS, state=train.state)
    assert second.prefix == "optim2", "the names in a checkpoint do not depend on mistakes before"


# Options ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": lambda x: x}, "must be an nn.Module, got function"),
        ({"optimizer": optim.SGD}, "expected an optimizer such as"),
        ({"inputs": {"x": tg.f32[None, 2]}}, "a training step needs every size"),
        ({"inputs": tg.f32[3, 2]}, "a mapping or a tuple of specs"),
        ({"inputs": {"x": ONES}}, "input 'x' must be a spec"),
        ({"inputs": {"weight": tg.f32[3, 2]}}, "'weight' has the name of a parameter or buffer"),
        ({"inputs": {"x": tg.f32[3, 2], "step": tg.i32[()]}}, "'step' has the name of the library's own input"),
        ({"device": "cuda"}, "the device must be 'webgpu', 'numpy'"),
        ({"seed": "1"}, "the seed must be a whole number, got '1'"),
        ({"seed": 1.5}, "the seed must be a whole number, got 1.5"),
        ({"nonfinite": "stop"}, "nonfinite is 'skip' or 'raise', got 'stop'"),
        ({"snapshot_every": 0}, r"snapshot_every \(a number of steps, or None\) must be .* 1 or more, got 0"),
        ({"snapshot_every": "x"}, r"snapshot_every .* must be a whole number, 1 or more, got 'x'"),
        ({"loss_fn": lambda model, y: y}, r"the loss function does not take these inputs.*fn\(model, x=f32\["),
        ({"loss_fn": "mse"}, "the loss function must be a function"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_an_argument_that_makes_no_sense(changes: dict[str, Any], message: str) -> None:
    given = {"model": nn.Linear(2, 2), "loss_fn": squares, "optimizer": optim.SGD(0.1), "inputs": LINE}
    with pytest.raises(tg.InputError, match=message) as caught:
        run_coroutine(tg.compile(**{**given, "device": "numpy", **changes}))
    assert caught.value.site is not None


async def test_a_nested_input_with_the_name_of_a_parameter() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            self.inner = nn.Linear(2, 2)

    with pytest.raises(tg.InputError, match=r"'inner.weight' has the name"):
        await tg.compile(Outer(), squares, optim.SGD(0.1), {"inner": {"weight": tg.f32[3, 2]}}, device="numpy")


async def test_a_state_that_does_not_fit() -> None:
    train = await line()
    model: Any = train.state.module
    with pytest.raises(tg.InputError, match="belongs to another module"):
        await tg.compile(nn.Linear(2, 2), squares, optim.SGD(0.1), LINE, state=train.state)
    option: dict[str, Any]
    for option in ({"device": "interpret"}, {"seed": 3}):
        with pytest.raises(tg.InputError, match="has its device and seed already"):
            await tg.compile(model, squares, optim.SGD(0.1), LINE, state=train.state, **option)
    model.more = nn.Linear(2, 2)
    longer = lambda m, x: tg.mean(m.more(m(x)))  # noqa: E731
    with pytest.raises(tg.InputError, match=r"'more.bias', 'more.weight' .*since its state was made"):
        await tg.compile(model, longer, optim.SGD(0.1), LINE, state=train.state)
    with pytest.raises(tg.InputError, match="since its state was made"):
        await train.attach(lambda m, x: m.more(x), LINE)
