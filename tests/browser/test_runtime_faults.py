"""Everything that can go wrong on WebGPU has its error, and leaves the runtime or the page usable."""

from __future__ import annotations

import asyncio
import gc

import pytest

from runtime_browser import LOSSES, Spy, X, make, new_device, soon
from runtime_plans import descent
from tensorgrad.errors import (
    DeviceLostError,
    NoDeviceError,
    OutOfMemoryError,
    ShaderError,
    TensorgradError,
)

pytestmark = pytest.mark.webgpu


# -- devices --------------------------------------------------------------------------------


async def test_without_navigator_gpu() -> None:
    from pyodide.code import run_js

    run_js("Object.defineProperty(navigator, 'gpu', { value: undefined, configurable: true })")
    try:
        with pytest.raises(NoDeviceError, match=r"navigator\.gpu is missing.*insecure origin.*device='numpy'"):
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
        import tensorgrad_replay

        assert load_helper() is tensorgrad_replay
        runtime = await make(descent())
        assert await runtime.step({"x": X}) == LOSSES[0]
        runtime.destroy()
    finally:
        pyodide_js.unregisterJsModule("tensorgrad_replay")
        load_helper.cache_clear()


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
      const device = GPUDevice.prototype, { createBuffer, pushErrorScope, popErrorScope } = device;
      const scopes = [];
      let failed = false;
      device.createBuffer = function (d) {
        if (d.size > 2 ** 20) failed = true;
        return createBuffer.call(this, d.size > 2 ** 20 ? { ...d, size: 4 } : d);
      };
      device.pushErrorScope = function (filter) {
        scopes.push(filter);
        pushErrorScope.call(this, filter);
      };
      device.popErrorScope = async function () {
        const report = scopes.pop() === 'out-of-memory' && failed;
        if (report) failed = false;
        const error = await popErrorScope.call(this);
        return report ? new GPUOutOfMemoryError('no memory left') : error;
      };
      return () => Object.assign(device, { createBuffer, pushErrorScope, popErrorScope });
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
        with pytest.raises(DeviceLostError, match=r"GPU device was lost.*snapshot or checkpoint"):
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
