"""The runtime on WebGPU: how fast kernels are, which text of them runs, and what a thousand steps leave."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import numpy as np
import pytest

from runtime_browser import LOSSES, Spy, X, make, new_device, soon
from runtime_plans import Plan, descent, wgsl
from tensorgrad.errors import TensorgradError
from tensorgrad.wgsl.unroll import loop

pytestmark = pytest.mark.webgpu


async def test_a_loop_is_written_out_while_steps_go_on() -> None:
    p = Plan()
    p.add("input", "x", (4,))
    p.add("output", "loss", (4,))
    body = "\n".join(["var c = x[i];", *loop(3, ["let p = x[kk];"], ["c += p;"]), "loss[i] = c;"])
    p.kernel("sums", "", 4, "x", "loss:w", source=wgsl(body, 4, "x", "loss:w"))
    device = await new_device()
    with Spy() as spy:
        runtime = await make(p, device)
        assert await runtime.step({"x": X}) == 14.0
        counts, _ = spy.read()
        assert counts["createComputePipelineAsync"] == 1
        assert await runtime.step({"x": X}) == 14.0  # what runs again is worth it
        await runtime._program.ready()
        counts, _ = spy.read()
    assert counts["createComputePipelineAsync"] == 1
    js = runtime._program._js
    assert js.list[0].pipeline.js_id != js.pipelines[0].js_id
    assert await runtime.step({"x": X}) == 14.0
    device.close()


def large_input(size: int) -> Plan:
    """The loss is the input's first number plus its last."""
    p = Plan()
    p.add("input", "x", (size,))
    p.add("input", "small")
    p.add("output", "loss")
    p.kernel("loss", f"loss[0] = x[0] + x[{size - 1}] + small[0];", 1, "x", "small", "loss:w")
    return p


def numbered(size: int, i: int) -> dict[str, Any]:
    x = np.zeros(size, np.float32)
    x[0], x[-1] = i, i / 2
    return {"x": x, "small": np.float32(1000)}


@pytest.mark.parametrize("size", [16_384, 65_537, 500_000, 5_000_000])
async def test_a_large_input_goes_by_way_of_mapped_buffers(size: int) -> None:
    most = 2**24 // (4 * size)  # of them; none for what is larger than all may be together
    device = await new_device()
    runtime = await make(large_input(size), device)
    held = device.buffer_count
    assert await runtime.step(numbered(size, 2)) == 1003
    await asyncio.sleep(0.1)  # until the buffer that this step has asked for is mapped
    with Spy() as spy:
        assert await runtime.step(numbered(size, 4)) == 1006
        counts, _ = spy.read()
    assert counts["writeBuffer"] == 2 - (most > 0)
    assert counts["copyBufferToBuffer"] == 2 + (most > 0), "the input, and the loss to ring and to readback"
    assert counts["submit"] == 1
    for i in range(40):  # many under way, each with numbers of its own
        await runtime.submit(numbered(size, 2 * i))
    np.testing.assert_array_equal(await runtime.losses(), [1000 + 3 * i for i in range(40)])
    assert device.buffer_count - held - 1 <= most, "one of the buffers is the readback"
    runtime.destroy()
    assert device.buffer_count == 0
    device.close()


async def test_without_mapped_buffers_inputs_are_written_as_ever() -> None:
    from pyodide.code import run_js

    undo = run_js("""(() => {
      const original = GPUBuffer.prototype.mapAsync;
      GPUBuffer.prototype.mapAsync = function (mode, ...rest) {
        return mode === GPUMapMode.WRITE ? Promise.reject(new Error('no memory')) : original.call(this, mode, ...rest);
      };
      return () => { GPUBuffer.prototype.mapAsync = original; };
    })()""")
    try:
        runtime = await make(large_input(20_000))
        for i in range(4):
            assert await runtime.step(numbered(20_000, 2 * i)) == 1000 + 3 * i
        runtime.destroy()
    finally:
        undo()


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
    assert len(await soon(runtime.profile({"x": X}, repeats=2))) == 3
    assert await runtime.step({"x": X}) < LOSSES[3], "the update ran twice, with one gradient"
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
        assert not {"createBuffer", "destroy"} & counts.keys()
        assert heap == tracker.HEAPU8.byteLength
    finally:
        tracker.disable_pyproxy_allocation_tracing()
    assert runtime._program._js.unread.size == 0
    device.close()
