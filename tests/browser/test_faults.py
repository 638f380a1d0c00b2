"""Bad input and faults on WebGPU, through the public API: each has its error, and training goes on."""

from __future__ import annotations

import asyncio
import gc
import sys
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from runtime_browser import new_device, soon
from tensorgrad import backend, nn, optim
from training import SPECS, Net, assert_same, batch, loss_fn, losses, start

pytestmark = pytest.mark.webgpu


# -- devices --------------------------------------------------------------------------------


@contextmanager
def navigator_gpu(value: str) -> Iterator[None]:
    """The page with another `navigator.gpu`, and no device that was asked for before."""
    from pyodide.code import run_js

    held, backend._default = backend._default, None
    run_js(f"Object.defineProperty(navigator, 'gpu', {{ value: {value}, configurable: true }})")
    try:
        yield
    finally:
        run_js("delete navigator.gpu")
        backend._default = held


NO_GPU = "undefined", r"no WebGPU here, navigator\.gpu is missing"
NO_ADAPTER = "{ requestAdapter: async () => null }", "no GPU adapter to offer"


@pytest.mark.parametrize(("gpu", "message"), [NO_GPU, NO_ADAPTER], ids=["no WebGPU", "no adapter"])
async def test_without_a_device(gpu: str, message: str) -> None:
    with navigator_gpu(gpu):
        with pytest.raises(tg.NoDeviceError, match=message):
            await start("webgpu")
        with pytest.warns(RuntimeWarning, match=f"on the numpy device, without a GPU: .*{message}") as caught:
            train = await start(None)
        assert caught[0].filename == sys.modules[start.__module__].__file__, "the line that called tg.compile"
        assert train.state.backend.name == "numpy"
        expected = await losses(train, 0, 3)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # said once
            assert await losses(await start(None), 0, 3) == expected
    on_gpu = await start(None)
    assert on_gpu.state.backend.name == "webgpu"
    np.testing.assert_allclose(await losses(on_gpu, 0, 3), expected, rtol=1e-5)


async def test_what_is_no_device() -> None:
    for given in ("cuda", 0, object()):
        with pytest.raises(tg.InputError, match="device must be 'webgpu', 'numpy'"):
            await start(given)


async def lose(train: tg.Train) -> None:
    train.state.backend.device.js_device.destroy()  # type: ignore[attr-defined]


async def test_a_lost_device_ends_all_calls_and_a_snapshot_goes_on() -> None:
    whole = await start("webgpu")
    expected = await losses(whole, 0, 8)
    train = await start(await new_device(), snapshot_every=2)
    predict = await train.attach(lambda model, x: model(x), {"x": tg.f32[None, 5]})
    with pytest.raises(tg.InputError, match="no snapshot to restore"):
        await train.restore()
    assert await losses(train, 0, 5) == expected[:5]
    assert train.snapshot is not None
    assert train.snapshot["calls"] == 4
    x = batch(0)["x"]
    before = await predict(x=x)
    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: train.step(batch(5)),
        lambda: train.submit(batch(5)),
        train.losses,
        train.state_dict,
        train.reset,
        lambda: predict(x=x),
        lambda: predict(x=x[:3]),
        lambda: train.load_state_dict(train.snapshot or {}),
        lambda: tg.compile_forward(train.state.module, lambda model, x: model(x), (SPECS["x"],), state=train.state),
    ]
    pending = [asyncio.ensure_future(train.step(batch(5))), asyncio.ensure_future(train.state_dict())]
    await asyncio.sleep(0)
    await lose(train)
    ended = await soon(asyncio.gather(*pending, return_exceptions=True))
    assert [type(error) for error in ended] == [tg.DeviceLostError] * 2
    for call in calls[:-1]:
        with pytest.raises(tg.DeviceLostError, match=r"device was lost.*snapshot or checkpoint"):
            await soon(call())
    with pytest.raises(tg.DeviceLostError):
        await soon((await calls[-1]())(x))
    await soon(train.restore())
    assert train.state.steps == 4
    assert await losses(train, 4, 8) == expected[4:]
    assert_same(await train.state_dict(), await whole.state_dict())
    assert not np.array_equal(await predict(x=x), before), "attached functions follow"


async def test_a_lost_device_may_be_followed_by_another_kind() -> None:
    train = await start(await new_device(), snapshot_every=1)
    expected = await losses(train, 0, 2)
    await lose(train)
    with navigator_gpu("undefined"), pytest.raises(tg.NoDeviceError):
        await train.restore()
    await train.restore("numpy")
    assert train.state.backend.name == "numpy"
    other = await losses(train, 2, 4)
    np.testing.assert_allclose(expected + other, await losses(await start("numpy"), 0, 4), rtol=1e-5)


async def test_two_trainings_of_one_state_are_restored_together() -> None:
    async def make(device: Any) -> tuple[tg.Train, tg.Train]:
        first = await start(device, snapshot_every=2)
        second = await tg.compile(
            first.state.module, lambda m, x: tg.mean(m(x) ** 2), optim.Adam(0.01), (SPECS["x"],), state=first.state
        )
        return first, second

    async def run(first: tg.Train, second: tg.Train, at: range) -> list[float]:
        found = []
        for i in at:
            found += [(await first.step(batch(i))).loss, (await second.step(batch(i)["x"])).loss]
        return found

    expected = await run(*await make("webgpu"), range(6))
    first, second = await make(await new_device())
    assert await run(first, second, range(4)) == expected[:8]
    # the snapshot was made before the second training's last step
    await lose(first)
    await first.restore()
    assert first.state.counts == {"optim": 4, "optim2": 3}
    assert (await second.step(batch(3)["x"])).loss == expected[7]
    assert await run(first, second, range(4, 6)) == expected[8:]


# -- compilation ------------------------------------------------------------------------------


async def test_a_shader_that_does_not_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    train = await start("webgpu")
    expected = await losses(await start("webgpu"), 0, 3)
    assert await losses(train, 0, 1) == expected[:1]
    device = train.state.backend.device  # type: ignore[attr-defined]
    buffers, before = alive(device), await train.state_dict()
    generate = backend.generate

    def broken(*args: Any) -> Any:
        kernels = list(generate(*args))
        kernels[0] = kernels[0]._replace(wgsl=kernels[0].wgsl + "\nfn broken( {")
        device.begin(kernels[0])  # ahead of `compile`, which is the one to tell
        return kernels

    with monkeypatch.context() as patch:
        patch.setattr(backend, "generate", broken)
        with pytest.raises(tg.ShaderError, match=r"(?s)did not compile.*fn broken\( \{"):
            await tg.compile(
                train.state.module, lambda m, x: tg.mean(m(x) ** 2), optim.SGD(0.01), (SPECS["x"],), state=train.state
            )
        predict = await train.attach(lambda model, x: model(x), (SPECS["x"],))
        with pytest.raises(tg.ShaderError):
            await predict(batch(0)["x"])
    assert alive(device) == buffers
    assert_same(await train.state_dict(), before)
    assert await losses(train, 1, 3) == expected[1:]
    assert (await predict(batch(0)["x"])).shape == (8, 3)


def alive(device: Any) -> int:
    """Buffers of what somebody still holds: trainings that went out of use are collected at any time."""
    gc.collect()
    return device.buffer_count


async def test_out_of_memory_names_the_tensor_and_the_plan() -> None:
    train = await start("webgpu")
    expected = await losses(await start("webgpu"), 0, 2)
    buffers = alive(train.state.backend.device)  # type: ignore[attr-defined]
    predict = await train.attach(lambda model, x: {"huge": tg.broadcast_to(x, (2**30, 4))}, {"x": tg.f32[4]})
    with pytest.raises(tg.OutOfMemoryError, match=r"no room for 'huge' of .*whole plan takes [\d,]+ bytes"):
        await predict(x=np.zeros(4, np.float32))
    with pytest.raises(tg.OutOfMemoryError, match=r"no room for '.*whole plan takes [\d,]+ bytes; a smaller batch"):
        await tg.compile(
            train.state.module,
            lambda model, x: tg.mean(model(x)),
            optim.SGD(0.1),
            {"x": tg.f32[2**28, 5]},
            state=train.state,
        )
    assert alive(train.state.backend.device) == buffers  # type: ignore[attr-defined]
    assert await losses(train, 0, 2) == expected


# -- numbers that are not finite --------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
async def test_a_loss_that_is_not_finite_changes_nothing(bad: float) -> None:
    train, other = await start("webgpu", dropout=0.0), await start("webgpu", dropout=0.0)
    expected = await losses(other, 0, 4)
    assert await losses(train, 0, 2) == expected[:2]
    before = await train.state_dict()
    poisoned = batch(2)
    poisoned["x"][3] = bad
    result = await train.step(poisoned)
    assert not np.isfinite(result.loss)
    assert train.state.steps == 2
    assert_same(await train.state_dict(), before, counters=False)
    await train.submit(poisoned)
    assert not np.isfinite(await train.losses()).any()
    assert train.state.steps == 2
    assert_same(await train.state_dict(), before, counters=False)
    await train.submit(batch(2))
    np.testing.assert_array_equal(await train.losses(), np.array(expected[2:3], np.float32))
    assert await losses(train, 3, 4) == expected[3:]
    assert_same(await train.state_dict(), await other.state_dict(), counters=False)


async def test_a_loss_that_is_not_finite_raises_where_that_was_asked_for() -> None:
    train = await start("webgpu", nonfinite="raise")
    await losses(train, 0, 1)
    before = await train.state_dict()
    poisoned = batch(1)
    poisoned["x"][0] = np.nan
    with pytest.raises(tg.NonFiniteError, match=r"the loss of step 2 is nan; weights.* as before it"):
        await train.step(poisoned)
    assert_same(await train.state_dict(), before, counters=False)
    assert np.isfinite(await losses(train, 1, 2)).all()


# -- inputs -----------------------------------------------------------------------------------


async def test_inputs_that_do_not_fit_change_nothing() -> None:
    train = await start("webgpu")
    expected = await losses(await start("webgpu"), 0, 2)
    good = batch(0)
    x, t = good["x"], good["t"]
    before = await train.state_dict()
    cases: list[tuple[dict[str, Any], str]] = [
        ({"x": x}, r"missing \['t'\]"),
        ({"x": x, "y": t}, r"missing \['t'\] and unknown \['y'\]"),
        ({**good, "more": x}, r"unknown \['more'\]; expected \['x', 't'\]"),
        ({**good, "x": x[:7]}, r"input 'x' has shape \[7, 5\], expected f32\[8, 5\]"),
        ({**good, "x": x.astype(complex)}, r"input 'x' has dtype complex128, expected f32\[8, 5\]"),
        ({**good, "x": [["a"] * 5] * 8}, "input 'x' has dtype <U1"),
        ({**good, "x": [[1.0], [1.0, 2.0]]}, "input 'x' is not an array"),
        ({**good, "t": t.astype(np.float32)}, r"input 't' has dtype float32.*\.astype\(np\.int32\)"),
        ({**good, "t": t.astype(np.int64) + 2**31}, "input 't' holds .*which i32 cannot store"),
        ({**good, "t": None}, "input 't'"),
        ({**good, "x": {"deep": x}}, "input 'x'"),
    ]
    for inputs, message in cases:
        for call in (train.step, train.submit, train.profile):
            with pytest.raises(tg.InputError, match=message):
                await call(inputs)
    for args in ((x, t), (x,), ([x, t],)):
        with pytest.raises(tg.InputError, match=r"expected a mapping with \['x', 't'\]"):
            await train.step(*args)
    with pytest.raises(tg.InputError, match="not both"):
        await train.step(good, x=x)
    assert_same(await train.state_dict(), before)
    assert (await train.losses()).size == 0
    assert await losses(train, 0, 2) == expected


# -- steps at once, interrupts ------------------------------------------------------------------


async def test_steps_at_once_are_steps_in_sequence() -> None:
    expected = await losses(await start("webgpu"), 0, 6)
    train = await start("webgpu")
    together = await soon(asyncio.gather(*(train.step(batch(i)) for i in range(4))))
    assert [result.loss for result in together] == expected[:4]
    mixed = await soon(asyncio.gather(train.submit(batch(4)), train.state_dict(), train.step(batch(5)), train.losses()))
    assert mixed[1]["calls"] == 5
    assert mixed[2].loss == expected[5]
    np.testing.assert_array_equal(mixed[3], np.array(expected[4:5], np.float32))


async def interrupted(train: tg.Train, i: int, error: type[BaseException]) -> None:
    """A step that an error ends while it waits for the GPU."""
    task = asyncio.ensure_future(caught(train.step(batch(i)), error))
    waiting = train.built.executor._program._waiting  # type: ignore[attr-defined]
    while not waiting:
        await asyncio.sleep(0)
    if error is asyncio.CancelledError:
        task.cancel()
    else:
        next(iter(waiting.values())).set_exception(error())
    assert await soon(task)


async def caught(awaitable: Awaitable[Any], error: type[BaseException]) -> bool:
    try:
        await awaitable
    except error:
        return True
    return False


@pytest.mark.parametrize("error", [asyncio.CancelledError, KeyboardInterrupt])
async def test_an_interrupted_step_is_a_whole_step_or_none(error: type[BaseException]) -> None:
    whole = await start("webgpu")
    expected = await losses(whole, 0, 3)
    train = await start("webgpu")
    assert await losses(train, 0, 1) == expected[:1]
    await interrupted(train, 1, error)
    saved = await soon(train.state_dict())
    assert train.state.steps == int(saved["optimizer"]["optim.steps"]) == 2, "it was under way"
    assert await losses(train, 2, 3) == expected[2:]
    assert_same(await train.state_dict(), await whole.state_dict())
    # without anybody asking between: the next step finds out by itself
    await interrupted(train, 3, error)
    await losses(train, 4, 5)
    assert train.state.steps == 5


async def test_a_step_that_is_cancelled_while_it_waits_for_its_turn_is_none() -> None:
    train = await start("webgpu", dropout=0.0)
    expected = await losses(await start("webgpu", dropout=0.0), 0, 3)
    first, second = (asyncio.ensure_future(train.step(batch(i))) for i in (0, 9))
    await asyncio.sleep(0)
    second.cancel()
    assert (await soon(first)).loss == expected[0]
    with pytest.raises(asyncio.CancelledError):
        await second
    assert train.state.steps == 1
    assert await losses(train, 1, 3) == expected[1:]


# -- tg.sync in a page ----------------------------------------------------------------------------


async def test_sync_waits_in_a_page_where_it_can() -> None:
    from pyodide.ffi import can_run_sync

    train = await start("webgpu")
    if can_run_sync():
        assert tg.sync(train.step(batch(0))).loss == (await losses(await start("webgpu"), 0, 1))[0]
    else:
        with pytest.raises(tg.TraceError, match=r"write `await \.\.\.` instead"):
            tg.sync(train.step(batch(0)))


async def test_a_training_inside_a_trace_is_refused() -> None:
    from pyodide.ffi import can_run_sync

    if not can_run_sync():
        pytest.skip("nothing can wait inside a trace here")

    def nested(model: nn.Module, x: tg.Tensor) -> tg.Tensor:
        tg.sync(tg.compile(inner, loss_fn, optim.SGD(0.1), SPECS, device="webgpu"))
        return tg.sum(x)

    inner = Net()
    with pytest.raises(tg.TraceError, match="traces do not nest"):
        await tg.compile(nn.Linear(5, 1), nested, optim.SGD(0.1), (SPECS["x"],), device="webgpu")
    assert len(await losses(await start("webgpu"), 0, 1)) == 1
