"""Checkpoints in a browser: a loop on WebGPU, its file, and what IndexedDB keeps of it."""

from __future__ import annotations

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad import browser, cache
from tensorgrad.data import DataLoader
from training import Net, assert_same, start

pytestmark = pytest.mark.webgpu

RNG = np.random.default_rng(0)
ARRAYS = {"x": RNG.normal(size=(40, 5)), "t": RNG.integers(0, 3, 40)}


def loader(seed: int = 1) -> DataLoader:
    return DataLoader(ARRAYS, 8, shuffle=True, seed=seed)


async def test_a_training_resumes_bit_for_bit_from_indexeddb() -> None:
    one = await start("webgpu")
    data = loader()
    by_hand = [(await one.step(batch)).loss for _ in range(2) for batch in data]
    part, data = await start("webgpu"), loader()
    losses = (await part.fit(data, steps=7, progress=False, autosave="of the tests")).losses.tolist()
    await cache.clear()
    assert "of the tests" in await browser.kept(), "the plan cache is another database"
    other, again = await start("webgpu", init=5, seed=9), loader(4)
    assert await other.resume("of the tests", loader=again)
    assert_same(await other.state_dict(), await part.state_dict())
    losses += (await other.fit(again, steps=3, progress=False)).losses.tolist()
    assert losses == by_hand
    assert_same(await other.state_dict(), await one.state_dict())
    await browser.keep("of the tests", b"")
    assert await browser.read("of the tests") == b""
    await browser.forget("of the tests")
    assert await browser.read("of the tests") is None
    assert not await other.resume("of the tests")


async def test_batches_on_the_device_give_the_same_record() -> None:
    one, other = await start("webgpu"), await start("webgpu")
    stacked = loader().stack()
    expected = await one.run_steps(10, stacked)
    record = await other.fit(
        await other.upload(stacked), epochs=2, validate=lambda train: train.state.steps, progress=False
    )
    assert record.losses.tolist() == expected.tolist()
    assert [(step, value) for step, value in record.validation] == [(5, 5.0), (10, 10.0)]


async def test_a_worker_has_no_files_of_its_own() -> None:
    with pytest.raises(tg.UnsupportedError, match="a download needs a page, and this Python runs in a worker"):
        browser.download("weights.safetensors", tg.save(Net().state_dict()))
    with pytest.raises(tg.UnsupportedError, match="a file picker needs a page, and this Python runs in a worker"):
        await browser.upload()


async def test_a_checkpointed_block_gives_the_same_gradients() -> None:
    x = RNG.normal(size=(6, 8)).astype(np.float32)
    w = RNG.normal(size=(8, 8)).astype(np.float32)

    def loss(x: tg.Tensor, w: tg.Tensor, wrap: bool) -> tg.Tensor:
        for _ in range(3):
            f = lambda x: tg.dropout(tg.gelu(x @ w), 0.25, training=True) + x  # noqa: E731
            x = tg.checkpoint(f, x) if wrap else f(x)
        return tg.mean(x**2)

    gradients = tg.value_and_grad(loss, (0, 1), device="webgpu")
    plain, again = await gradients(x, w, False), await gradients(x, w, True)
    np.testing.assert_array_equal(again[0], plain[0])
    for found, expected in zip(again[1], plain[1], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)  # fused otherwise
