"""`train.check()`: sound steps pass, the first wrong kernel is named, and what counts as rounding."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from inspected import BATCH, compiled, lowered, weights
from models import CharGPT, characters, next_token_loss
from tensorgrad import backend, optim
from tensorgrad.device import interpret
from tensorgrad.device.base import Limits
from tensorgrad.dtypes import from_numpy
from tensorgrad.graph import TensorType, Value
from tensorgrad.inspect import reference
from tensorgrad.inspect.apart import apart
from tensorgrad.lower.expr import expr
from tensorgrad.lower.kernel import Store
from tensorgrad.lower.lowering import Lowered, lower
from tensorgrad.passes import optimize
from tensorgrad.wgsl.generate import generate


@pytest.mark.parametrize("device", ["numpy", "interpret"])
def test_a_sound_step_passes_and_nothing_changes(device: str) -> None:
    train = compiled(device)
    asyncio.run(train.step(**BATCH))
    before = weights(train)
    report = asyncio.run(train.check(**BATCH))
    assert report.kernels == len(train.kernels)
    assert report.values == sum(len(k.writes) for k in train.kernels)
    assert 0 <= report.worst[1] < 1
    assert "on no GPU" in str(report)
    after = weights(train)
    assert before.keys() == after.keys()
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array, err_msg=name)


def corrupt_store(low: Lowered, index: int) -> None:
    """The kernel's first store negates."""
    kernel = low.kernels[index]
    first = kernel.stores[0]
    op = "not" if first.expr.dtype is tg.bool_ else "neg"
    kernel.stores[0] = Store(first.value, first.index, expr(op, (first.expr,), first.expr.dtype))


@pytest.mark.parametrize("index", [0, 2, 4, 7, 8])
def test_the_first_corrupted_kernel_is_named(monkeypatch: pytest.MonkeyPatch, index: int) -> None:
    sound = backend.lower

    def broken(*args: Any, **options: Any) -> Lowered:
        low = sound(*args, **options)
        for at in {index, len(low.kernels) - 1}:
            corrupt_store(low, at)
        return low

    monkeypatch.setattr(backend, "lower", broken)
    train = compiled()
    before = weights(train)
    with pytest.raises(tg.CheckError) as caught:
        asyncio.run(train.check(**BATCH))
    error = caught.value
    assert error.kernel is not None
    assert error.difference is not None
    assert error.kernel.index == index
    assert error.difference.got == pytest.approx(-error.difference.expected)
    assert f"kernel {index} of {len(train.kernels)}" in str(error)
    assert "inspected.py" in str(error)
    assert error.kernel.formula.splitlines()[-1] in str(error)
    assert "lowering or fusion" in str(error)
    for name, array in before.items():
        np.testing.assert_array_equal(weights(train)[name], array, err_msg=name)


def test_a_transformer_passes() -> None:
    model = CharGPT(layers=1, width=16, heads=2, context=8, vocabulary=11)
    specs = {"x": tg.i32[2, 8], "y": tg.i32[2, 8]}
    train = asyncio.run(tg.compile(model, next_token_loss, optim.AdamW(), specs, device="interpret"))
    x, y = characters(2, 8, 11)
    assert asyncio.run(train.check(x=x, y=y)).kernels == len(train.kernels)


def test_a_predictor_is_inspected_once_it_was_called() -> None:
    train = compiled()
    predict = asyncio.run(train.attach(lambda model, x: tg.softmax(model(x)), {"x": tg.f32[None, 20]}))
    with pytest.raises(tg.InputError, match="call it once"):
        print(predict.kernels)
    asyncio.run(predict(x=BATCH["x"]))
    assert predict.kernels[0].space[1] == 8
    assert "output" in str(predict.memory)
    assert "= exp(" in str(predict.graph)
    report = asyncio.run(predict.check(x=BATCH["x"][:3]))
    assert report.kernels == len(predict.kernels)
    assert predict.kernels[0].space[1] == 3, "the program that was used last"


def test_a_check_wants_inputs_that_fit() -> None:
    train = compiled()
    with pytest.raises(tg.InputError, match="shape"):
        asyncio.run(train.check(x=BATCH["x"][:4], y=BATCH["y"]))


# The tolerance -------------------------------------------------------------------------------------


def judged(fn: Any, inputs: dict[str, np.ndarray], change: Any) -> reference.Judged:
    """What is said of a one-kernel program whose result `change` has altered."""

    def traced() -> tg.Tensor:
        return fn(*(tg.tensor_input(n, a.shape, from_numpy(a.dtype)) for n, a in inputs.items()))

    graph = optimize(tg.trace(traced))
    low = lower(graph, {"0": graph.outputs[0]})
    assert len(low.kernels) == 1
    buffers = interpret.run(low, inputs)
    out = low.kernels[0].writes[0]
    got = interpret.result(low, buffers, out, low.memory.where[out]).copy()

    def read(value: Value) -> np.ndarray:
        return inputs[low.graph.node(value).attrs["name"]]

    return reference.judge(low.graph, low.kernels[0], read, {out: change(got)})


X = np.random.default_rng(2).normal(size=(64, 32)).astype(np.float32)


def test_rounding_passes_and_a_thousandth_does_not() -> None:
    assert judged(lambda x: tg.softmax(x), {"x": X}, lambda a: a * np.float32(1 + 1e-6)).difference is None
    found = judged(lambda x: tg.softmax(x), {"x": X}, lambda a: a * np.float32(1.001)).difference
    assert found is not None
    assert found.count == found.size == X.size


def test_one_element_of_many_is_found_with_its_place() -> None:
    def spoil(a: np.ndarray) -> np.ndarray:
        a[5, 7] += 0.01
        return a

    found = judged(lambda x: x * 2.0 + 1.0, {"x": X}, spoil).difference
    assert found is not None
    assert (found.index, found.count) == ((5, 7), 1)
    assert found.got == pytest.approx(found.expected + 0.01, rel=1e-3)


def test_small_elements_beside_huge_ones_count() -> None:
    x = np.where(np.arange(64) < 16, np.float32(-1e9), np.float32(1e-3)).astype(np.float32)
    found = judged(lambda x: x * 3.0, {"x": x}, lambda a: np.where(a > 0, 2 * a, a)).difference
    assert found is not None
    assert found.count == 48


def test_cancellation_is_no_fault() -> None:
    big = np.full((64,), 1e6, np.float32) + np.arange(64, dtype=np.float32)

    # both roundings of a difference of nearly equal numbers are right
    def off(a: np.ndarray) -> np.ndarray:
        return a + np.float32(0.03)

    fn = lambda x, y: (x * 1.1) - (y * 1.1)  # noqa: E731
    assert judged(fn, {"x": big, "y": big + 1}, off).difference is None
    small = {"x": big / 1e6, "y": big / 1e6 + 1}
    assert judged(fn, small, off).difference is not None


def test_a_step_at_a_computed_number_may_go_either_way() -> None:
    x = np.full((64,), 0.1, np.float32)
    fn = lambda x, y: (x * 3.0 < y) * 1.0  # noqa: E731
    near, far = np.full((64,), np.float32(0.1) * np.float32(3)), np.full((64,), 0.5, np.float32)
    assert judged(fn, {"x": x, "y": near.astype(np.float32)}, lambda a: 1 - a).difference is None
    assert judged(fn, {"x": x, "y": far}, lambda a: 1 - a).difference is not None


def test_nan_and_infinity_are_numbers_to_agree_on() -> None:
    x = np.array([1, np.inf, -np.inf, np.nan, 3e38], np.float32)
    fn = lambda x: x * 2.0  # noqa: E731
    assert judged(fn, {"x": x}, lambda a: a).difference is None
    for place, wrong in ((0, np.nan), (1, 1.0), (2, np.inf), (3, 0.0), (4, 3e38)):

        def spoil(a: np.ndarray, place: int = place, wrong: float = wrong) -> np.ndarray:
            a[place] = wrong
            return a

        found = judged(fn, {"x": x}, spoil).difference
        assert found is not None, (place, wrong)
        assert found.index == (place,)


def test_whole_numbers_agree_exactly() -> None:
    x = np.arange(50, dtype=np.int32)
    fn = lambda x: x * 1_000_003  # noqa: E731
    assert judged(fn, {"x": x}, lambda a: a).difference is None
    found = judged(fn, {"x": x}, lambda a: a + (np.arange(50) == 49)).difference
    assert found is not None
    assert found.index == (49,)


# Every value in a buffer of its own ------------------------------------------------------------------


def test_apart_no_two_values_share_a_buffer() -> None:
    model = CharGPT(layers=1, width=32, heads=2, context=16, vocabulary=20)
    specs = {"x": tg.i32[2, 16], "y": tg.i32[2, 16]}
    train = asyncio.run(tg.compile(model, next_token_loss, optim.AdamW(), specs, device="interpret"))
    low = lowered(train)
    specs_ = generate(low, Limits())
    copy = apart(low, specs_)
    pooled = {b.id for b in low.memory.plan.buffers if b.kind == "temp" and b.arena is None}
    owner: dict[int, Value] = {}
    for kernel, spec in zip(low.kernels, copy.kernels, strict=True):
        for value in kernel.writes:
            place = copy.plan.outputs[copy.outputs[value]]
            assert owner.setdefault(place, value) == value
            buffer = copy.plan.buffers[place]
            if low.memory.where[value] in pooled:
                assert TensorType(buffer.shape, buffer.dtype) == low.graph.type(value)
        assert not pooled & {b.buffer for b in spec.bindings}
    assert set(low.memory.plan.outputs) <= set(copy.plan.outputs)
    assert [s.wgsl for s in copy.kernels] == [s.wgsl for s in specs_]
