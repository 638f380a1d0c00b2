"""The runtime on WebGPU: every behaviour with hand-written kernels, and every fault."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import numpy as np
import pytest
from runtime_plans import Plan, descent, wgsl

from tensorgrad.dtypes import bool_, f16, i32, u32
from tensorgrad.errors import (
    DeviceLostError,
    InputError,
    NoDeviceError,
    OutOfMemoryError,
    ShaderError,
    TensorgradError,
)
from tensorgrad.plan import Binding, KernelSpec
from tensorgrad.runtime import Store, create_runtime

pytestmark = pytest.mark.webgpu

X = np.array([2, 4, 6, 8], np.float32)
LOSSES = [60.0, 15.0, 3.75, 0.9375]

SPY = """
(() => {
  const count = {}, seen = [];
  const undo = [];
  const spy = (type, name, note) => {
    const original = type.prototype[name];
    type.prototype[name] = function (...args) {
      count[name] = (count[name] ?? 0) + 1;
      if (note) seen.push([name, note(args)]);
      return original.apply(this, args);
    };
    undo.push(() => { type.prototype[name] = original; });
  };
  spy(GPUDevice, 'createBuffer', a => a[0].label);
  spy(GPUDevice, 'createShaderModule', a => a[0].label);
  spy(GPUDevice, 'createComputePipelineAsync', a => a[0].label);
  spy(GPUDevice, 'createBindGroup');
  spy(GPUBuffer, 'destroy');
  spy(GPUQueue, 'writeBuffer');
  spy(GPUQueue, 'submit');
  spy(GPUCommandEncoder, 'beginComputePass');
  spy(GPUCommandEncoder, 'copyBufferToBuffer');
  spy(GPUComputePassEncoder, 'dispatchWorkgroups', a => a.join(','));
  spy(GPUComputePassEncoder, 'pushDebugGroup', a => a[0]);
  return {
    read() { const r = JSON.stringify([count, seen]); for (const k in count) delete count[k]; seen.length = 0; return r; },
    undo() { for (const f of undo) f(); },
  };
})()
"""


class Spy:
    """Counts calls into WebGPU."""

    def __enter__(self) -> Spy:
        from pyodide.code import run_js

        self._js = run_js(SPY)
        return self

    def __exit__(self, *_: object) -> None:
        self._js.undo()

    def read(self) -> tuple[dict[str, int], list[tuple[str, str]]]:
        """Calls since the last reading: how many of each, and (name, argument) in order."""
        import json

        counts, seen = json.loads(self._js.read())
        return counts, [(name, note) for name, note in seen]


async def new_device() -> Any:
    from tensorgrad.device.webgpu import request_device

    return await request_device()


async def make(p: Plan, device: Any = None, **options: Any) -> Any:
    return await create_runtime(p.plan, p.kernels, device=device, **options)


async def soon(awaitable: Any) -> Any:
    """The result, or a TimeoutError: nothing may hang."""
    return await asyncio.wait_for(awaitable, 20)


# -- devices --------------------------------------------------------------------------------


async def test_without_navigator_gpu() -> None:
    from pyodide.code import run_js

    run_js("Object.defineProperty(navigator, 'gpu', { value: undefined, configurable: true })")
    try:
        with pytest.raises(
            NoDeviceError, match=r"navigator\.gpu is missing.*insecure origin.*device='numpy'"
        ):
            await make(descent())
    finally:
        run_js("delete navigator.gpu")


async def test_without_an_adapter() -> None:
    from pyodide.code import run_js

    run_js(
        "Object.defineProperty(navigator, 'gpu', { value: { requestAdapter: async () => null }, configurable: true })"
    )
    try:
        with pytest.raises(NoDeviceError, match="no GPU adapter"):
            await make(descent())
    finally:
        run_js("delete navigator.gpu")


async def test_limits_and_features_are_those_of_the_adapter() -> None:
    import js

    adapter = await js.navigator.gpu.requestAdapter()
    device = await new_device()
    limits = device.limits
    assert limits.storage_buffers == adapter.limits.maxStorageBuffersPerShaderStage
    assert limits.buffer_size == adapter.limits.maxBufferSize
    assert limits.binding_size == adapter.limits.maxStorageBufferBindingSize
    assert limits.workgroup_storage == adapter.limits.maxComputeWorkgroupStorageSize
    for feature in ("timestamp-query", "subgroups", "shader-f16"):
        assert (feature in limits.features) == adapter.features.has(feature)
    assert limits.software == ("swiftshader" in limits.adapter)
    device.close()


async def test_a_given_device_is_never_destroyed() -> None:
    import js

    adapter = await js.navigator.gpu.requestAdapter()
    js_device = await adapter.requestDevice()
    first = await make(descent(), js_device)
    assert await first.step({"x": X}) == LOSSES[0]
    first.destroy()
    second = await make(descent(), js_device)
    assert await second.step({"x": X}) == LOSSES[0]
    assert second.device.limits.storage_buffers == 8, "a device asked for without limits has the default ones"
    second.destroy()
    js_device.destroy()


async def test_an_own_device_is_destroyed() -> None:
    runtime = await make(descent())
    assert await runtime.step({"x": X}) == LOSSES[0]
    runtime.destroy()
    info = await soon(runtime.device.js_device.lost)
    assert info.reason == "destroyed"


async def test_a_helper_registered_as_a_module_is_used() -> None:
    import pyodide_js

    from tensorgrad.device.adapter import load_helper

    plain = load_helper()
    load_helper.cache_clear()
    pyodide_js.registerJsModule("tensorgrad_replay", plain)
    try:
        import tensorgrad_replay  # pyright: ignore[reportMissingImports]

        assert load_helper() is tensorgrad_replay
        runtime = await make(descent())
        assert await runtime.step({"x": X}) == LOSSES[0]
        runtime.destroy()
    finally:
        pyodide_js.unregisterJsModule("tensorgrad_replay")
        load_helper.cache_clear()


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
        assert counts["copyBufferToBuffer"] == 2 or counts["createBuffer"] == 1, (
            "loss to ring and to readback"
        )
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
    assert (counts["submit"], counts["beginComputePass"], counts["dispatchWorkgroups"]) == (2, 2, 3)
    assert await runtime.step({"x": X}) == LOSSES[1]
    device.close()


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


# -- shaders --------------------------------------------------------------------------------


async def test_all_failing_shaders_are_reported_together() -> None:
    p = descent()
    p.kernel("bad sum", "w[i] = 1 + ;", 4, "w:w")
    p.kernel("bad name", "w[i] = missing_function(x[i]);", 4, "x", "w:w")
    device = await new_device()
    with pytest.raises(ShaderError) as caught:
        await make(p, device)
    text = str(caught.value)
    assert text.startswith("2 shaders did not compile.")
    assert "bad sum: " in text
    assert "bad name: " in text
    assert "update: " not in text
    assert "  6:" in text, "line:column of the message"
    assert "    6 |   w[i] = 1 + ;" in text, "numbered source"
    assert "missing_function" in text
    assert device.buffer_count == 0, "a failure leaves nothing behind"
    runtime = await make(descent(), device)
    assert await runtime.step({"x": X}) == LOSSES[0]
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
    p.kernel(
        "y", "y[i] = x[i] * f32(k[0]); on[i] = 1u - flag[i];", 3, "x", "flag=u32", "k=i32", "y:w", "on:w=u32"
    )
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
        asyncio.gather(
            runtime.run({"x": X}), runtime.submit({"x": X}), runtime.download_states(), runtime.losses()
        )
    )
    assert mixed[2]["steps"] == 6
    assert mixed[3].size == 1
    runtime.destroy()


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
    p.kernels.append(
        KernelSpec("all", 1, wgsl("all[i] = all[i] + 1.0;", 128, "all:w"), (Binding(0, True, 512),), 128)
    )
    device = await new_device()
    with Spy() as spy:
        runtime = await make(p, device)
        labels = [note for name, note in spy.read()[1] if name == "createBuffer"]
    assert labels.count("arena params") == 1
    assert not {"a", "b"} & set(labels)
    runtime.upload_params({"a": np.array([1, 2]), "b": np.array([3, 4, 5])} | {})
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
    with pytest.raises(TensorgradError, match="store .* was destroyed"):
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
    runtime.upload_params({"a": np.array([9, 9]), "b": np.zeros(3)})
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


# -- faults ---------------------------------------------------------------------------------


async def test_out_of_memory_names_the_tensor_and_the_plan() -> None:
    p = descent()
    device = await new_device()
    p.add("temp", "enormous", (device.limits.buffer_size // 4 + 1,))
    with pytest.raises(OutOfMemoryError, match=r"no room for 'enormous'.*whole plan takes [\d,]+ bytes"):
        await make(p, device)
    assert device.buffer_count == 0
    runtime = await make(descent(), device)
    assert await runtime.step({"x": X}) == LOSSES[0]
    device.close()


async def test_the_gpu_running_out_of_memory_names_the_tensor() -> None:
    """The error scope's report, which no machine gives on demand: here for buffers over 1 MiB."""
    from pyodide.code import run_js

    device = await new_device()
    undo = run_js("""
    (() => {
      const create = GPUDevice.prototype.createBuffer, pop = GPUDevice.prototype.popErrorScope;
      let failed = false;
      GPUDevice.prototype.createBuffer = function (d) {
        if (d.size > 2 ** 20) { failed = true; d = { ...d, size: 4 }; }
        return create.call(this, d);
      };
      GPUDevice.prototype.popErrorScope = async function () {
        const error = await pop.call(this);
        if (!failed) return error;
        failed = false;
        return new GPUOutOfMemoryError('no memory left');
      };
      return () => { GPUDevice.prototype.createBuffer = create; GPUDevice.prototype.popErrorScope = pop; };
    })()
    """)
    p = descent()
    p.add("temp", "big", (2**20,))
    p.add("temp", "small", (4,))
    try:
        with pytest.raises(OutOfMemoryError, match=r"no room for 'big' of 4\.0 MiB.*no memory left"):
            await make(p, device)
        assert device.buffer_count == 0
    finally:
        undo()
    runtime = await make(descent(), device)
    assert await runtime.step({"x": X}) == LOSSES[0]
    device.close()


async def test_a_lost_device_ends_every_pending_and_later_call() -> None:
    runtime = await make(descent())
    js_device = runtime.device.js_device
    await runtime.step({"x": X})
    pending = [
        asyncio.ensure_future(call)
        for call in (
            runtime.step({"x": X}),
            runtime.run({"x": X}),
            runtime.losses(),
            runtime.download_params(),
        )
    ]
    await asyncio.sleep(0)
    js_device.destroy()
    for result in await soon(asyncio.gather(*pending, return_exceptions=True)):
        assert isinstance(result, DeviceLostError | float), result
    assert isinstance(pending[-1].exception(), DeviceLostError)
    for call in (
        lambda: runtime.step({"x": X}),
        lambda: runtime.run({"x": X}),
        lambda: runtime.submit({"x": X}),
        lambda: runtime.profile({"x": X}),
        runtime.losses,
        runtime.download_params,
        runtime.download_param_grads,
        lambda: make(descent(), runtime.device),
        lambda: make(descent(), js_device),
    ):
        with pytest.raises(DeviceLostError, match="GPU device was lost.*snapshot or checkpoint"):
            await soon(call())
    with pytest.raises(DeviceLostError):
        runtime.upload_params({"w": X})
    runtime.destroy()
    again = await make(descent())
    assert await again.step({"x": X}) == LOSSES[0]
    again.destroy()


async def test_a_device_lost_while_a_map_is_pending() -> None:
    """The map promise itself never settles: only the loss of the device may end the wait."""
    from pyodide.code import run_js

    runtime = await make(descent())
    restore = run_js("""
    (() => {
      const map = GPUBuffer.prototype.mapAsync;
      GPUBuffer.prototype.mapAsync = () => new Promise(() => {});
      return () => { GPUBuffer.prototype.mapAsync = map; };
    })()
    """)
    try:
        pending = asyncio.ensure_future(runtime.step({"x": X}))
        await asyncio.sleep(0.05)
        assert not pending.done()
        runtime.device.js_device.destroy()
        with pytest.raises(DeviceLostError):
            await soon(pending)
    finally:
        restore()
    runtime.destroy()


async def test_a_cancelled_step_leaves_a_whole_step() -> None:
    runtime = await make(descent())
    assert await runtime.step({"x": X}) == LOSSES[0]
    task = asyncio.ensure_future(runtime.step({"x": X}))
    while not runtime._program._waiting:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await soon(runtime.step({"x": X})) == LOSSES[2]
    np.testing.assert_array_equal(await runtime.losses(), np.array(LOSSES[1:2], np.float32))
    assert (await runtime.download_states())["steps"] == 3
    runtime.destroy()


async def test_an_interrupt_in_the_callback_reaches_the_caller() -> None:
    """A keyboard interrupt strikes in whatever Python code runs next: while awaiting, in `wake`."""

    class Struck:
        def __init__(self, future: asyncio.Future[Any]) -> None:
            self.future, self.strikes = future, 1

        def done(self) -> bool:
            if self.strikes:
                self.strikes -= 1
                raise KeyboardInterrupt
            return self.future.done()

        def set_result(self, value: Any) -> None:
            self.future.set_result(value)

    runtime = await make(descent())

    async def attempt() -> str:
        try:
            await runtime.step({"x": X})
        except KeyboardInterrupt:
            return "interrupted"
        return "went on"

    task = asyncio.ensure_future(attempt())
    waiting = runtime._program._waiting
    while not waiting:
        await asyncio.sleep(0)
    ((ticket, future),) = waiting.items()
    waiting[ticket] = Struck(future)
    assert await soon(task) == "interrupted"
    assert await soon(runtime.step({"x": X})) == LOSSES[1]
    runtime.destroy()


async def test_a_lock_whose_holder_was_killed_is_taken_over() -> None:
    runtime = await make(descent())

    async def killed() -> None:
        await runtime._turns.__aenter__()  # an interrupt struck before the matching __aexit__

    await asyncio.ensure_future(killed())
    assert await soon(runtime.step({"x": X})) == LOSSES[0]
    assert not runtime._turns._lock.locked()
    runtime.destroy()


async def test_destroy_frees_everything_and_is_safe_twice() -> None:
    device = await new_device()
    runtime = await make(descent(), device)
    await runtime.run({"x": X})
    pending = asyncio.ensure_future(runtime.step({"x": X}))
    while not runtime._program._waiting:
        await asyncio.sleep(0)
    assert device.buffer_count == 7, "five tensors, the losses, the readback"
    with Spy() as spy:
        runtime.destroy()
        runtime.destroy()
        assert spy.read()[0]["destroy"] == 7
    assert device.buffer_count == 0
    with pytest.raises(TensorgradError, match="destroyed"):
        await soon(pending)
    for call in (
        lambda: runtime.step({"x": X}),
        lambda: runtime.run({"x": X}),
        runtime.losses,
        runtime.download,
    ):
        with pytest.raises(TensorgradError, match="this runtime was destroyed"):
            await soon(call())
    with pytest.raises(TensorgradError, match="this runtime was destroyed"):
        runtime.upload_params({"w": X})
    device.close()


async def test_a_forgotten_runtime_frees_its_memory() -> None:
    device = await new_device()
    runtime = await make(descent(), device)
    await runtime.step({"x": X})
    del runtime
    gc.collect()
    assert device.buffer_count == 0
    device.close()


# -- measures -------------------------------------------------------------------------------


async def test_profile_times_every_kernel() -> None:
    runtime = await make(descent())
    if "timestamp-query" not in runtime.limits.features:
        with pytest.raises(TensorgradError, match="timestamp-query"):
            await runtime.profile({"x": X})
        return
    times = await soon(runtime.profile({"x": X}))
    assert [(t.name, t.op_index) for t in times] == [("grad", 0), ("loss", 1), ("update", 2)]
    assert all(t.nanoseconds >= 0 for t in times)
    np.testing.assert_array_equal(await runtime.losses(), [LOSSES[0]])
    assert await runtime.step({"x": X}) == LOSSES[1], "a profiled step is a step"
    runtime.destroy()


@pytest.mark.webgpu(timeout=300)
async def test_a_thousand_steps_leave_nothing_behind() -> None:
    import pyodide_js

    device = await new_device()
    runtime = await make(descent(), device)
    tracker = pyodide_js._module
    tracker.enable_pyproxy_allocation_tracing()

    async def steps(count: int) -> None:
        for i in range(count):
            if i % 3 == 0:
                await runtime.submit({"x": X})
            elif i % 3 == 1:
                await runtime.run({"x": X})
            else:
                await runtime.step({"x": X})
        await runtime.losses()
        gc.collect()
        await asyncio.sleep(0)

    try:
        await steps(20)
        proxies, buffers, heap = (
            tracker.pyproxy_alloc_map.size,
            device.buffer_count,
            tracker.HEAPU8.byteLength,
        )
        with Spy() as spy:
            await steps(1_000)
            counts, _ = spy.read()
        assert tracker.pyproxy_alloc_map.size == proxies
        assert device.buffer_count == buffers
        assert counts["createBuffer"] == counts["destroy"], "reading the ring makes and frees one buffer"
        assert heap == tracker.HEAPU8.byteLength
    finally:
        tracker.disable_pyproxy_allocation_tracing()
    assert runtime._program._js.unread.size == 0
    device.close()
