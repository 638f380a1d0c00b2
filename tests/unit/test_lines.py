"""Scans and sorts: their kernels in every shape on a second device, fusion, errors, and what is built on them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from native import backend, native
from on_device import verify_lines
from programs import lowered, on_interpret, on_numpy, program
from tensorgrad import nn, optim
from tensorgrad.autodiff import append_grad
from tensorgrad.cache.text import decode, encode
from tensorgrad.compiled import Compiled
from tensorgrad.device.base import Limits
from tensorgrad.lower.kernel import Kernel
from tensorgrad.program import Recipe
from tensorgrad.wgsl import lines
from tensorgrad.wgsl.generate import generate
from tensorgrad.wgsl.rows import Shape

RNG = np.random.default_rng(0)
ODD: Any = "odd"


def whole(*shape: int) -> np.ndarray:
    """Of their sums no digit is lost, and there are ties."""
    return RNG.integers(-4, 5, shape).astype(np.float32)


# Kernels ------------------------------------------------------------------------------------


def _shapes(kernel: Kernel) -> list[Shape]:
    """As a GPU and a CPU would choose, and others: few lanes, neighbours or apart, and several rounds of short runs."""
    found = [lines.choose(kernel, Limits(software=software)) for software in (False, True)]
    if kernel.kind == "scan":
        found += [Shape(4, 8, False, unroll=2), Shape(2, 32, True, unroll=1)]
    return list(dict.fromkeys(found))


def _all_scans(x: tg.Tensor) -> list[tg.Tensor]:
    signs = tg.where(x > 0, 1.0, -1.0)
    found = [tg.cumsum(x, 1), tg.cumsum(x[:, ::-1] * 2.0, 0) + x, tg.cumprod(signs, 1), tg.cummax(x, 1).values]
    found += [tg.cummin(x.astype(tg.i32), 0).values, tg.cumsum(x > 0, 0), tg.linear_scan(signs, x, 1)]
    return [*found, *append_grad(tg.sum(found[0] * 2.0), [x])]


def _some_scans(x: tg.Tensor) -> list[tg.Tensor]:
    return [tg.cumsum(x, 1) * 2.0, tg.linear_scan(tg.where(x > 0, 1.0, -1.0), x, 1, reverse=True)]


def _all_sorts(x: tg.Tensor) -> list[tg.Tensor]:
    down = tg.sort(x, 0, descending=True)
    return [*tg.sort(x), *down, tg.argsort(x.astype(tg.i32) * 3), tg.argsort(x > 0, 0), down.values * 2.0 + x]


@pytest.mark.parametrize(
    ("make", "rows", "columns"),
    [
        (_all_scans, 3, 37),
        *((_some_scans, rows, n) for rows, n in ((1, 1), (3, 255), (2, 256), (70, 257))),
        *((_all_sorts, rows, n) for rows, n in ((1, 1), (3, 255), (2, 256), (70, 7))),
    ],
)
def test_every_shape_of_kernel_gives_every_element_once(make: Callable[..., Any], rows: int, columns: int) -> None:
    names = tg.sync(verify_lines(native(), program(make, [whole(rows, columns)]), _shapes))
    assert len(names) >= (4 if make is _all_sorts else 8)


@pytest.mark.parametrize("software", [False, True], ids=["GPU", "CPU"])
def test_long_rows(software: bool) -> None:
    """More elements than a workgroup or a lane takes at once."""
    x = whole(1, 65_537)

    def fn(x: tg.Tensor) -> tuple[tg.Tensor, ...]:
        return tg.cumsum(x, 1), *tg.sort(x), tg.topk(x, 3, largest=False).indices, tg.cummax(x, 1).indices

    total, values, order, first, places = tg.sync(tg.jit(fn, device=backend(software=software))(x))
    np.testing.assert_array_equal(total, np.cumsum(x, 1))
    np.testing.assert_array_equal(order, np.argsort(x, 1, kind="stable"))
    np.testing.assert_array_equal(values, np.sort(x, 1))
    np.testing.assert_array_equal(first, order[:, :3])
    top = np.maximum.accumulate(x, 1)
    np.testing.assert_array_equal(places, np.maximum.accumulate(np.where(x == top, np.arange(x.size), 0), 1))


def test_a_sum_of_millions() -> None:
    x = RNG.integers(-1000, 1000, 4_000_000).astype(np.int32)
    found = tg.sync(tg.jit(lambda x: tg.cumsum(x, 0), device=backend())(x))
    np.testing.assert_array_equal(found, np.cumsum(x, dtype=np.int32))


# Fusion -------------------------------------------------------------------------------------


def test_what_surrounds_a_scan_is_computed_in_its_kernel() -> None:
    p = program(lambda x: tg.cumsum(tg.exp(x), 1).T * 2.0 + 1.0, [whole(3, 5)])
    (kernel,) = lowered(p).kernels
    assert (kernel.kind, len(kernel.stores)) == ("scan", 1)
    assert [k.kind for k in lowered(p, fuse=False).kernels] == ["scan", "map"]
    assert str(lowered(p)).splitlines()[1:] == [
        "  acc[r, c] = cumsum_c(exp(x0[c + r*5]))",
        "  0[c*3 + r] = acc * 2 + 1",
    ]


def test_a_sort_stores_its_values_and_puts_the_gradient_back() -> None:
    def fn(x: tg.Tensor) -> list[tg.Tensor]:
        values, indices = tg.sort(x)
        return [values, indices, *append_grad(tg.sum(values * np.arange(7.0)), [x])]

    p = program(fn, [whole(3, 7)])
    low = lowered(p)
    assert [k.kind for k in low.kernels] == ["sort"]
    assert str(low).splitlines()[-1] == "  2[r*7 + u32(acc)] = const4[c]"
    for a, b in zip(on_interpret(p, low), on_numpy(p), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_state_is_not_sorted_in_its_own_buffer() -> None:
    def fn() -> list[tg.Tensor]:
        state = tg.state_input("s", (2, 5), tg.i32)
        tg.update_state(state, tg.cumsum(state, 1) + 0)
        other = tg.state_input("t", (2, 5))
        tg.update_state(other, tg.sort(other).values)
        return [tg.sum(state)]

    states = {"s": whole(2, 5).astype(np.int32), "t": whole(2, 5)}
    p = program(fn, [], states)
    low = lowered(p)
    assert not any(k.inplace for k in low.kernels if k.line)
    _, s, t = on_interpret(p, low)
    np.testing.assert_array_equal(s, np.cumsum(states["s"], 1))
    np.testing.assert_array_equal(t, np.sort(states["t"]))


def test_a_long_sort_is_a_kernel_a_doubling() -> None:
    low = lowered(program(lambda x: tg.argsort(x), [whole(5, 1000)]))
    assert [k.kind for k in low.kernels] == ["sort", "map", "map"]
    text = str(low)
    assert len(text) < 8_000
    assert "order(" in text


def test_one_workgroup_takes_several_short_rows_and_many_lanes_a_long_one() -> None:
    def shape(fn: Callable[..., Any], *size: int, limits: Limits | None = None) -> Shape:
        kernel = next(k for k in lowered(program(fn, [whole(*size)])).kernels if k.line)
        return lines.choose(kernel, limits or Limits())

    assert shape(tg.argsort, 4000, 8) == Shape(64, 4, True)
    assert shape(tg.argsort, 4000, 200) == Shape(2, 128, True)
    assert shape(tg.argsort, 4000, 200, limits=Limits(software=True)).lanes == 1
    assert shape(lambda x: tg.cumsum(x, 1), 10, 4000).lanes == 256
    assert not shape(lambda x: tg.cumsum(x, 0), 400, 100).adjacent
    assert shape(lambda x: tg.cumsum(x, 1), 10, 4000, limits=Limits(software=True)) == Shape(1, 1, False)


def test_one_lane_has_no_barriers_and_no_workgroup_memory() -> None:
    low = lowered(program(lambda x: [tg.cumsum(x, 1), tg.argsort(x)], [whole(3, 100)]))
    for spec in generate(low, Limits(software=True)):
        assert "workgroupBarrier" not in spec.wgsl
        assert "var<workgroup>" not in spec.wgsl
    assert all("workgroupBarrier" in spec.wgsl for spec in generate(low, Limits()))


# Debugging, profiles and the cache -------------------------------------------------------------


class Ranked(nn.Module):
    """A loss through a scan, a sort and a random order."""

    def __init__(self) -> None:
        nn.init.manual_seed(0)
        self.layer = nn.Linear(5, 300)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        y = tg.permutation(self.layer(x), 0)
        return tg.cumsum(tg.sort(y).values, 1).square().mean() + tg.topk(y, 3).values.sum() * 1e-3


def _train(device: Any) -> tg.Train:
    return tg.sync(tg.compile(Ranked(), lambda m, x: m(x), optim.SGD(0.01), {"x": tg.f32[8, 5]}, device=device, seed=3))


BATCH = RNG.normal(size=(8, 5)).astype(np.float32)


@pytest.mark.parametrize("device", ["numpy", "interpret", "native"])
def test_a_training_step_can_be_looked_at(device: str) -> None:
    train = _train(backend(software=True) if device == "native" else device)
    losses = [tg.sync(train.step(x=BATCH)).loss for _ in range(3)]
    wanted = _train("numpy")
    np.testing.assert_allclose(losses, [tg.sync(wanted.step(x=BATCH)).loss for _ in range(3)], rtol=1e-5)
    report = asyncio.run(train.check(x=BATCH))
    assert report.kernels == len(train.kernels)
    for view in train.kernels:
        assert str(view)
        assert view.why
        assert view._repr_html_()
    assert any("argsort_c" in str(view) for view in train.kernels)
    assert str(train.memory)
    if device != "native":
        assert "scan" in str(asyncio.run(train.profile(x=BATCH))) or device == "numpy"


def test_a_plan_that_was_written_as_text_computes_the_same() -> None:
    device = backend(software=True)
    x = whole(3, 300)
    p = program(lambda x: [*tg.sort(x), tg.cumsum(x, 1)], [x])
    compiled = asyncio.run(device.compile(Recipe(lambda limits: p.graph, tuple(p.outputs), p.graph)))
    assert compiled.program
    assert {kernel.name.split()[0] for kernel in compiled.program.kernels} == {"scan", "sort", "map"}
    again = decode(encode(compiled.program))
    assert encode(again) == encode(compiled.program)
    found = []
    for ready in (compiled, Compiled(lambda tuning: compiled.made, again)):
        built = asyncio.run(device.build(ready, device.store(), {}))
        results = asyncio.run(built.executor.run(p.values))
        found.append([results[name] for name in p.outputs])
        built.executor.destroy()
    for a, b, want in zip(*found, on_numpy(p), strict=True):
        np.testing.assert_array_equal(a, want)
        np.testing.assert_array_equal(b, want)


# What is built on them ---------------------------------------------------------------------------


def run(fn: Callable[..., Any], *arrays: Any, device: str = "numpy") -> Any:
    return tg.sync(tg.jit(fn, device=device)(*arrays))


def test_dtypes() -> None:
    def dtype(fn: Callable[[tg.Tensor], tg.Tensor], of: tg.DType) -> tg.DType:
        graph = tg.trace(lambda: fn(tg.tensor_input("x", (2, 3), of)))
        return graph.type(graph.outputs[0]).dtype

    for of, sums in ((tg.f32, tg.f32), (tg.f16, tg.f16), (tg.i32, tg.i32), (tg.u32, tg.u32), (tg.bool_, tg.i32)):
        assert dtype(lambda x: x.cumsum(0), of) is sums
        assert dtype(lambda x: x.cumprod(0), of) is sums
        assert dtype(lambda x: x.cummax(0).values, of) is of
        assert dtype(lambda x: x.sort(0).values, of) is of
        assert dtype(lambda x: x.sort(0).indices, of) is tg.i32
    assert dtype(lambda x: x.cumsum(0, dtype=tg.i32), tg.f32) is tg.i32
    found = run(lambda x: tg.cumsum(x, 0, dtype=tg.f32), np.array([2**30, 2**30, 2**30], np.int32))
    np.testing.assert_array_equal(found, np.array([2**30, 2**31, 3 * 2**30], np.float32))


def test_places_in_what_a_sorter_sorts() -> None:
    x, sought = whole(3, 9), whole(3, 4)
    found = run(lambda x, v: tg.searchsorted(x, v, sorter=tg.argsort(x), out_int32=True), x, sought)
    np.testing.assert_array_equal(found, [np.searchsorted(np.sort(a), b) for a, b in zip(x, sought, strict=True)])


def test_long_rows_of_bools_and_integers_are_filled_up_with_what_comes_last() -> None:
    bools, most = RNG.random(700) < 0.5, np.full(700, 2**31 - 1, np.int32)
    most[::3] = -(2**31)
    for x in (bools, most, most.astype(np.uint32)):
        up, down = run(lambda x: [tg.argsort(x), tg.argsort(x, descending=True)], x, device="interpret")
        np.testing.assert_array_equal(up, np.argsort(x, kind="stable"))
        np.testing.assert_array_equal(down, np.argsort(~x, kind="stable"))


def test_scalars() -> None:
    found = run(lambda x: [x.cumsum(0), x.sort()[0], x.argsort(), x.cummax(0)[1], x.logcumsumexp(0)], np.float32(2.5))
    np.testing.assert_array_equal(found, [2.5, 2.5, 0, 0, 2.5])
    assert all(np.shape(a) == () for a in found)


def test_a_half_sum_does_not_stop_growing() -> None:
    x = np.ones(5000, np.float16)
    assert run(lambda x: tg.cumsum(x, 0), x)[-1] == 5000


@pytest.mark.parametrize(
    ("fn", "error", "match"),
    [
        (lambda x: tg.cumsum(x), TypeError, "cumsum runs along one axis, got None"),
        (lambda x: tg.cumsum(x, 2), tg.ShapeError, "cumsum: axis 2 is out of range for a tensor with 2 axes"),
        (lambda x: tg.cummax(x, along=1), TypeError, "cummax: unexpected keyword 'along'"),
        (lambda x: tg.linear_scan(x, x[:2, :3]), tg.ShapeError, "do not broadcast"),
        (lambda x: tg.linear_scan(x > 0, x > 1), tg.DtypeError, "linear_scan is not defined for bool"),
        (lambda x: tg.logcumsumexp(x > 0, 1), tg.DtypeError, "logcumsumexp needs a floating-point tensor"),
        (lambda x: tg.topk(x, 6), tg.ShapeError, r"topk: there are no 6 elements along axis 1 of f32\[3, 5\]"),
        (lambda x: tg.kthvalue(x, 0), tg.ShapeError, "kthvalue: there is no element number 0 along axis 1"),
        (lambda x: tg.median(x[:, :0], 1), tg.ShapeError, "median: there is no median of no elements"),
        (lambda x: tg.quantile(x, 1.5), tg.InputError, "quantile: q must be from 0 to 1, got 1.5"),
        (
            lambda x: tg.quantile(x, 0.5, interpolation=ODD),
            tg.InputError,
            "interpolation is linear, lower, .* got 'odd'",
        ),
        (lambda x: tg.searchsorted(x, x[:2]), tg.ShapeError, r"leading axes of the sequence \[3, 5\]"),
        (lambda x: tg.searchsorted(x[0], x, side=ODD), tg.InputError, "side is left or right, got 'odd'"),
        (lambda x: tg.multinomial(x, 6), tg.ShapeError, "6 different positions cannot be drawn from 5"),
        (lambda x: tg.diff(x, -1), tg.ShapeError, "diff: takes differences a number of times"),
        (lambda x: tg.randperm(-1), tg.ShapeError, "randperm: there are no -1 numbers"),
    ],
)
def test_errors(fn: Callable[..., Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        tg.trace(lambda: fn(tg.tensor_input("x", (3, 5))))


def test_gradients_of_a_long_product_with_zeros() -> None:
    x = np.where(RNG.random(40_000) < 1e-4, np.float32(0), np.float32(1))
    x[5], x[30_000] = 0, 0
    first, second = np.flatnonzero(x == 0)[:2]
    grad = run(tg.grad(lambda x: tg.cumprod(x, 0).sum()), x)
    # before the first zero each factor counts in all products up to it; at the zero, in those up to the next one
    np.testing.assert_array_equal(grad[:first], first - np.arange(first))
    assert grad[first] == second - first
    assert not grad[first + 1 :].any()


def test_the_gradient_of_a_long_running_maximum_goes_to_the_last_of_equals() -> None:
    x = np.round(RNG.normal(size=40_000) * 3).astype(np.float32)
    values, indices = run(lambda x: tg.cummax(x, 0), x)
    np.testing.assert_array_equal(values, np.maximum.accumulate(x))
    grad = run(tg.grad(lambda x: tg.cummax(x, 0).values.sum()), x)
    np.testing.assert_array_equal(grad, np.bincount(indices, minlength=x.size))
