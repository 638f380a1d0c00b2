"""The scalar functions on WebGPU: as accurate as stated, and right at the edges, with the browser's compiler."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from function_cases import CASES, A, B, Case, formula, integer_values, special_values
from tensorgrad.device.base import Bound, Dispatch, Recording, Slice
from tensorgrad.dtypes import DType, f32, i32, u32
from tensorgrad.lower.evaluate import evaluate
from tensorgrad.lower.expr import Expr, call, const, from_index, load
from tensorgrad.lower.functions import FUNCTIONS
from tensorgrad.lower.index import Var, dynamic, of_var
from tensorgrad.wgsl.expression import Body
from tensorgrad.wgsl.literal import stored_type

pytestmark = pytest.mark.webgpu


def shader(e: Expr, var: Var, inputs: list[DType]) -> str:
    body = Body(lambda value, index: f"b{value.node}[{index}]")
    body.bind(var, "i")
    body.store("out[i]", e)
    types = [stored_type(t) for t in inputs]
    lines = [f"@group(0) @binding({j}) var<storage, read> b{j}: array<{t}>;" for j, t in enumerate(types)]
    out = f"@group(0) @binding({len(inputs)}) var<storage, read_write> out: array<{stored_type(e.dtype)}>;"
    head = "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {"
    guard = f"  let i = id.x;\n  if (i >= {var.size}u) {{ return; }}"
    return "\n".join([*lines, out, *body.functions.values(), head, guard, body.text(), "}"])


async def run(device: Any, e: Expr, var: Var, arrays: list[np.ndarray], dtype: DType) -> np.ndarray:
    """The expression's values for every count of its variable, computed on the device."""
    sizes = [4 * a.size for a in arrays] + [4 * var.size]
    buffers = await device.alloc([(f"b{j}", n) for j, n in enumerate(sizes)])
    slices = [Slice(b, 0, n) for b, n in zip(buffers, sizes, strict=True)]
    for target, array in zip(slices, arrays, strict=False):
        device.write(target, array)
    bound = tuple(Bound(s, s is slices[-1]) for s in slices)
    dispatch = Dispatch("test", shader(e, var, [dtype] * len(arrays)), bound, (-(-var.size // 64), 1))
    program = await device.compile(Recording("test", (), (dispatch,)))
    (raw,) = await program.run((slices[-1],))
    program.close()
    device.free(buffers)
    return np.frombuffer(raw.tobytes(), e.dtype.storage).astype(e.dtype.numpy)


@pytest.fixture
def device_of() -> Any:
    from tensorgrad.device.webgpu import request_device

    return request_device


async def test_accuracy(device_of: Any) -> None:
    device = await device_of()
    wrong = []
    for case in CASES:
        wrong += await _missed(device, case)
    device.close()
    assert not wrong, "\n".join(wrong)


async def _missed(device: Any, case: Case) -> list[str]:
    e, var = formula(case.op, f32, 1, case.x.size)
    got = await run(device, e, var, [case.x], f32)
    exact = case.exact(case.x.astype(np.float64))
    bound = case.bound(exact, gpu=True)
    worst = int(np.argmax(np.abs(got - exact) - bound))
    if abs(got[worst] - exact[worst]) <= bound[worst]:
        return []
    return [f"{case.op}({case.x[worst]!r}) = {got[worst]!r}, not {exact[worst]!r}"]


async def test_special_values(device_of: Any) -> None:
    device = await device_of()
    wrong = []
    for what, e, var, arrays, expected in special_values():
        got = await run(device, e, var, arrays, f32)
        wrong += [
            f"{what}({', '.join(str(a[n]) for a in arrays)}) = {got[n]}, not {expected[n]}"
            for n in np.flatnonzero(~np.isclose(got, expected, rtol=2e-6, atol=1.2e-38, equal_nan=True))
        ]
    device.close()
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("dtype", [i32, u32], ids=str)
async def test_integers(device_of: Any, dtype: DType) -> None:
    device = await device_of()
    for what, e, var, arrays, expected in integer_values(dtype):
        got = await run(device, e, var, arrays, dtype)
        np.testing.assert_array_equal(got, expected, err_msg=what)
    device.close()


async def test_random_bits_are_the_interpreters(device_of: Any) -> None:
    device = await device_of()
    var = Var("i0", 4096)
    words = [const(n, u32) for n in (123, 456)]
    e = call(FUNCTIONS["threefry2x32"], *words, from_index(of_var(var)), const(7, u32))
    expected = evaluate(e, {var: np.arange(var.size)}, lambda value: np.zeros(0))
    np.testing.assert_array_equal(await run(device, e, var, [], u32), expected)
    device.close()


async def test_constants_that_wgsl_has_no_literal_for(device_of: Any) -> None:
    device = await device_of()
    var = Var("i0", 1)
    numbers: list[tuple[float, DType]] = [(np.inf, f32), (-np.inf, f32), (np.nan, f32), (1e-45, f32)]
    numbers += [(3.4028235e38, f32), (-0.0, f32), (-(2**31), i32), (-1, i32), (2**32 - 1, u32)]
    for number, dtype in numbers:
        got = await run(device, const(number, dtype), var, [], dtype)
        expected = np.array([number], dtype.numpy)
        # a device may flush the smallest floats to zero
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-38 if dtype is f32 else 0, err_msg=str(number))
    device.close()


async def test_a_load_decides_where_another_reads(device_of: Any) -> None:
    device = await device_of()
    var = Var("i0", 8)
    at = load(A, of_var(var), u32)
    e = load(B, dynamic(at, 8) * 1, u32)
    places = np.array([3, 1, 4, 1, 5, 2, 6, 0], np.uint32)
    stored = np.arange(8, dtype=np.uint32) * 11
    np.testing.assert_array_equal(await run(device, e, var, [places, stored], u32), stored[places])
    device.close()
