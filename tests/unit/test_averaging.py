"""Gradients averaged over several steps, and weights averaged over all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from averaging_cases import accumulation, averages, drawn, made, normalization, weights
from reference.agree import given
from tensorgrad import optim
from tensorgrad.errors import InputError
from training import LINE, ONES, SPECS, Net, assert_same, batch, line, loss_fn, losses, squares


@pytest.mark.parametrize("device", ["numpy", "interpret"])
@pytest.mark.parametrize("case", [accumulation, averages, normalization], ids=lambda case: case.__name__)
def test_averaging(case: Any, device: str) -> None:
    tg.sync(case(device))


async def both(seed: int = 3) -> tg.Train:
    tg.nn.init.manual_seed(1)
    return await tg.compile(Net(), loss_fn, made(accumulate=3, ema_decay=0.9), SPECS, device="numpy", seed=seed)


async def test_a_run_that_is_resumed_between_updates_is_the_same_run() -> None:
    whole = await both()
    await losses(whole, 0, 4)
    saved = await whole.state_dict()
    assert saved["optimizer"]["optim.counted"] == 4
    rest = await losses(whole, 4, 11)
    again = await both(8)
    await losses(again, 5, 7)
    await again.load_state_dict(saved)
    assert await losses(again, 4, 11) == rest
    assert_same(await again.state_dict(), await whole.state_dict())
    await again.reset()
    cleared = (await again.state_dict())["optimizer"]
    assert not any(array.any() for array in cleared.values())


@pytest.mark.parametrize("queued", [False, True], ids=["step", "submit"])
async def test_a_step_that_is_not_finite_is_no_part_of_an_average(queued: bool) -> None:
    """On the device, so also where the host has not read the losses."""
    found, clean = [await given(drawn(0), optim.SGD(0.5, accumulate=2), "numpy") for _ in range(2)]
    bad = {name: np.full_like(array, np.inf) for name, array in drawn(0).items()}
    for step in (1, None, 2, None, None, 3):
        grads = bad if step is None else drawn(step)
        await (found.submit(grads=grads) if queued else found.step(grads=grads))
    for step in (1, 2, 3):
        await clean.step(grads=drawn(step))
    assert_same(await found.state_dict(), await clean.state_dict(), counters=False)


@pytest.mark.parametrize("make", [optim.SGD, optim.Lion, optim.AdamW])
async def test_averages_cost_a_kernel_for_all_parameters(make: Any) -> None:
    """Not one for each of the four; and one for the count, and one more where a kernel binds 8 buffers at most."""
    plain, averaged, accumulated = [
        len((await tg.compile(Net(), loss_fn, make(0.1, **options), SPECS, device="interpret")).kernels)
        for options in ({}, {"ema_decay": 0.9}, {"accumulate": 4})
    ]
    assert plain < averaged <= plain + 3
    assert plain < accumulated <= plain + 3


async def test_whole_epochs_accumulate_as_steps_do() -> None:
    many, single = await both(), await both()
    data = {name: np.stack([batch(i)[name] for i in range(7)]) for name in SPECS}
    assert (await many.run_steps(7, data)).tolist() == await losses(single, 0, 7)
    assert_same(await many.state_dict(), await single.state_dict())


async def test_gradients_are_those_of_the_last_step_alone() -> None:
    train = await line(optimizer=optim.SGD(0.1, accumulate=4), keep_grads=True)
    plain = await line(optimizer=optim.SGD(0.0), keep_grads=True)
    for factor in (1.0, 3.0):
        for each in (train, plain):
            await each.step(x=ONES * factor)
    found, wanted = await train.gradients(), await plain.gradients()
    for name, grad in wanted.items():
        np.testing.assert_array_equal(found[name], grad)


async def test_the_averages_of_a_second_training_of_the_same_weights() -> None:
    """Its parameters have their places already, so each average lies by itself."""
    first = await line()
    second = await tg.compile(first.state.module, squares, optim.SGD(0.1, ema_decay=0.0), LINE, state=first.state)
    read = await second.attach(lambda model, x: model(x), LINE, averaged=True)
    plain = await second.attach(lambda model, x: model(x), LINE)
    await second.step(x=ONES)
    np.testing.assert_array_equal(await read(x=ONES), await plain(x=ONES))
    averaged = await plain(x=ONES)
    await first.step(x=ONES)
    np.testing.assert_array_equal(await read(x=ONES), averaged)
    assert not np.array_equal(await plain(x=ONES), averaged)


async def test_frozen_parameters_stand_for_themselves() -> None:
    tg.nn.init.manual_seed(1)
    model = tg.nn.Linear(2, 2)
    model.weight.requires_grad_(False)
    train = await tg.compile(model, squares, optim.SGD(0.5, ema_decay=0.5), LINE, device="numpy")
    read = await train.attach(lambda model: [model.weight * 1.0, model.bias * 1.0], {}, averaged=True)
    moved = []
    for _ in range(2):
        await train.step(x=ONES)
        moved.append((await weights(train))["bias"])
    weight, bias = await read()
    np.testing.assert_array_equal(weight, (await weights(train))["weight"])
    np.testing.assert_allclose(bias, (moved[0] + moved[1]) / 2, rtol=1e-6)


async def test_averages_that_nobody_keeps() -> None:
    train = await line()
    with pytest.raises(InputError, match="keeps no averages of the weights; give it an ema_decay"):
        await train.attach(lambda model, x: model(x), LINE, averaged=True)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"accumulate": 0}, "accumulate must be a whole number, 1 or more, got 0"),
        ({"accumulate": 2.0}, "accumulate must be a whole number"),
        ({"ema_decay": 1.0}, "ema_decay must be from 0 to below 1, got 1.0"),
        ({"groups": [("*", {"accumulate": 2})]}, "no hyper-parameter 'accumulate'"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        optim.SGD(0.1, **options)


def test_options_print_where_they_are_not_the_usual() -> None:
    shown = repr(optim.SGD(0.1, accumulate=4, ema_decay=0.0, params="w*"))
    assert shown.endswith("maximize=False, params='w*', accumulate=4, ema_decay=0.0)")
