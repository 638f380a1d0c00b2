"""Gradients averaged over several steps or normalized, and weights averaged over all, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np

import tensorgrad as tg
from reference.agree import given
from tensorgrad import optim

Arrays = dict[str, np.ndarray]
SHAPES = {"w": (3, 4), "b": (4,), "v": (2, 3)}


def drawn(seed: int) -> Arrays:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}


def made(**options: Any) -> optim.Optimizer:
    groups = [("*b*", {"weight_decay": 0.0})]
    return optim.AdamW(optim.StepLR(0.1, 2), weight_decay=0.1, groups=groups, clip_norm=0.5, **options)


async def weights(train: tg.Train) -> Arrays:
    return (await train.state_dict())["model"]


async def accumulation(device: str) -> None:
    """Every third step updates, by the average gradient, as a step on that average; between them nothing moves."""
    train, twin = await given(drawn(0), made(accumulate=3), device), await given(drawn(0), made(), device)
    for update in range(4):
        before = await weights(train)
        grads = [drawn(10 * update + part) for part in range(1, 4)]
        for part in grads[:2]:
            await train.step(grads=part)
            for name, array in (await weights(train)).items():
                np.testing.assert_array_equal(array, before[name])
        await train.step(grads=grads[2])
        await twin.step(grads={name: np.mean([part[name] for part in grads], 0) for name in SHAPES})
        found, wanted = await weights(train), await weights(twin)
        for name, array in found.items():
            # the sum is rounded in another order, and Adam divides by its size
            np.testing.assert_allclose(array, wanted[name], rtol=2e-5, atol=2e-6)
    assert (train.state.steps, twin.state.steps) == (12, 4)
    for each in (train, twin):
        each.destroy()


async def averages(device: str) -> None:
    """The average follows the weights, and functions compute with it; before the first update with the weights."""
    start = drawn(0)
    train = await given(start, made(ema_decay=0.75, accumulate=2), device)
    read = await train.attach(lambda m: {n: m.get_parameter(n) * 2.0 for n in SHAPES}, {}, averaged=True)
    plain = await train.attach(lambda m: {n: m.get_parameter(n) * 2.0 for n in SHAPES}, {})
    expected: Arrays = {}
    await train.step(grads=drawn(1))
    for name, array in (await read()).items():
        np.testing.assert_array_equal(array, 2 * start[name])
    for step in range(2, 9):
        bad = await train.step(grads={name: np.full_like(array, np.nan) for name, array in start.items()})
        assert not np.isfinite(bad.loss)
        await train.step(grads=drawn(step))
        now = await weights(train)
        if step % 2 == 0:
            kept = 0.75 if expected else 0.0
            expected = {name: kept * expected.get(name, 0.0) + (1 - kept) * now[name] for name in SHAPES}
        found, moved = await read(), await plain()
        for name in SHAPES:
            np.testing.assert_allclose(found[name], 2 * expected[name], rtol=1e-6, atol=1e-7)
            np.testing.assert_array_equal(moved[name], 2 * now[name])
    saved = (await train.state_dict())["optimizer"]
    for name in SHAPES:
        np.testing.assert_allclose(saved[f"optim.ema.{name}"], expected[name], rtol=1e-6, atol=1e-7)
    train.destroy()


async def normalization(device: str) -> None:
    """Each parameter moves by the rate, whatever its gradient's size; by nothing where that is zero."""
    optimizer = optim.SGD(0.5, normalize=True, accumulate=2, groups=[("v", {"lr": 0.25})], clip_value=0.4)
    start = drawn(0)
    train = await given(start, optimizer, device)
    for update in range(3):
        before = await weights(train)
        grads = [{n: a * size for n, a in drawn(7 * update + part).items()} for part, size in ((1, 1e-3), (2, 300.0))]
        for part in grads:
            part["b"] *= update != 1
            await train.step(grads=part)
        found = await weights(train)
        for name, array in found.items():
            mean = (grads[0][name].astype(np.float64) + grads[1][name]) / 2
            way = np.clip(mean / (np.linalg.norm(mean) + 1e-8), -0.4, 0.4)
            wanted = before[name] - (0.25 if name == "v" else 0.5) * way
            np.testing.assert_allclose(array, wanted, rtol=1e-6, atol=1e-6, err_msg=name)
    train.destroy()
