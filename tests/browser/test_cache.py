"""The plan cache in a browser: a second compilation hits, runs the same, and can be looked into."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from models import CharGPT, next_token_loss
from runtime_browser import Spy, new_device
from tensorgrad import backend, cache, optim
from tensorgrad.cache import indexeddb
from tensorgrad.cache.text import encode
from training import assert_same, batch, losses, start

pytestmark = pytest.mark.webgpu


STARTED_WITH = cache.enable(False)
cache.enable(STARTED_WITH)


@pytest.fixture(autouse=True)
async def on() -> AsyncIterator[None]:
    before = cache.enable(True)
    await cache.clear()
    yield
    await cache.clear()
    cache.enable(before)


async def test_the_plugin_leaves_it_off() -> None:
    assert not STARTED_WITH


class Counter:
    """How often the compiler lowered a graph."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        lower = backend.lower

        def counted(*args: Any, **options: Any) -> Any:
            self.count += 1
            return lower(*args, **options)

        monkeypatch.setattr(backend, "lower", counted)


async def test_a_hit_lowers_nothing_and_trains_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered = Counter(monkeypatch)
    first = await start("webgpu")
    expected, state = await losses(first, 0, 4), await first.state_dict()
    assert lowered.count == 1
    second = await start("webgpu")
    assert lowered.count == 1
    assert (first.built.compiled.cached, second.built.compiled.cached) == (False, True)
    assert await losses(second, 0, 4) == expected
    assert_same(await second.state_dict(), state)
    # other weights and another seed are the same program
    third = await start("webgpu", init=2, seed=5)
    assert third.built.compiled.cached
    assert await losses(third, 0, 4) != expected
    await third.load_state_dict(state)
    assert await losses(third, 4, 6) == await losses(second, 4, 6)
    await third.reset()
    assert (await third.state_dict())["calls"] == 0
    assert lowered.count == 1


async def test_a_program_from_the_cache_can_be_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    first = await start("webgpu", keep_grads=True)
    second = await start("webgpu", keep_grads=True)
    lowered = Counter(monkeypatch)
    for train in (first, second):
        await train.step(batch(0))
    for name, grad in (await first.gradients()).items():
        np.testing.assert_array_equal((await second.gradients())[name], grad)
    assert (await second.check()).kernels == len(first.kernels)
    assert lowered.count == 1
    assert str(second.graph) == str(first.graph)
    assert str(second.kernels) == str(first.kernels)
    assert [str(kernel) for kernel in second.kernels] == [str(kernel) for kernel in first.kernels]
    assert str(second.memory) == str(first.memory)
    assert len((await second.profile()).rows) == sum(kernel.runs for kernel in first.built.kernels)
    made = second.built.compiled.made.program
    assert made is not None
    assert second.built.compiled.program is not None
    assert encode(made) == encode(second.built.compiled.program)
    assert lowered.count == 1


async def test_predictions_and_jitted_functions_hit(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered = Counter(monkeypatch)

    def probabilities(model: Any, x: tg.Tensor) -> dict[str, tg.Tensor]:
        tg.capture("hidden", model.into(x))
        return {"p": tg.softmax(model(x)), "x": x}

    async def run() -> list[np.ndarray]:
        train = await start("webgpu")
        predict = await train.attach(probabilities, {"x": tg.f32[None, 5]})
        found = await predict(x=batch(0)["x"])
        assert found.keys() == {"p", "x"}
        doubled = await tg.jit(lambda x, unused: x * 2 + 1, device="webgpu")(found["p"], 3.0)
        slope = await tg.grad(lambda x: (x**3).sum(), device="webgpu")(found["p"])
        return [found["p"], found["x"], doubled, slope]

    expected = await run()
    assert lowered.count == 4
    for array, wanted in zip(await run(), expected, strict=True):
        np.testing.assert_array_equal(array, wanted)
    assert lowered.count == 4


async def test_another_versions_entries_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    await start("webgpu")
    lowered = Counter(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr("tensorgrad.cache.key.compiler", lambda: "another version")
        assert not (await start("webgpu")).built.compiled.cached
        assert (await start("webgpu")).built.compiled.cached
    assert (await start("webgpu")).built.compiled.cached
    assert lowered.count == 1


async def test_a_damaged_entry_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = await losses(await start("webgpu"), 0, 3)
    storage = await indexeddb.connect()
    assert storage is not None
    (key,) = await storage.uses()
    text = await storage.get(key, 0.0)
    assert text is not None
    await storage.put(key, text.replace("f32", "i32", 1), 0.0, len(text))
    train = await start("webgpu")
    assert not train.built.compiled.cached
    assert await losses(train, 0, 3) == expected
    assert await storage.get(key, 1.0) == text
    uses = await storage.uses()
    assert {name: nbytes for name, (nbytes, _) in uses.items()} == {key: len(text)}
    await cache.clear()
    assert await storage.get(key, 2.0) is None


async def test_no_room_and_no_database_are_no_fault(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from pyodide.code import run_js

    expected = await losses(await start("webgpu"), 0, 2)
    await cache.clear()
    level = tg.debug(1)
    undo = run_js(
        """(() => {
          const put = IDBObjectStore.prototype.put;
          IDBObjectStore.prototype.put = function (value, key) {
            put.call(this, value, key);
            this.transaction.abort();  // as a full disk does
          };
          return () => { IDBObjectStore.prototype.put = put; };
        })()"""
    )
    try:
        assert await losses(await start("webgpu"), 0, 2) == expected
        assert "the plan cache cannot write" in capsys.readouterr().err
    finally:
        undo()
    await start("webgpu")
    assert (await start("webgpu")).built.compiled.cached
    monkeypatch.setattr(cache, "_storage", None)

    async def refused() -> None:
        raise OSError("SecurityError")

    monkeypatch.setattr(indexeddb, "connect", refused)
    train = await start("webgpu")
    assert train.built.compiled.key is None
    assert await losses(train, 0, 2) == expected
    tg.debug(level)


async def test_parameters_go_up_while_all_pipelines_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    device, asked, before = await new_device(), 0, []
    with Spy() as spy:

        def write(*args: Any) -> None:
            nonlocal asked
            asked += spy.read()[0].get("createComputePipelineAsync", 0)
            before.append(asked)
            type(device).write(device, *args)

        monkeypatch.setattr(device, "write", write)
        model = CharGPT(layers=2, width=16, heads=2, context=8, vocabulary=11)
        specs = {"x": tg.i32[2, 8], "y": tg.i32[2, 8]}
        train = await tg.compile(model, next_token_loss, optim.SGD(0.1), specs, device=device)
        counts, _ = spy.read()
    running = [kernel for kernel in train.built.kernels if kernel.runs]
    sources = {kernel.wgsl for kernel in running}
    # equal kernels of both layers share a pipeline; all were asked for before the first parameter was written
    assert asked == len(sources) < len(running)
    assert before == [len(sources)] * len(train.state.values)
    assert "createComputePipelineAsync" not in counts
    device.close()
