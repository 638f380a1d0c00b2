"""Labels and indices out of range: the NaN that comes of them is explained, and finite results are not looked at."""

from __future__ import annotations

import re
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

    monkeypatch.setattr(outside, "_origin", looks)
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
