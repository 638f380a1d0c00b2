"""`train.run_steps` on WebGPU: bit for bit what single steps give, one call a chunk, and whole steps only."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from runtime_browser import Spy, make, new_device, soon
from runtime_plans import Plan
from tensorgrad import many, nn, optim
from tensorgrad.device import batches as batches_module
from training import assert_same, batch, single, stacked, start

pytestmark = pytest.mark.webgpu


async def test_many_steps_are_the_same_as_single_ones_bit_for_bit() -> None:
    one, many_ = await start("webgpu"), await start("webgpu")
    expected = await single(one, stacked(range(3)), 20)
    data = await many_.upload(stacked(range(3)))
    losses = await many_.run_steps(20, data)
    assert losses.dtype == np.float32
    assert losses.tolist() == expected
    assert_same(await many_.state_dict(), await one.state_dict())
    assert (await many_.losses()).size == 0, "they are read"
    assert (await many_.step(batch(7))).loss == (await one.step(batch(7))).loss


async def test_queued_losses_stay_in_order_around_many_steps() -> None:
    one, other = await start("webgpu"), await start("webgpu")
    expected = await single(one, stacked(range(4)), 4)
    await other.submit(batch(0))
    run = stacked(range(3))
    assert (await other.run_steps(2, {name: run[name][1:] for name in run})).tolist() == expected[1:3]
    await other.submit(batch(3))
    assert (await other.losses()).tolist() == [expected[0], expected[3]]


async def test_inputs_of_every_type_and_odd_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that are converted, and that take several buffers and writes."""
    monkeypatch.setattr(batches_module, "WRITE_AT_ONCE", 20)
    specs = {"b": tg.bool_[5], "i": tg.i32[()], "x": tg.f32[2, 3]}

    def loss_fn(model: nn.Module, b: tg.Tensor, i: tg.Tensor, x: tg.Tensor) -> tg.Tensor:
        total = tg.sum(b.astype(tg.f32)) * 10 + i.astype(tg.f32) * 100
        return tg.mean(model(x)) * 0 + total + tg.sum(x) * 1000

    rng = np.random.default_rng(0)
    data = {
        "b": rng.random((7, 5)) < 0.5,
        "i": np.arange(7),
        "x": rng.integers(0, 3, (7, 2, 3)).astype(np.float64),
    }
    train = await tg.compile(nn.Linear(3, 1), loss_fn, optim.SGD(0.0), specs, device="webgpu")
    expected = data["b"].sum(1) * 10 + data["i"] * 100
    expected = expected + data["x"].sum((1, 2)) * 1000
    np.testing.assert_array_equal(await train.run_steps(9, data), np.resize(expected, 9))
    device = train.state.backend.device  # type: ignore[attr-defined]
    whole = device.buffer_count
    with monkeypatch.context() as patch:
        patch.setattr(device, "limits", device.limits.__class__(buffer_size=64))
        parts = await train.upload(data)
    assert device.buffer_count == whole + 4 + 2 + 4  # values of 32, 16 and 32 bytes in buffers of 64
    np.testing.assert_array_equal(await train.run_steps(9, parts), np.resize(expected, 9))


async def test_values_that_fill_no_whole_words() -> None:
    p = Plan()
    p.add("input", "half", (3,), tg.f16)
    p.add("output", "loss")
    p.kernel("last", "loss[0] = f32(half[1] & 0xffffu);", 1, "half=u32", "loss:w")
    runtime = await make(p)
    values = np.arange(1, 16, dtype=np.float16).reshape(5, 3)
    losses = await runtime.run_steps(await runtime.upload_batches({"half": values}, 5), 3, 4, {})
    np.testing.assert_array_equal(losses, values.view(np.uint16)[[3, 4, 0, 1], 2])
    runtime.destroy()


async def test_a_chunk_is_one_call_and_few_submissions(monkeypatch: pytest.MonkeyPatch) -> None:
    train = await start(await new_device())
    data = await train.upload(stacked(range(3)))
    train._chunk = 1_000
    monkeypatch.setattr(many, "CHUNK_SECONDS", 1e3)
    await train.run_steps(64, data)
    kernels = len(train.built.kernels)
    with Spy() as spy:
        await train.run_steps(64, data)
        counts, _ = spy.read()
    assert counts["dispatchWorkgroups"] == 64 * kernels
    assert counts["beginComputePass"] == 64
    assert counts["submit"] <= 64 * kernels // 256 + 1
    assert counts["writeBuffer"] == 1, "the table of the host's numbers"
    assert not {"createBuffer", "createBindGroup"} & counts.keys()


async def test_memory_is_freed() -> None:
    device = await new_device()
    train = await start(device)
    await train.run_steps(2, stacked(range(2)))
    held = device.buffer_count
    await train.run_steps(2, stacked(range(2)))
    assert device.buffer_count == held
    data = await train.upload(stacked(range(2)))
    assert device.buffer_count == held + 2
    del data
    assert device.buffer_count == held
    with pytest.raises(tg.InputError, match="on another device"):
        await train.run_steps(1, await (await start("webgpu")).upload(stacked(range(2))))


async def test_a_loss_that_is_not_finite_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    poisoned = stacked(range(4))
    poisoned["x"][1, 2] = np.nan
    train, other = await start("webgpu", dropout=0.0), await start("webgpu", dropout=0.0)
    monkeypatch.setattr(many, "GROWTH", 1)  # a chunk is one step: the host knows of each loss in time
    losses = await train.run_steps(4, poisoned)
    assert np.isfinite(losses).tolist() == [True, False, True, True]
    expected = [(await other.step({name: poisoned[name][i] for name in poisoned})).loss for i in range(4)]
    np.testing.assert_array_equal(losses, np.array(expected, np.float32))
    assert_same(await train.state_dict(), await other.state_dict())
    # in one chunk the count on the device is right all the same
    train._chunk = 100
    monkeypatch.setattr(many, "CHUNK_SECONDS", 1e3)
    await train.run_steps(4, poisoned)
    assert train.state.steps == int((await train.state_dict())["optimizer"]["optim.steps"]) == 6
    assert train.state.calls == 8


@pytest.mark.parametrize("error", [asyncio.CancelledError, KeyboardInterrupt])
async def test_an_interrupted_run_leaves_whole_steps(error: type[BaseException]) -> None:
    train = await start("webgpu", dropout=0.0)
    data = await train.upload(stacked(range(3)))
    waiting = train.built.executor._program._waiting  # type: ignore[attr-defined]

    async def run() -> bool:
        try:
            await train.run_steps(100_000, data)
        except error:
            return True
        return False

    task = asyncio.ensure_future(run())
    while train.state.steps < 9 or not waiting:
        await asyncio.sleep(0)
    if error is asyncio.CancelledError:
        task.cancel()
    else:
        next(iter(waiting.values())).set_exception(error())
    assert await soon(task)
    saved = await soon(train.state_dict())
    done = train.state.steps
    assert 9 < done == int(saved["optimizer"]["optim.steps"]) < 100_000
    other = await start("webgpu", dropout=0.0)
    await other.run_steps(done, stacked(range(3)))
    assert_same(await other.state_dict(), saved)
    assert (await train.step(batch(0))).loss == (await other.step(batch(0))).loss


async def test_a_device_lost_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    train = await start(await new_device(), snapshot_every=4)
    task: Any = asyncio.ensure_future(train.run_steps(100_000, stacked(range(2))))
    while train.snapshot is None:
        await asyncio.sleep(0)
    train.state.backend.device.js_device.destroy()  # type: ignore[attr-defined]
    with pytest.raises(tg.DeviceLostError, match="snapshot"):
        await soon(task)
    await train.restore()
    assert train.state.steps >= 4
    assert np.isfinite(await train.run_steps(3, stacked(range(2)))).all()


async def test_predictions_see_a_run_between_chunks() -> None:
    train = await start("webgpu")
    predict = await train.attach(lambda model, x: model(x), {"x": tg.f32[8, 5]})
    x = batch(0)["x"]
    first = await predict(x=x)
    task = asyncio.ensure_future(train.run_steps(3_000, stacked(range(2))))
    while not train.state.steps:
        await asyncio.sleep(0)
    assert not np.array_equal(await predict(x=x), first)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(task)
