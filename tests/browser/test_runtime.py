"""The runtime on WebGPU: what is made when, steps, inputs and losses, with hand-written kernels."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from runtime_browser import LOSSES, Spy, X, make, new_device, soon
from runtime_plans import Plan, descent, wgsl
from tensorgrad.dtypes import bool_, f16, i32, u32
from tensorgrad.errors import (
    InputError,
    TensorgradError,
)
from tensorgrad.plan import Binding, KernelSpec

pytestmark = pytest.mark.webgpu


# -- what is made when ----------------------------------------------------------------------


async def test_buffers_and_operations_carry_their_names() -> None:
    device = await new_device()
    with Spy() as spy:
        runtime = await make(descent(), device)
        _, made = spy.read()
        labels = [note for name, note in made if name == "createBuffer"]
        assert {"w", "steps", "x", "w.grad", "loss"} <= set(labels)
        await runtime.step({"x": X})
        _, seen = spy.read()
    assert [note for name, note in seen if name == "pushDebugGroup"] == ["grad", "loss", "update"]
    device.close()


async def test_modules_and_pipelines_are_cached_by_source() -> None:
    p = Plan()
    p.add("input", "x", (4,))
    for name in ("a", "b", "loss"):
        p.add("output", name, (4,))
    source = wgsl("b[i] = a[i] + 1.0;", 4, "a", "b:w")
    for target, read in (("a:w", "x"), ("b:w", "a"), ("loss:w", "b")):
        p.kernel(f"to {target}", "", 4, read, target, source=source)
    device = await new_device()
    with Spy() as spy:
        first = await make(p, device)
        counts, _ = spy.read()
        assert (counts["createShaderModule"], counts["createComputePipelineAsync"]) == (1, 1)
        assert counts["createBindGroup"] == 3
        second = await make(p, device)
        counts, _ = spy.read()
        assert "createShaderModule" not in counts
        assert "createComputePipelineAsync" not in counts
    assert await first.step({"x": X}) == await second.step({"x": X}) == 5.0
    device.close()


async def test_a_step_is_one_pass_and_one_submit() -> None:
    device = await new_device()
    runtime = await make(descent(), device)
    with Spy() as spy:
        await runtime.step({"x": X})
        counts, _ = spy.read()
        assert counts["submit"] == counts["beginComputePass"] == counts["writeBuffer"] == 1
        assert counts["dispatchWorkgroups"] == 3
        assert counts["copyBufferToBuffer"] == 2 or counts["createBuffer"] == 1, "loss to ring and to readback"
        await runtime.step({"x": X})
        counts, _ = spy.read()
        assert counts["copyBufferToBuffer"] == 2
        assert not {"createBindGroup", "createBuffer", "createShaderModule"} & counts.keys()
        await runtime.submit({"x": X})
        counts, _ = spy.read()
        assert (counts["submit"], counts["beginComputePass"], counts["copyBufferToBuffer"]) == (1, 1, 1)
    device.close()


async def test_chunks_give_the_same_in_several_submits() -> None:
    device = await new_device()
    runtime = await make(descent(), device, chunk=2)
    with Spy() as spy:
        assert await runtime.step({"x": X}) == LOSSES[0]
        counts, _ = spy.read()
    # two chunks, and the copies of the loss
    assert (counts["submit"], counts["beginComputePass"], counts["dispatchWorkgroups"]) == (3, 2, 3)
    assert await runtime.step({"x": X}) == LOSSES[1]
    device.close()


async def test_debug_groups_can_be_left_out() -> None:
    runtime = await make(descent(), debug_groups=False)
    with Spy() as spy:
        assert await runtime.step({"x": X}) == LOSSES[0]
        assert "pushDebugGroup" not in spy.read()[0]
    runtime.destroy()


async def test_kernels_without_source_or_threads_are_skipped() -> None:
    p = descent()
    p.kernel("view", "", 4, "x", source="")
    p.kernel("empty", "no shader at all", 0, "x")
    runtime = await make(p)
    with Spy() as spy:
        assert await runtime.step({"x": X}) == LOSSES[0]
        assert spy.read()[0]["dispatchWorkgroups"] == 3
    runtime.destroy()


async def test_a_dispatch_past_65535_workgroups_is_split() -> None:
    count = 65_535 * 64 + 64 * 3 + 5
    p = Plan()
    p.add("output", "y", (count,), u32)
    p.kernel("iota", "y[i] = i;", count, "y:w=u32")
    runtime = await make(p)
    with Spy() as spy:
        result = await soon(runtime.run({}))
        assert ("dispatchWorkgroups", "65535,2") in spy.read()[1]
    np.testing.assert_array_equal(result["y"], np.arange(count, dtype=np.uint32))
    runtime.destroy()


async def test_a_binding_that_the_shader_does_not_use() -> None:
    p = Plan()
    p.add("input", "x", (4,))
    p.add("output", "loss")
    p.kernel("constant", "loss[0] = 7.0;", 1, "x", "loss:w")
    runtime = await make(p)
    assert await runtime.step({"x": X}) == 7.0
    runtime.destroy()


async def test_a_step_that_the_browser_refuses_is_reported_at_once() -> None:
    p = Plan()
    p.add("output", "loss", (4,))
    source = wgsl("b[i] = a[i];", 4, "a", "b:w")
    p.kernels.append(KernelSpec("copy onto itself", 0, source, (Binding(0), Binding(0, True)), 4))
    device = await new_device()
    with pytest.raises(TensorgradError, match="browser refused"):
        await make(p, device)
    assert device.buffer_count == 0
    device.close()


# -- inputs ---------------------------------------------------------------------------------


async def test_wrong_inputs_are_refused_before_anything_is_uploaded() -> None:
    p = descent()
    p.add("input", "k", (2,), i32)
    runtime = await make(p)
    k = np.array([1, 2], np.int32)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"x": X}, r"missing inputs 'k'"),
        ({"x": X, "k": k, "y": X}, r"unknown inputs 'y'"),
        ({"z": X, "k": k}, r"missing inputs 'x' and unknown inputs 'z'"),
        ({"x": X[:3], "k": k}, r"input 'x' has shape \[3\], expected f32\[4\]"),
        ({"x": X, "k": np.array([1.0, 2.0])}, r"input 'k' has dtype float64, expected i32\[2\]"),
        ({"x": X, "k": np.array([1, 2**31])}, r"input 'k' holds 2147483648"),
    ]
    with Spy() as spy:
        for inputs, message in cases:
            for call in (runtime.step, runtime.run, runtime.submit):
                with pytest.raises(InputError, match=message):
                    await call(inputs)
        counts, _ = spy.read()
    assert counts == {}
    assert await runtime.step({"x": X, "k": k}) == LOSSES[0]
    runtime.destroy()


async def test_inputs_that_convert() -> None:
    p = Plan()
    p.add("input", "x", (3,))
    p.add("input", "flag", (3,), bool_)
    p.add("input", "k", (), i32)
    p.add("output", "y", (3,))
    p.add("output", "on", (3,), bool_)
    p.kernel("y", "y[i] = x[i] * f32(k[0]); on[i] = 1u - flag[i];", 3, "x", "flag=u32", "k=i32", "y:w", "on:w=u32")
    runtime = await make(p)
    result = await runtime.run({"x": [1, 2.5, -1], "flag": np.array([True, False, True]), "k": np.int64(3)})
    np.testing.assert_array_equal(result["y"], np.array([3, 7.5, -3], np.float32))
    np.testing.assert_array_equal(result["on"], [False, True, False])
    assert result["on"].dtype == np.bool_
    runtime.destroy()


async def test_inputs_survive_a_growing_heap() -> None:
    runtime = await make(descent())
    assert await runtime.step({"x": X}) == LOSSES[0]
    import pyodide_js

    before = pyodide_js._module.HEAPU8.byteLength
    ballast = []
    while pyodide_js._module.HEAPU8.byteLength == before:
        ballast.append(np.ones(4_000_000))
    assert await runtime.step({"x": X}) == LOSSES[1]
    del ballast
    runtime.destroy()


async def test_more_inputs_of_odd_sizes_and_none() -> None:
    p = Plan()
    p.add("input", "empty", (0, 3))
    p.add("input", "half", (3,), f16)
    p.add("param", "odd", (5,), f16)
    p.add("param", "nothing", (0,))
    p.add("output", "bits", (2,), u32)
    p.add("output", "none", (2, 0))
    p.kernel("bits", "bits[i] = half[i];", 2, "half=u32", "empty", "bits:w=u32")
    runtime = await make(p)
    half = np.array([1, -2, 0.5], np.float16)
    result = await runtime.run({"empty": np.zeros((0, 3)), "half": half})
    np.testing.assert_array_equal(result["bits"].view(np.float16), np.array([1, -2, 0.5, 0], np.float16))
    assert result["none"].shape == (2, 0)
    values = {"odd": np.arange(5, dtype=np.float16), "nothing": np.zeros(0, np.float32)}
    runtime.upload_params(values)
    got = await runtime.download_params()
    np.testing.assert_array_equal(got["odd"], values["odd"])
    assert got["nothing"].shape == (0,)
    runtime.destroy()


# -- steps and losses -----------------------------------------------------------------------


async def test_steps_return_the_loss_and_update_in_place() -> None:
    runtime = await make(descent())
    assert [await runtime.step({"x": X}) for _ in range(3)] == LOSSES[:3]
    np.testing.assert_array_equal((await runtime.download_params())["w"], X * (1 - 0.5**3))
    np.testing.assert_array_equal((await runtime.download_param_grads())["w"], -X * 0.25)
    np.testing.assert_array_equal((await runtime.download_states())["steps"], [3])
    assert (await runtime.losses()).size == 0
    runtime.destroy()


async def test_writebacks_follow_the_kernels() -> None:
    p = Plan()
    p.add("state", "count", (4,), i32, 10)
    p.add("temp", "next", (4,), i32)
    p.add("output", "loss")
    p.kernel("next", "next[i] = count[i] + i32(i);", 4, "count=i32", "next:w=i32")
    p.kernel("loss", "loss[0] = f32(count[3]);", 1, "count=i32", "loss:w")
    p.writeback("next", "count")
    runtime = await make(p)
    assert [await runtime.step({}) for _ in range(3)] == [10.0, 13.0, 16.0], "kernels see the old value"
    np.testing.assert_array_equal((await runtime.download_states())["count"], [10, 13, 16, 19])
    runtime.destroy()


async def test_queued_losses_come_in_order_and_once() -> None:
    runtime = await make(descent())
    await runtime.submit({"x": X})
    await runtime.submit({"x": X})
    assert await runtime.step({"x": X}) == LOSSES[2]
    np.testing.assert_array_equal(await runtime.losses(), np.array(LOSSES[:2], np.float32))
    assert (await runtime.losses()).size == 0
    await runtime.run({"x": X}, read=())
    assert (await runtime.run({"x": X}, read=("loss",)))["loss"] == 0.234375
    np.testing.assert_array_equal(await runtime.losses(), np.array(LOSSES[3:4], np.float32))
    runtime.destroy()


async def test_the_ring_keeps_the_last_1024_losses_and_3_in_flight() -> None:
    p = Plan()
    p.add("input", "x")
    p.add("output", "loss")
    p.kernel("loss", "loss[0] = x[0];", 1, "x", "loss:w")
    runtime = await make(p)
    most = 0
    for i in range(1_100):
        await runtime.submit({"x": np.float32(i)})
        most = max(most, runtime._program._js.flying.length)
    np.testing.assert_array_equal(await runtime.losses(), np.arange(76, 1_100, dtype=np.float32))
    assert most <= 3
    runtime.destroy()


async def test_outputs_by_name_in_one_readback() -> None:
    p = descent()
    p.add("output", "twice", (2, 2))
    p.kernel("twice", "twice[i] = 2.0 * x[i];", 4, "x", "twice:w")
    runtime = await make(p)
    everything = await runtime.run({"x": X})
    assert everything.keys() == {"loss", "twice"}
    with Spy() as spy:
        some = await runtime.run({"x": X}, read=("twice", "loss"))
        assert spy.read()[0]["submit"] == 1
    assert list(some) == ["twice", "loss"]
    np.testing.assert_array_equal(some["twice"], [[4, 8], [12, 16]])
    assert some["loss"] == LOSSES[1]
    assert some["loss"].shape == ()
    with pytest.raises(InputError, match="no output 'thrice'"):
        await runtime.run({"x": X}, read=("thrice",))
    np.testing.assert_array_equal(everything["twice"], some["twice"])
    runtime.destroy()


async def test_results_too_large_for_one_readback(monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorgrad.device import webgpu

    monkeypatch.setattr(webgpu, "READ_AT_ONCE", 16)
    p = descent()
    p.add("output", "twice", (4,))
    p.kernel("twice", "twice[i] = 2.0 * x[i];", 4, "x", "twice:w")
    runtime = await make(p)
    with Spy() as spy:
        result = await runtime.run({"x": X})
        assert spy.read()[0]["submit"] == 3, "the step, then a readback each"
    assert result["loss"] == LOSSES[0]
    np.testing.assert_array_equal(result["twice"], 2 * X)
    assert (await runtime.losses()).size == 0, "the loss was among what was read"
    assert await runtime.step({"x": X}) == LOSSES[1]
    runtime.destroy()


async def test_without_a_loss_step_says_so() -> None:
    p = Plan()
    p.add("output", "y")
    p.kernel("y", "y[0] = 1.0;", 1, "y:w")
    runtime = await make(p)
    with pytest.raises(TensorgradError, match=r"no output named 'loss'; call run\(\)"):
        await runtime.step({})
    with pytest.raises(TensorgradError, match="no output named 'loss'"):
        await runtime.losses()
    assert (await runtime.run({}))["y"] == 1.0
    runtime.destroy()


async def test_steps_at_once_run_one_after_the_other() -> None:
    runtime = await make(descent())
    results = await soon(asyncio.gather(*(runtime.step({"x": X}) for _ in range(4))))
    assert results == LOSSES
    mixed = await soon(
        asyncio.gather(runtime.run({"x": X}), runtime.submit({"x": X}), runtime.download_states(), runtime.losses())
    )
    assert mixed[2]["steps"] == 6
    assert mixed[3].size == 1
    runtime.destroy()
