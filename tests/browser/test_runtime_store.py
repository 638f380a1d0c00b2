"""Parameters and states on WebGPU: up, down, in arenas, shared by several runtimes."""

from __future__ import annotations

import numpy as np
import pytest

from runtime_browser import Spy, X, make, new_device
from runtime_plans import Plan, descent
from tensorgrad.dtypes import i32
from tensorgrad.errors import (
    InputError,
    TensorgradError,
)
from tensorgrad.runtime import Store

pytestmark = pytest.mark.webgpu


# -- parameters -----------------------------------------------------------------------------


async def test_parameters_go_up_whole_or_in_part() -> None:
    p = descent()
    p.add("param", "b", (2, 2))
    runtime = await make(p)
    w, b = np.ones(4, np.float32), np.arange(4, dtype=np.float32).reshape(2, 2)
    with Spy() as spy:
        for params, strict, message in (
            ({"w": w}, True, "missing parameters 'b'"),
            ({"w": w, "b": b, "c": b}, True, "unknown parameters 'c'"),
            ({"w": w, "c": b}, False, "unknown parameters 'c'"),
            ({"w": w, "b": b.T[:1]}, True, r"param 'b' has shape \[1, 2\], expected f32\[2, 2\]"),
        ):
            with pytest.raises(InputError, match=message):
                runtime.upload_params(params, strict=strict)
        assert spy.read()[0] == {}, "nothing is uploaded of a refused dict"
    runtime.upload_params({"w": w, "b": b.T})
    runtime.upload_params({"w": w * 3}, strict=False)
    got = await runtime.download_params()
    np.testing.assert_array_equal(got["w"], [3, 3, 3, 3])
    np.testing.assert_array_equal(got["b"], b.T)
    runtime.upload({"steps": np.array([41.0]), "w": w})
    await runtime.step({"x": X})
    assert (await runtime.download(["steps"]))["steps"] == 42
    with pytest.raises(InputError, match="unknown parameters and states 'q'"):
        await runtime.download(["q"])
    runtime.destroy()


async def test_initial_values_and_constants() -> None:
    p = Plan()
    p.add("state", "zero", (3,))
    p.add("state", "half", (3,), initial=0.5)
    p.add("state", "truncated", (3,), i32, -2.7)
    p.add("const", "table", (3,), i32, np.array([5, 6, 7], np.int32))
    p.add("output", "y", (3,))
    p.kernel("y", "y[i] = half[i] + f32(table[i]);", 3, "half", "table=i32", "y:w")
    runtime = await make(p)
    states = await runtime.download_states()
    assert [states[name].tolist() for name in ("zero", "half", "truncated")] == [[0] * 3, [0.5] * 3, [-2] * 3]
    np.testing.assert_array_equal((await runtime.run({}))["y"], [5.5, 6.5, 7.5])
    runtime.destroy()


async def test_gradients_that_the_plan_does_not_keep() -> None:
    p = descent()
    p.names["grad"].clear()
    runtime = await make(p)
    with pytest.raises(TensorgradError, match="keep_grads=True"):
        await runtime.download_param_grads()
    runtime.destroy()


# -- stores and arenas ----------------------------------------------------------------------


def in_arena(extra: bool = False) -> Plan:
    p = Plan()
    p.arenas["params"] = 512
    p.add("param", "a", (2,), arena="params", offset=0)
    p.add("param", "b", (3,), arena="params", offset=256)
    p.add("output", "loss")
    p.kernel("loss", "loss[0] = a[1] + 10.0 * b[2];", 1, "a", "b", "loss:w")
    if extra:
        p.add("state", "more", (2,), initial=4.0)
        p.kernel("scale", "b[i] = b[i] * more[0];", 3, "b:w", "more")
    return p


async def test_arenas_are_one_buffer_bound_by_range() -> None:
    p = in_arena()
    p.add("temp", "all", (128,), arena="params")
    p.kernel("all", "all[i] = all[i] + 1.0;", 128, "all:w")
    device = await new_device()
    with Spy() as spy:
        runtime = await make(p, device)
        labels = [note for name, note in spy.read()[1] if name == "createBuffer"]
    assert labels.count("arena params") == 1
    assert not {"a", "b"} & set(labels)
    runtime.upload_params({"a": [1, 2], "b": [3, 4, 5]})
    assert await runtime.step({}) == 52.0
    got = await runtime.download_params()
    assert (got["a"].tolist(), got["b"].tolist()) == ([2, 3], [4, 5, 6])
    runtime.destroy()
    assert device.buffer_count == 0
    device.close()


async def test_runtimes_share_a_store() -> None:
    device = await new_device()
    store = Store(device)
    train = await make(in_arena(extra=True), device, store=store)
    train.upload_params({"a": np.ones(2), "b": np.ones(3)})
    predict = await make(in_arena(), store=store)
    assert set(store.tensors) == {"a", "b", "more"}
    await train.step({})
    assert await predict.step({}) == 41.0
    predict.destroy()
    assert await train.step({}) == 41.0
    again = await make(in_arena(extra=True), store=store)
    np.testing.assert_array_equal((await again.download_params())["b"], [16, 16, 16])
    train.destroy()
    again.destroy()
    assert device.buffer_count == 2, "the arena and the state belong to the store"
    store.destroy()
    store.destroy()
    assert device.buffer_count == 0
    with pytest.raises(TensorgradError, match=r"store .* was destroyed"):
        await make(in_arena(), store=store)
    device.close()


async def test_a_store_that_does_not_fit_is_refused() -> None:
    device = await new_device()
    store = Store(device)
    runtime = await make(in_arena(), store=store)
    held = device.buffer_count
    wrong = Plan()
    wrong.add("param", "a", (5,))
    with pytest.raises(InputError, match=r"holds 'a' as f32\[2\], the plan wants f32\[5\]"):
        await make(wrong, store=store)
    single = Plan()
    single.add("param", "a", (2,))
    single.add("output", "loss")
    single.kernel("loss", "loss[0] = a[0];", 1, "a", "loss:w")
    other = await make(single, store=store)
    runtime.upload_params({"a": [9, 9], "b": np.zeros(3)})
    assert await other.step({}) == 9.0, "a tensor of an arena, bound by itself"
    other.destroy()
    assert device.buffer_count == held
    device.close()


async def test_writebacks_within_one_arena() -> None:
    p = Plan()
    p.arenas["states"] = 512
    p.add("state", "now", (3,), initial=1.0, arena="states", offset=0)
    p.add("state", "before", (3,), arena="states", offset=256)
    p.writeback("now", "before")
    runtime = await make(p)
    await runtime.run({})
    np.testing.assert_array_equal((await runtime.download_states())["before"], [1, 1, 1])
    runtime.destroy()
