"""The runtime without a browser: on a device of NumPy arrays whose kernels are Python functions."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from array_device import ArrayDevice
from runtime_plans import Plan
from tensorgrad.device.convert import as_array, from_bytes, to_bytes
from tensorgrad.dtypes import bool_, f16, f32, i32, u32
from tensorgrad.errors import InputError, NoDeviceError, OutOfMemoryError, TensorgradError
from tensorgrad.plan import KernelSpec
from tensorgrad.runtime import Runtime, Store, create_runtime


def add(x: np.ndarray, w: np.ndarray, loss: np.ndarray) -> None:
    w += x
    loss[0] = w.sum()


def adding() -> tuple[Plan, ArrayDevice]:
    """A step adds the input to the parameter; its loss is the parameter's sum."""
    p = Plan()
    p.add("input", "x", (2,))
    p.add("param", "w", (2,))
    p.add("output", "loss")
    p.kernel("add", "", 2, "x", "w:w", "loss:w", source="add")
    return p, ArrayDevice({"add": add})


def make(p: Plan, device: ArrayDevice | None = None, store: Store | None = None) -> Runtime:
    return asyncio.run(create_runtime(p.plan, p.kernels, device=device, store=store))


X = np.array([1, 2], np.float32)


def test_importing_needs_no_browser() -> None:
    code = "import tensorgrad.runtime, tensorgrad.device.webgpu, sys; sys.exit('js' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_asking_for_a_device_without_a_browser() -> None:
    p, _ = adding()
    with pytest.raises(NoDeviceError, match=rf"(?s)does not run in a browser.*device='numpy'.*\n  at {__file__}"):
        make(p)


def test_steps_and_losses() -> None:
    p, device = adding()
    runtime = make(p, device)

    async def go() -> None:
        assert await runtime.step({"x": X}) == 3.0
        await runtime.submit({"x": X})
        await runtime.submit({"x": X * 2})
        assert (await runtime.run({"x": X}))["loss"] == 15.0
        np.testing.assert_array_equal(await runtime.losses(), np.array([6, 12], np.float32))
        assert (await runtime.losses()).shape == (0,)

    asyncio.run(go())


async def test_many_steps_on_batches_of_the_device() -> None:
    p, device = adding()
    p.add("input", "row", (2,))
    runtime = await create_runtime(p.plan, p.kernels, device=device)
    data = np.arange(6, dtype=np.float32).reshape(3, 2)
    batches = await runtime.upload_batches({"x": data}, 3)
    losses = await runtime.run_steps(batches, 1, 4, {"row": np.zeros((4, 2), np.float32)})
    assert losses.tolist() == np.cumsum(data.sum(1)[[1, 2, 0, 1]]).tolist()
    before = {handle: memory.copy() for handle, memory in device.memory.items()}
    running = asyncio.ensure_future(runtime.run_steps(batches, 0, 9, {"row": np.ones((9, 2), np.float32)}))
    await asyncio.sleep(0)  # it waits for room for nine rows
    batches.destroy()
    with pytest.raises(InputError, match="batches were destroyed"):
        await running
    for handle in {handle for handle in before if device.labels[handle] in ("w", "x", "loss")}:
        np.testing.assert_array_equal(device.memory[handle], before[handle])


def test_calls_at_once_take_turns_in_order() -> None:
    p, device = adding()
    runtime = make(p, device)

    async def go() -> list[float]:
        return await asyncio.gather(*(runtime.step({"x": X * i}) for i in range(5)))

    assert asyncio.run(go()) == [0, 3, 9, 18, 30]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "missing inputs 'x'; expected 'x'"),
        ({"x": X, "y": X}, "unknown inputs 'y'"),
        ({"x": np.ones(3)}, r"input 'x' has shape \[3\], expected f32\[2\]"),
        ({"x": np.ones(2, np.int32)}, r"input 'x' has dtype int32, expected f32\[2\]; .*astype\(np.float32\)"),
        ({"x": "text"}, "input 'x'"),
        ({"x": [[1], [2, 3]]}, "input 'x' is not an array"),
    ],
)
def test_a_wrong_input_is_refused_before_the_step(inputs: dict[str, Any], message: str) -> None:
    p, device = adding()
    runtime = make(p, device)
    with pytest.raises(InputError, match=message):
        asyncio.run(runtime.step(inputs))
    assert device.log == []
    assert asyncio.run(runtime.step({"x": X})) == 3.0


def test_kernels_without_source_or_threads_are_left_out() -> None:
    p, device = adding()
    p.kernels += [KernelSpec("view", 1, "", (), 5), KernelSpec("empty", 2, "nowhere", (), 0)]
    runtime = make(p, device)
    asyncio.run(runtime.step({"x": X}))
    assert device.log == ["add"]
    assert [time.name for time in asyncio.run(runtime.profile({"x": X}))] == ["add"]


def test_parameters_go_up_only_when_all_of_them_fit() -> None:
    p, device = adding()
    p.add("param", "b", (3,))
    runtime = make(p, device)
    good = {"w": np.ones(2), "b": np.ones(3)}
    for params, strict, message in (
        ({"w": np.ones(2)}, True, "missing parameters 'b'"),
        (good | {"c": 1}, True, "unknown parameters 'c'"),
        ({"c": 1}, False, "unknown parameters 'c'"),
        (good | {"b": np.ones(4)}, True, r"param 'b' has shape \[4\], expected f32\[3\]"),
    ):
        with pytest.raises(InputError, match=message):
            runtime.upload_params(params, strict=strict)
    assert device.log == []
    runtime.upload_params(good)
    runtime.upload_params({"w": np.full(2, 5.0)}, strict=False)
    got = asyncio.run(runtime.download_params())
    assert (got["w"].tolist(), got["b"].tolist()) == ([5, 5], [1, 1, 1])


def test_states_and_constants_are_filled() -> None:
    p, device = adding()
    p.add("state", "s", (2,), i32, -1.9)
    p.add("state", "zero", (2,))
    p.add("const", "c", (3,), f16, np.array([1, 2, 3], np.float16))
    runtime = make(p, device)
    states = asyncio.run(runtime.download_states())
    assert {name: value.tolist() for name, value in states.items()} == {"s": [-1, -1], "zero": [0, 0]}
    assert device.log == ["write s", "write c"], "fresh memory is zero already"
    runtime.upload_states({"s": [7, 8]}, strict=False)
    assert asyncio.run(runtime.download(["s"]))["s"].tolist() == [7, 8]


def test_gradients() -> None:
    p, device = adding()
    runtime = make(p, device)
    with pytest.raises(TensorgradError, match="keep_grads=True"):
        asyncio.run(runtime.download_param_grads())
    p.add("grad", "w.grad", (2,))
    assert asyncio.run(make(p, device).download_param_grads())["w"].tolist() == [0, 0]


def test_writebacks_within_an_arena_go_through_a_spare_buffer() -> None:
    p, device = adding()
    p.arenas["s"] = 512
    p.add("state", "a", (2,), initial=3.0, arena="s", offset=0)
    p.add("state", "b", (2,), arena="s", offset=256)
    p.writeback("a", "b")
    runtime = make(p, device)
    asyncio.run(runtime.step({"x": X}))
    assert asyncio.run(runtime.download(["b"]))["b"].tolist() == [3, 3]


def test_a_store_is_shared() -> None:
    p, device = adding()
    store = Store(device)
    first = make(p, store=store)
    first.upload_params({"w": np.ones(2)})
    second = make(p, store=store)
    assert asyncio.run(second.step({"x": X})) == 5.0
    assert asyncio.run(first.step({"x": X})) == 8.0
    first.destroy()
    assert asyncio.run(second.step({"x": X})) == 11.0
    assert ("w" in store, store.nbytes) == (True, 8)
    store.destroy()
    assert "w" not in {device.labels[handle] for handle in device.memory}
    with pytest.raises(TensorgradError, match=r"store .* destroyed"):
        asyncio.run(second.step({"x": X}))


def test_a_store_on_another_device_or_of_another_shape() -> None:
    p, device = adding()
    store = Store(device)
    make(p, store=store)
    with pytest.raises(InputError, match="another device"):
        make(p, device=ArrayDevice(), store=store)
    other = Plan()
    other.add("param", "w", (2,), i32)
    with pytest.raises(InputError, match=r"holds 'w' as f32\[2\], the plan wants i32\[2\]"):
        make(other, store=store)


def test_arenas_that_differ_are_refused() -> None:
    def plan(size: int, offset: int, name: str = "b") -> Plan:
        p = Plan()
        p.arenas["w"] = size
        p.add("param", "a", (2,), arena="w")
        p.add("param", name, (2,), arena="w", offset=offset)
        return p

    store = Store(ArrayDevice())
    make(plan(1024, 256), store=store)
    make(plan(1024, 256), store=store)
    with pytest.raises(InputError, match="arena 'w' has 1,024 bytes, the plan's 768"):
        make(plan(768, 256), store=store)
    with pytest.raises(InputError, match="holds 'b' elsewhere"):
        make(plan(1024, 512), store=store)
    with pytest.raises(InputError, match="arena 'w' has no param 'c'"):
        make(plan(1024, 512, "c"), store=store)


def test_a_failure_leaves_nothing_behind() -> None:
    p, device = adding()
    p.kernels.append(KernelSpec("bad", 1, "unknown", (), 1))
    store = Store(device)
    with pytest.raises(TensorgradError, match="no kernel"):
        make(p, store=store)
    assert (device.memory, store.tensors) == ({}, {})
    p.add("temp", "huge", (10**6,))
    with pytest.raises(OutOfMemoryError, match=r"no room for 'huge'\. The whole plan takes 4,000,020 bytes"):
        make(p, store=store)
    assert device.memory == {}


def test_destroy_frees_what_it_owns_and_later_calls_say_so() -> None:
    p, device = adding()
    runtime = make(p, device)
    runtime.destroy()
    runtime.destroy()
    assert device.memory == {}
    assert device.closed == 0, "a given device is not ours"
    for call in (
        lambda: runtime.step({"x": X}),
        lambda: runtime.run({"x": X}),
        lambda: runtime.submit({"x": X}),
        lambda: runtime.profile({"x": X}),
        runtime.losses,
        runtime.download,
    ):
        with pytest.raises(TensorgradError, match="runtime was destroyed"):
            asyncio.run(call())
    assert "destroyed" in repr(runtime)


def test_without_a_loss() -> None:
    p = Plan()
    p.add("output", "y")
    runtime = make(p, ArrayDevice())
    with pytest.raises(TensorgradError, match="no output named 'loss'"):
        asyncio.run(runtime.step({}))
    assert asyncio.run(runtime.run({}))["y"].shape == ()


@pytest.mark.parametrize(
    ("value", "dtype", "stored"),
    [
        ([True, False, True], bool_, np.uint32),
        ([1.5, -2, 65504], f16, np.float16),
        ([0, 2**32 - 1, 7], u32, np.uint32),
        ([1.5, np.inf, -0.0], f32, np.float32),
    ],
)
def test_bytes_and_back(value: list[Any], dtype: Any, stored: type) -> None:
    array = as_array("x", np.array(value, dtype.numpy), (3,), dtype)
    nbytes = -(-3 * dtype.itemsize // 4) * 4
    data = to_bytes(array, dtype, nbytes)
    assert data.nbytes == nbytes
    np.testing.assert_array_equal(data[: 3 * dtype.itemsize].view(stored), np.array(value).astype(stored))
    back = from_bytes(data, (3,), dtype)
    assert back.dtype == dtype.numpy
    np.testing.assert_array_equal(back, array)


def test_numbers_convert_where_nothing_is_lost() -> None:
    assert as_array("x", [1, 2], (2,), f32).dtype == np.float32
    assert as_array("x", np.array([0.5, 1e300]), (2,), f32).tolist() == [0.5, np.inf]
    assert as_array("x", np.uint8(200), (), i32) == 200
    assert as_array("x", 3, (), i32).dtype == np.int32
    assert as_array("x", [], (0,), i32).dtype == np.int32
    assert as_array("x", memoryview(b"ab"), (2,), i32).tolist() == [97, 98]
    for value, dtype, message in (
        ([0.5], i32, "dtype float64, expected i32"),
        ([-1], u32, "holds -1, which u32 cannot store"),
        ([2**31], i32, r"holds 2147483648, which i32 cannot store \(-2147483648 to 2147483647\)"),
        ([1], bool_, r"expected bool\[1\]; convert it with .astype\(bool\)"),
        (np.ones(1, bool), f32, "dtype bool"),
    ):
        with pytest.raises(InputError, match=message):
            as_array("x", value, (1,), dtype)
