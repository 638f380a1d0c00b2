"""Labels and indices out of range: the NaN that comes of them is explained, and finite results are not looked at."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad import nn, optim, outside
from training import SPECS, assert_same, batch, start


def wrong(seed: int = 0) -> dict[str, np.ndarray]:
    """A batch with the label 5 where there are 3 classes."""
    given = batch(seed)
    given["t"][2] = 5
    return given


REASON = r"input 't' holds 5, but cross_entropy has 3 classes, 0 to 2 \(at .*training\.py:\d+ in loss_fn\)"


@pytest.mark.parametrize("device", ["numpy", "interpret"])
async def test_a_step_names_the_label_and_changes_nothing(device: str) -> None:
    train = await start(device)
    before = await train.state_dict()
    with pytest.warns(
        RuntimeWarning, match=f"the loss is not finite, and the step changed nothing: {REASON}"
    ) as caught:
        result = await train.step(wrong())
    assert caught[0].filename == __file__
    assert result.skipped
    assert_same(await train.state_dict(), before, counters=False)
    assert np.isfinite((await train.step(batch(0))).loss)


async def test_parameters_that_the_model_does_not_hold_are_told_of() -> None:
    async def train(other: nn.Module) -> None:
        def loss_fn(model: nn.Module, x: tg.Tensor) -> tg.Tensor:
            return tg.mse_loss(other(model(x)), x)

        specs = {"x": tg.f32[8, 4]}
        await tg.compile(nn.Linear(4, 2), loss_fn, optim.Adam(0.01), specs, device="numpy")

    with pytest.warns(RuntimeWarning, match="the loss reads parameters that the model does not hold: they are neither"):
        await train(nn.Linear(2, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        await train(nn.Linear(2, 4).requires_grad_(False))


@pytest.mark.parametrize("nonfinite", ["skip", "raise"])
@pytest.mark.parametrize("bad", [0, 3, 9])
async def test_fit_names_the_label_of_whichever_batch(nonfinite: Any, bad: int) -> None:
    train = await start("numpy", nonfinite=nonfinite)
    batches = [wrong() if i == bad else batch(i) for i in range(10)]
    if nonfinite == "raise":
        with pytest.raises(tg.NonFiniteError, match=f"The reason: {REASON}"):
            await train.fit(batches, progress=False)
    else:
        with pytest.warns(RuntimeWarning, match=REASON):
            await train.fit(batches, progress=False)
    assert train.record is not None
    # read after 1 step, after 2 more, 4 more, ...
    assert len(train.record.losses) == ({0: 1, 3: 7, 9: 10}[bad] if nonfinite == "raise" else 10)


async def test_of_queued_steps_the_labels_are_held_alone_and_not_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    train = await start("numpy")
    for i in range(3):
        await train.submit(batch(i))
    assert [list(given) for given in train._held._given] == [["t"]] * 3
    await train.losses()
    assert not train._held._given
    monkeypatch.setattr(outside, "HELD", 2 * 4 * 8)  # two times 8 labels
    train = await start("numpy")
    for i in range(5):
        await train.submit(wrong() if i in (1, 3) else batch(i))
    assert len(train._held._given) == 2
    with pytest.warns(RuntimeWarning, match=REASON):
        await train.losses()


async def test_a_warning_finds_globals_without_a_name() -> None:
    source = "async def step(train, given):\n    return await train.step(given)"
    names: dict[str, Any] = {}
    exec(source, names)
    with pytest.warns(RuntimeWarning, match=REASON):
        await names["step"](await start("numpy"), wrong())


SILENT = "what is out of range counts for nothing: input"


@pytest.mark.parametrize(
    ("fn", "wrong", "says"),
    [
        (lambda x, i: tg.one_hot(i, 3), [3, -1, 0], "holds 3, but one_hot has 3 classes, 0 to 2"),
        (lambda x, i: x.index_add(0, i, x), [0, -1, 1], "holds -1, but axis 0 of what index_add writes to has 3 pl"),
        (lambda x, i: tg.scatter(x, 0, i, 1.0), [0, 7, 1], "holds 7, but axis 0 of what scatter writes to has 3 pla"),
        (lambda x, i: tg.scatter_add(x, 0, i, x), [0, 7, 1], "holds 7, but axis 0 of what scatter_add writes to"),
        (lambda x, i: tg.index_fill(x, 0, i, 2.0), [0, 7, 1], "holds 7, but axis 0 of what index_fill writes to"),
        (lambda x, i: x.astype(tg.i32)[i], [0, -4, 1], "holds -4, but what it indexes has 3 places, -3 to 2"),
        (lambda x, i: tg.take(x.astype(tg.i32), i), [0, 7, 1], "holds 7, but what it indexes has 3 places, 0 to 2"),
    ],
)
def test_what_would_count_for_nothing_without_nan_is_named_once(fn: Any, wrong: list[int], says: str) -> None:
    call = tg.jit(fn, device="numpy")
    x = np.ones(3, np.float32)
    with pytest.warns(RuntimeWarning, match=f"{SILENT} 'arg.1' {re.escape(says)}"):
        tg.sync(call(x, np.array(wrong)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tg.sync(call(x, np.array([0, 2, 1])))
        margin = tg.jit(lambda x, i: tg.multi_margin_loss(x, i), device="numpy")
        tg.sync(margin(np.ones((3, 6), np.float32), np.array([1, 5, 0])))


async def test_a_step_names_labels_that_one_hot_leaves_out() -> None:
    def loss_fn(model: nn.Module, x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
        return tg.mse_loss(model(x), tg.one_hot(y, 3))

    specs = {"x": tg.f32[3, 2], "y": tg.i32[3]}
    given = {"x": np.ones((3, 2)), "y": np.array([1, 2, 3])}
    reason = rf"{SILENT} 'y' holds 3, but one_hot has 3 classes, 0 to 2 \(at .*test_outside\.py:\d+ in loss_fn\)"
    train = await tg.compile(nn.Linear(2, 3), loss_fn, optim.SGD(0.1), specs, device="numpy")
    with pytest.warns(RuntimeWarning, match=reason):
        await train.step(**given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        await train.step(**given)  # said once
    other = await tg.compile(nn.Linear(2, 3), loss_fn, optim.SGD(0.1), specs, device="numpy")
    with pytest.warns(RuntimeWarning, match=reason):
        await other.upload({name: array[None] for name, array in given.items()})


async def test_an_error_names_the_label() -> None:
    train = await start("numpy", nonfinite="raise")
    with pytest.raises(tg.NonFiniteError, match=rf"the loss of step 1 is nan.*The reason: {REASON}"):
        await train.step(wrong())
    given = batch(0)
    given["x"][0] = np.nan
    with pytest.raises(tg.NonFiniteError, match=r"Look at the batch .is NaN in it, or a label out of range"):
        await train.step(given)


async def test_queued_and_many_steps_name_it_too() -> None:
    train = await start("numpy")
    await train.submit(wrong())
    with pytest.warns(RuntimeWarning, match=REASON):
        await train.losses()
    each = [batch(0), wrong()]
    data = await train.upload({name: np.stack([one[name] for one in each]) for name in each[0]})
    with pytest.warns(RuntimeWarning, match=REASON):
        await train.run_steps(2, data)
    strict = await start("numpy", nonfinite="raise")
    with pytest.raises(tg.NonFiniteError, match=REASON):
        await strict.run_steps(2, {name: np.stack([one[name] for one in each]) for name in each[0]})


async def test_finite_results_and_other_causes_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def one(model: nn.Module, x: tg.Tensor, t: tg.Tensor) -> tg.Tensor:
        return tg.cross_entropy(model(x), t, ignore_index=5)

    train = await start("numpy")
    strange = await tg.compile(train.state.module, one, optim.SGD(0.1), SPECS, state=train.state)
    assert np.isfinite((await strange.step(wrong())).loss), "5 is ignored"
    given = {**wrong(), "x": np.full((8, 5), np.nan, np.float32)}
    assert (await strange.step(given)).skipped, "no warning: the label is not to blame"

    def looks(*_: Any) -> None:
        raise AssertionError("looked at the inputs")

    monkeypatch.setattr(outside, "_wrong", looks)
    assert np.isfinite((await train.step(batch(1))).loss)


def embedded(model: nn.Module, i: tg.Tensor) -> tg.Tensor:
    return model(i[:, 1:].reshape(-1))


async def test_a_prediction_names_the_index() -> None:
    predict = await tg.compile_forward(nn.Embedding(5, 3), embedded, {"i": tg.i32[None, 3]}, device="numpy")
    assert np.isfinite(await predict(i=[[0, 1, 4]])).all()
    with pytest.warns(
        RuntimeWarning, match=r"the result holds NaN: input 'i' holds 9, but what it indexes has 5 places, 0"
    ):
        assert np.isnan((await predict(i=[[0, 1, 9]]))[-1]).all()


CALLS: list[tuple[Any, tuple[Any, ...], str]] = [
    (
        lambda x, i: x[i],
        (np.ones(4), np.array([-4, 3, -5])),
        "'arg.1' holds -5, but what it indexes has 4 places, -4 to 3",
    ),
    (lambda x, i: tg.take(x, i), (np.ones(4), np.array([3, -1])), "holds -1, but what it indexes has 4 places, 0 to 3"),
    (
        lambda x, i: tg.nll_loss(x, i),
        (np.ones((2, 3)), np.array([2, 3])),
        "holds 3, but nll_loss has 3 classes, 0 to 2",
    ),
    (lambda x, i: x[i.astype(tg.u32)], (np.ones(4), np.array([7])), "holds 7"),
]


@pytest.mark.parametrize(("fn", "args", "message"), CALLS, ids=["getitem", "take", "nll_loss", "cast"])
async def test_a_jitted_function_names_the_argument(fn: Any, args: tuple[Any, ...], message: str) -> None:
    with pytest.warns(RuntimeWarning, match=re.escape(message)):
        await tg.jit(fn, device="numpy")(*args)
