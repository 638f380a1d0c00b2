"""Functions called with ever other sizes keep the last programs only: no buffer, proxy or pipeline piles up."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from runtime_browser import Spy, new_device
from tensorgrad import nn, optim
from tensorgrad.predict import CACHED

pytestmark = pytest.mark.webgpu(timeout=300)

SIZES = range(1, 8 * CACHED)


@pytest.fixture(autouse=True)
def _nothing_of_earlier_tests_is_freed_meanwhile() -> None:
    gc.collect()


@contextmanager
def traced() -> Iterator[Callable[[], int]]:
    """A count of the PyProxies that are alive."""
    import pyodide_js

    module = pyodide_js._module
    module.enable_pyproxy_allocation_tracing()
    try:
        yield lambda: module.pyproxy_alloc_map.size
    finally:
        module.disable_pyproxy_allocation_tracing()


async def held(call: Callable[[np.ndarray], Awaitable[Any]]) -> list[tuple[int, int]]:
    """PyProxies and buffers that calls with each size have left, once the oldest programs go, and at the end."""
    found, alive = [], 0
    with traced() as proxies, Spy() as spy:
        for n in SIZES:
            x = np.full((n, 3), n, np.float32)
            np.testing.assert_allclose(await call(x), np.tanh(x).sum(1), rtol=1e-5)
            counts, _ = spy.read()
            alive += counts.get("createBuffer", 0) - counts.get("destroy", 0)
            assert counts["createBuffer"] > 0, "a new size is a new program"
            if n in (2 * CACHED, SIZES[-1]):
                gc.collect()
                found.append((proxies(), alive))
        # sizes that are kept make nothing
        for n in SIZES[-CACHED:]:
            await call(np.ones((n, 3), np.float32))
        assert "createBuffer" not in spy.read()[0]
    return found


async def test_an_attached_function_keeps_the_last_programs() -> None:
    train = await tg.compile(
        nn.Linear(3, 1), lambda model, x: tg.sum(model(x)), optim.Adam(0.1), {"x": tg.f32[4, 3]}, device="webgpu"
    )
    device: Any = train.state.backend.device  # type: ignore[attr-defined]
    before = device.buffer_count
    predict = await train.attach(lambda model, x: tg.tanh(x).sum(axis=1), {"x": tg.f32[None, 3]})
    early, late = await held(lambda x: predict(x=x))
    assert early == late
    predict.destroy()
    assert device.buffer_count == before
    assert np.isfinite((await train.step(x=np.ones((4, 3), np.float32))).loss)
    train.destroy()


@pytest.mark.parametrize("transform", ["jit", "grad"])
async def test_a_jitted_function_keeps_the_last_programs(transform: str) -> None:
    if transform == "jit":
        call = tg.jit(lambda x: tg.tanh(x).sum(axis=1), device="webgpu")
    else:  # the gradient of sum(w * y) by w is y
        slope = tg.grad(lambda w, x: (w * tg.tanh(x).sum(axis=1)).sum(), device="webgpu")
        call = lambda x: slope(np.ones(len(x), np.float32), x)  # noqa: E731
    early, late = await held(call)
    assert early == late


async def test_pipelines_that_were_not_used_for_long_are_forgotten() -> None:
    device = await new_device()
    engine = device._engine
    assert engine.kept >= 1000, "a large model has some hundreds"
    engine.kept = 4
    call = tg.jit(lambda x: tg.tanh(x).sum(axis=1), device=device.js_device)
    for n in (*range(1, 3 * CACHED), 1):
        x = np.full((n, 3), n, np.float32)
        np.testing.assert_allclose(await call(x), np.tanh(x).sum(1), rtol=1e-5)
        assert engine.pipelines.size <= 4
    device.close()
