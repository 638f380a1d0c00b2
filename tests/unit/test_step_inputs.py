"""The inputs of a step in any structure, and its captures."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad import nn, optim
from training import ONES, SPECS, Net, assert_same, batch, line, loss_fn, losses, squares, start

# Inputs -------------------------------------------------------------------------------------------

BAD = [
    ({"x": ONES}, r"missing \['t'\]"),
    ({"x": ONES, "y": 1}, r"missing \['t'\] and unknown \['y'\]"),
    ({**batch(0), "x": ONES}, r"input 'x' has shape \[3, 2\], expected f32\[8, 5\]"),
    ({**batch(0), "x": np.ones((8, 5), complex)}, "input 'x' has dtype complex128"),
    ({**batch(0), "x": np.ones((8, 5), int)}, r"input 'x' has dtype int64.*\.astype\(np\.float32\)"),
    ({**batch(0), "x": [["a"] * 5] * 8}, "input 'x' has dtype <U1.*text has to become numbers first"),
    ({**batch(0), "x": np.full((8, 5), "a", object)}, "input 'x' has dtype object.*text has to become numbers"),
    ({**batch(0), "x": np.full((8, 5), {}, object)}, "input 'x' has dtype object.*it holds Python objects"),
    ({**batch(0), "x": [[1.0], [1.0, 2.0]]}, "input 'x' is not an array"),
    ({**batch(0), "t": np.zeros(8)}, r"input 't' has dtype float64.*\.astype\(np\.int32\)"),
    ({**batch(0), "t": np.full(8, 2**31)}, "input 't' holds 2147483648, which i32 cannot store"),
    ({**batch(0), "t": None}, "input 't' has shape"),
]


@pytest.mark.parametrize(("inputs", "message"), BAD, ids=[re.sub(r"\W+", " ", message)[:30] for _, message in BAD])
async def test_inputs_that_do_not_fit_change_nothing(inputs: dict[str, Any], message: str) -> None:
    train = await start("numpy")
    before = await train.state_dict()
    for call in (train.step, train.submit, train.profile, train.check):
        with pytest.raises(tg.InputError, match=message) as caught:
            await call(**inputs)
        assert f"\n  at {__file__}" in str(caught.value), "the user's line"
    assert_same(await train.state_dict(), before)
    assert (train.state.steps, train.state.unsure, (await train.losses()).size) == (0, False, 0)
    assert await losses(train, 0, 2) == await losses(await start("numpy"), 0, 2)


class Pair(NamedTuple):
    left: Any
    right: Any


NESTS: list[tuple[Any, Callable[..., tg.Tensor], list[tuple[tuple[Any, ...], dict[str, Any]]]]] = [
    (
        {"x": tg.f32[3, 2], "scale": tg.f32[()]},
        lambda model, x, scale: squares(model, x) * scale,
        [((), {"x": ONES, "scale": 2.0}), (({"scale": 2, "x": ONES},), {})],
    ),
    (
        (tg.f32[3, 2], tg.f32[()]),
        lambda model, x, scale: squares(model, x) * scale,
        [((ONES, 2.0), {}), (((ONES, 2.0),), {}), (([ONES, 2.0],), {})],
    ),
    (
        {"pair": (tg.f32[3, 2], {"scale": tg.f32[()]})},
        lambda model, pair: squares(model, pair[0]) * pair[1]["scale"],
        [((), {"pair": (ONES, {"scale": 2.0})}), (({"pair": [ONES, {"scale": 2.0}]},), {})],
    ),
    (
        {"pair": Pair(tg.f32[3, 2], tg.f32[()])},
        lambda model, pair: squares(model, pair.left) * pair.right,
        [((), {"pair": Pair(ONES, 2.0)}), ((), {"pair": (ONES, 2.0)})],
    ),
    (
        Pair(tg.f32[3, 2], (tg.f32[()],)),
        lambda model, x, scales: squares(model, x) * scales[0],
        [((ONES, (2.0,)), {}), ((Pair(ONES, [2.0]),), {})],
    ),
]


@pytest.mark.parametrize(
    ("specs", "loss", "calls"), NESTS, ids=["mapping", "tuple", "nested", "named", "named outside"]
)
async def test_inputs_nest_at_will(specs: Any, loss: Any, calls: Any) -> None:
    expected = 2 * (await (await line()).step(x=ONES)).loss
    for args, kwargs in calls:
        train = await line(loss, specs)
        assert (await train.step(*args, **kwargs)).loss == pytest.approx(expected, rel=1e-6)


async def test_a_step_without_inputs() -> None:
    train = await line(lambda model: tg.sum(model.weight**2), {})
    before = (await train.state_dict())["model"]["weight"]
    assert (await train.step()).loss == pytest.approx(float((before**2).sum()), rel=1e-6)
    # w - 0.1 * 2w
    np.testing.assert_allclose((await train.state_dict())["model"]["weight"], 0.8 * before, rtol=1e-6)


async def test_inputs_that_convert_without_loss() -> None:
    expected = (await (await start("numpy")).step(batch(0))).loss
    x, t = batch(0)["x"], batch(0)["t"]
    for given in (
        {"x": x.astype(np.float64), "t": t.astype(np.int64)},
        {"x": x.tolist(), "t": t.tolist()},
        {"x": x.data, "t": t.astype(np.uint8)},
        {"x": np.asfortranarray(x), "t": np.repeat(t, 2)[::2]},
    ):
        assert (await (await start("numpy")).step(given)).loss == expected


# Captures -----------------------------------------------------------------------------------------


async def test_captures_come_with_every_step() -> None:
    def loss(model: nn.Linear, x: tg.Tensor) -> tg.Tensor:
        tg.capture("weight", model.weight)
        tg.capture("count", tg.sum(tg.capture("y", model(x)) > 0))
        return tg.capture("loss", squares(model, x))

    train = await line(loss)
    weight = (await train.state_dict())["model"]["weight"]
    result = await train.step(x=ONES)
    assert list(result.captures) == ["weight", "y", "count", "loss"]
    np.testing.assert_array_equal(result.captures["weight"], weight, "as it was before the step")
    assert result.captures["loss"] == np.float32(result.loss)
    assert result.captures["count"] == (result.captures["y"] > 0).sum()
    assert result.captures["count"].dtype == np.int32
    kept = result.captures["y"].copy()
    again = await train.step(x=2 * ONES)
    np.testing.assert_array_equal(result.captures["y"], kept, "a step's arrays are the user's own")
    assert not np.array_equal(again.captures["y"], kept)
    assert (await train.losses()).size == 0, "losses that a step returned are not kept"
    both = await asyncio.gather(train.step(x=ONES), train.step(x=3 * ONES))
    assert not np.array_equal(both[0].captures["y"], both[1].captures["y"])
    with pytest.raises(tg.TraceError, match="capture name 'y' is used already"):
        await line(lambda model, x: tg.capture("y", tg.sum(tg.capture("y", model(x)))))


async def test_a_training_keeps_a_trace_for_training() -> None:
    """Dropout drops in the step, not in an attached function."""
    train = await tg.compile(Net(0.5), loss_fn, optim.SGD(0.0), SPECS, device="numpy", seed=1)
    seen = [(await train.step(batch(0))).loss for _ in range(2)]
    assert seen[0] != seen[1], "other random numbers at each step"
    predict = await train.attach(lambda model, x: model(x), {"x": SPECS["x"]})
    np.testing.assert_array_equal(await predict(x=batch(0)["x"]), await predict(x=batch(0)["x"]))
    drops = await train.attach(lambda model, x: model(x), {"x": SPECS["x"]}, training=True)
    assert not np.array_equal(await drops(x=batch(0)["x"]), await drops(x=batch(0)["x"]))
