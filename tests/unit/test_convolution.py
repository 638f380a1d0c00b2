"""Convolutions, pools and batch norm: messages, statistics, and what a GPU is given to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from programs import for_many_cores, lowered, on_interpret, on_numpy, program
from reference.agree import Normalized, statistics_agree
from reference.stored import pytorch
from rows_windows import CONVOLUTIONS
from steps import compiled, step
from table import Case, weighted
from tensorgrad import nn, ops, optim
from tensorgrad.device.base import Limits
from tensorgrad.errors import DtypeError, ShapeError
from tensorgrad.graph import Value
from tensorgrad.lower.kernel import Kernel
from tensorgrad.lower.lowering import Lowered
from tensorgrad.wgsl.matmul import generate
from tensorgrad.wgsl.matmul_access import affine

GPU = Limits(subgroup_size=32)
NORM = nn.BatchNorm2d(3)
HALF: Any = 1.5
NOTHING: Any = None
PAIRS: Any = ((0, 2), 1)


def traced(fn: Callable[..., Any], *shapes: tuple[int, ...]) -> Any:
    return tg.trace(lambda: fn(*(tg.tensor_input(f"x{n}", shape) for n, shape in enumerate(shapes))))


# Messages ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fn", "shapes", "message"),
    [
        (ops.conv2d, ((2, 3, 8, 8), (4, 5, 3, 3)), r"input f32\[2, 3, 8, 8\] has 3 channels.*takes 5 in each of 1"),
        (ops.conv2d, ((2, 3, 2, 8), (4, 3, 3, 3)), r"kernel extends over 3 places along axis 2.*\(2 \+ 0 \+ 0\)"),
        (ops.conv2d, ((3, 8), (4, 3, 3, 3)), r"with 3 or 4 axes and a weight with 4, got f32\[3, 8\]"),
        (lambda x, w: ops.conv2d(x, w, stride=0), ((2, 3, 8, 8), (4, 3, 3, 3)), r"stride must be at least 1"),
        (lambda x, w: ops.conv2d(x, w, stride=(1, 2, 3)), ((2, 3, 8, 8), (4, 3, 3, 3)), r"3 numbers for 2 axes"),
        (lambda x, w: ops.conv2d(x, w, padding=(1,)), ((2, 3, 8, 8), (4, 3, 3, 3)), r"1 entries for 2 axes"),
        (lambda x, w: ops.conv2d(x, w, padding=((1, 2, 3), 1)), ((2, 3, 8, 8), (4, 3, 3, 3)), r"3 numbers for 2"),
        (lambda x, w: ops.conv2d(x, w, stride=HALF), ((2, 3, 8, 8), (4, 3, 3, 3)), r"stride is made of.*got 1\.5"),
        (lambda x, w: ops.conv2d(x, w, padding=NOTHING), ((2, 3, 8, 8), (4, 3, 3, 3)), r"whole numbers, got None"),
        (lambda x, w: ops.conv2d(x, w, groups=HALF), ((2, 3, 8, 8), (4, 3, 3, 3)), r"groups is made of.*got 1\.5"),
        (
            lambda x, w: ops.conv2d(x, w, padding=(1, -1)),
            ((2, 3, 8, 8), (4, 3, 3, 3)),
            r"must not be negative, got \[\(1",
        ),
        (lambda x: tg.nn.functional.unfold(x, 2, padding=-1), ((1, 2, 8, 8),), r"unfold: padding must not be negative"),
        (lambda x, w: ops.conv2d(x, w, stride=2, padding="same"), ((2, 3, 8, 8), (4, 3, 3, 3)), r"a stride of 2 does"),
        (lambda x, w: ops.conv2d(x, w, padding="full"), ((2, 3, 8, 8), (4, 3, 3, 3)), r"'same' or 'valid', got 'full'"),
        (lambda x, w: ops.conv2d(x, w, groups=3), ((2, 3, 8, 8), (4, 1, 3, 3)), r"3 groups do not divide the 4"),
        (lambda x, w, b: ops.conv2d(x, w, b), ((2, 3, 8, 8), (4, 3, 3, 3), (3,)), r"bias f32\[3\].*each of 4 outputs"),
        (lambda x: ops.max_pool2d(x, 3, padding=2), ((2, 8, 8),), r"from 0 to half of the kernel size 3, got 2"),
        (lambda x: ops.max_pool2d(x, 3, padding=PAIRS), ((2, 8, 8),), r"half of the kernel size 3, got 0 and 2"),
        (lambda x: ops.max_pool2d(x, HALF), ((2, 8, 8),), r"kernel_size is made of whole numbers, got 1\.5"),
        (lambda x: ops.avg_pool2d(x, 2, divisor_override=0), ((2, 8, 8),), r"divisor_override must not be 0"),
        (lambda x: ops.avg_pool2d(x, 9), ((2, 8, 8),), r"kernel over 9 places does not fit"),
        (lambda x: ops.max_pool1d(x, 5, stride=1, ceil_mode=True), ((1, 2),), r"kernel over 5 places does not fit"),
        (lambda x: ops.adaptive_avg_pool2d(x, 0), ((2, 8, 8),), r"\[0, 0\] parts of the last axes of \[2, 8, 8\]"),
        (lambda x: ops.adaptive_avg_pool2d(x, HALF), ((2, 8, 8),), r"output_size is made of whole numbers"),
        (lambda x: ops.window(x, HALF), ((3,),), r"size is made of whole numbers, got 1\.5"),
        (lambda x: ops.window(x, 4), ((3,),), r"4 elements 1 apart extend over 4 places.*has 3"),
        (lambda x: ops.batch_norm(x, None, None), ((2, 3),), r"evaluation needs running_mean"),
        (lambda x: ops.batch_norm(x, None, None, training=True), ((1, 3),), r"one element a channel has no variance"),
        (lambda x, w: ops.batch_norm(x, None, None, w, training=True), ((2, 3), (2,)), r"weight f32\[2\].*3 channels"),
        (lambda x: NORM(x), ((2, 3, 4),), r"BatchNorm2d: needs an input with 4 axes"),
    ],
)
def test_what_does_not_fit_is_refused(fn: Any, shapes: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        traced(fn, *shapes)


def test_integers_are_refused() -> None:
    with pytest.raises(DtypeError, match="conv2d needs floating-point tensors"):
        tg.trace(lambda: ops.conv2d(np.ones((1, 1, 3, 3), np.int32), np.ones((1, 1, 2, 2), np.int32)))


def test_groups_that_do_not_divide_a_layer() -> None:
    with pytest.raises(ShapeError, match="Conv2d: 3 groups do not divide 4 channels and 6 outputs"):
        nn.Conv2d(4, 6, 3, groups=3)


def test_a_negative_kernel_is_refused_where_the_layer_is_made() -> None:
    with pytest.raises(ShapeError, match="Conv2d: kernel_size must not be negative, got -1"):
        nn.Conv2d(1, 2, -1)


@pytest.mark.parametrize("given", [{"padding": -1}, {"padding": (1, -1)}, {"stride": 0}, {"dilation": (0, 1)}])
def test_a_layers_steps_are_looked_at_where_it_is_made(given: dict[str, Any]) -> None:
    (name,) = given
    least = 0 if name == "padding" else 1
    with pytest.raises(ShapeError, match=rf"(?s)Conv2d: {name} must be {least} or more, got .*test_convolution\.py"):
        nn.Conv2d(3, 8, 3, **given)
    nn.Conv2d(3, 8, 3, 1, ((0, 1), 2))  # pairs, as the function takes them


@pytest.mark.parametrize(
    ("pool", "expected"),
    [  # PyTorch's numbers
        (lambda x: ops.max_pool1d(x, 3, ceil_mode=True), [[2.0]]),
        (lambda x: ops.max_pool1d(x, 5, ceil_mode=True), [[2.0]]),
        (lambda x: ops.avg_pool1d(x, 3, ceil_mode=True), [[1.5]]),
        (lambda x: ops.max_pool2d(x[..., None], 2, ceil_mode=True), [[[2.0]]]),
    ],
)
def test_a_window_that_ends_outside_may_be_larger_than_its_axis(pool: Any, expected: Any) -> None:
    x = np.array([[1.0, 2.0]], np.float32)
    assert tg.sync(tg.jit(pool, device="numpy")(x)).tolist() == expected
    assert tg.sync(tg.grad(lambda x: pool(x).sum(), device="numpy")(x)).sum() == 1


def test_numpys_whole_numbers_are_numbers() -> None:
    two: Any = np.int64(2)
    graph = traced(
        lambda x, w: ops.max_pool2d(ops.conv2d(x, w, stride=two, padding=(two, two)), two), (2, 3, 8, 8), (4, 3, 3, 3)
    )
    assert graph.type(graph.outputs[0]).shape == (2, 4, 2, 2)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(
    "shapes",
    [
        ((0, 3, 8, 8), (4, 3, 3, 3)),
        ((2, 0, 8, 8), (4, 0, 3, 3)),
        ((2, 3, 8, 8), (0, 3, 3, 3)),
        ((2, 3, 0, 8), (4, 3, 3, 3)),
    ],
    ids=["images", "channels", "outputs", "rows"],
)
def test_gradients_of_a_convolution_of_nothing(shapes: Any, stride: int) -> None:
    def gradients(x: tg.Tensor, w: tg.Tensor) -> list[tg.Tensor]:
        return tg.append_grad(ops.sum(ops.conv2d(x, w, stride=stride, padding=2) + 1.0), [x, w])

    p = program(gradients, [np.ones(shape, np.float32) for shape in shapes])
    for found in (on_numpy(p), on_interpret(p, lowered(p))):
        for array, shape in zip(found, shapes, strict=True):
            np.testing.assert_array_equal(array, np.zeros(shape, np.float32))


@pytest.mark.parametrize("dilation", [1, 2])
def test_the_padding_of_a_pool_gets_no_gradient(dilation: int) -> None:
    """As in PyTorch, a window without larger elements gives it to the first of its own."""

    def gradient(x: tg.Tensor) -> tg.Tensor:
        return tg.append_grad(ops.sum(ops.max_pool2d(x, 3, 2, 1, dilation)), [x])[0]

    image = np.full((2, 5, 5), -np.inf, np.float32)
    image[1, 2, 2] = 0.0
    wanted = np.zeros((2, 5, 5))
    if dilation == 1:
        wanted[0] = [[1, 1, 0, 1, 0], [1, 1, 0, 1, 0], [0, 0, 0, 0, 0], [1, 1, 0, 1, 0], [0, 0, 0, 0, 0]]
        wanted[1] = [[1, 1, 0, 1, 0], [1, 0, 0, 1, 0], [0, 0, 1, 0, 0], [1, 1, 0, 1, 0], [0, 0, 0, 0, 0]]
    else:
        wanted[:, 1, 1] = 4
    p = program(gradient, [image])
    for found in (on_numpy(p), on_interpret(p, lowered(p))):
        np.testing.assert_array_equal(found[0], wanted)


# Modules ------------------------------------------------------------------------------------------


def test_initial_values_as_pytorch() -> None:
    nn.init.manual_seed(3)
    layer = nn.Conv2d(50, 60, (4, 2), bias=True)
    assert layer.bias is not None
    for values in (layer.weight.numpy(), layer.bias.numpy()):
        assert 0.85 / 20 < abs(values).max() <= 1 / 20, "within 1 / sqrt(50 * 4 * 2)"
    norm = nn.BatchNorm1d(2)
    assert {name: a.tolist() for name, a in norm.state_dict().items()} == {
        "weight": [1, 1],
        "bias": [0, 0],
        "running_mean": [0, 0],
        "running_var": [1, 1],
        "num_batches_tracked": 0,
    }


@pytest.mark.parametrize("device", ["numpy", "interpret"])
@pytest.mark.parametrize("case", pytorch()["statistics"], ids=lambda case: case["name"])
def test_running_statistics_as_pytorch(case: dict[str, Any], device: str) -> None:
    tg.sync(statistics_agree(case, device))


class Twice(nn.Module):
    def __init__(self) -> None:
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        return self.norm(self.norm(x) * 2.0 + 1.0)


@pytest.mark.parametrize("device", ["numpy", "interpret"])
def test_a_layer_that_is_used_twice_moves_its_statistics_twice(device: str) -> None:
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    train = tg.sync(
        tg.compile(Normalized(Twice()), lambda m, x: m(x), optim.SGD(0.0), {"x": tg.f32[5, 3]}, device=device)
    )
    tg.sync(train.step(x=x))
    state = tg.sync(train.state_dict())["model"]
    second = (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5) * 2 + 1
    mean = 0.9 * (0.1 * x.mean(0)) + 0.1 * second.mean(0)
    var = 0.9 * (0.9 + 0.1 * x.var(0, ddof=1)) + 0.1 * second.var(0, ddof=1)
    np.testing.assert_allclose(state["inner.norm.running_mean"], mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(state["inner.norm.running_var"], var, rtol=1e-5)
    assert state["inner.norm.num_batches_tracked"] == 2


@pytest.mark.parametrize("device", ["numpy", "interpret"])
async def test_an_empty_batch_leaves_the_statistics_as_they_are(device: str) -> None:
    """As in PyTorch, which counts it all the same."""
    model = nn.Sequential(nn.BatchNorm1d(3), nn.BatchNorm1d(3))
    sums = await tg.compile(model, lambda m, x: tg.sum(m(x)), optim.SGD(0.1), {"x": tg.f32[0, 3]}, device=device)
    before = await sums.state_dict()
    assert (await sums.step(x=np.zeros((0, 3), np.float32))).loss == 0.0
    after = await sums.state_dict()
    assert after["optimizer"]["optim.steps"] == 1
    for name, array in before["model"].items():
        np.testing.assert_array_equal(after["model"][name], array + ("num_batches" in name), err_msg=name)


def test_a_frozen_layer_keeps_its_statistics() -> None:
    model = Normalized(nn.BatchNorm1d(3).eval())
    train = tg.sync(tg.compile(model, lambda m, x: m(x), optim.SGD(0.0), {"x": tg.f32[4, 3]}, device="numpy"))
    result = tg.sync(train.step(x=np.full((4, 3), 2.0)))
    np.testing.assert_allclose(result.captures["y"], 2.0, rtol=1e-5)
    assert not tg.sync(train.state_dict())["model"]["inner.running_mean"].any()


def test_two_losses_share_the_statistics() -> None:
    """What the first moves the second moves on."""
    specs = {"x": tg.f32[4, 3]}
    model = Normalized(nn.Sequential(nn.BatchNorm1d(3), nn.BatchNorm1d(3)))
    first = tg.sync(tg.compile(model, lambda m, x: m(x), optim.SGD(0.0), specs, device="interpret"))
    second = tg.sync(tg.compile(model, lambda m, x: m(x) * 2.0, optim.SGD(0.0), specs, state=first.state))
    x = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)
    tg.sync(first.step(x=x))
    tg.sync(second.step(x=x))
    state = tg.sync(first.state_dict())["model"]
    np.testing.assert_allclose(state["inner.0.running_mean"], 0.19 * x.mean(0), rtol=1e-5, atol=1e-7)
    assert state["inner.1.num_batches_tracked"] == 2


# What a GPU is given ------------------------------------------------------------------------------


def matmuls(low: Lowered) -> list[Kernel]:
    return [k for k in low.kernels if k.matmul]


@pytest.mark.parametrize("case", CONVOLUTIONS[0].cases, ids=lambda case: case.name)
def test_windows_are_read_in_place(case: Case) -> None:
    """Forward and for both gradients: every operand of a matmul is a load, perhaps behind comparisons."""

    def fn(*leaves: tg.Tensor) -> list[tg.Tensor]:
        return tg.append_grad(weighted(case.fn(*leaves)), leaves)

    low = lowered(program(fn, case.inputs))
    for kernel in matmuls(low):
        inner = kernel.matmul
        assert inner
        if kernel.size and inner.k.size:
            assert affine(inner.a, (inner.batch, inner.m, inner.k)), low.formula(kernel)
            assert affine(inner.b, (inner.batch, inner.k, inner.n)), low.formula(kernel)


def test_the_windows_of_a_convolution_are_compared_with_the_border_where_they_are_loaded() -> None:
    p = program(lambda x, w: ops.conv2d(x, w, padding=1), (np.zeros((2, 8, 6, 6), "f"), np.zeros((16, 8, 3, 3), "f")))
    (kernel,) = lowered(p).kernels
    text = generate(kernel, GPU).wgsl
    assert text.count("select(0.0, buf1[") == text.count("< 6u && ") > 0, "rows and columns, of every load"
    assert "fn b_at" not in text, "no element is computed from scratch"


def test_statistics_of_one_channel_are_two_kernels() -> None:
    """Both lie in one arena, and the variance reads the mean, which one kernel may not do while it writes there."""
    model, optimizer = nn.Sequential(nn.BatchNorm1d(1), nn.Linear(1, 2)), optim.SGD(0.1)
    specs = {"x": tg.f32[2048, 1], "y": tg.i32[2048]}
    low = compiled(model, lambda m, x, y: tg.cross_entropy(m(x), y), optimizer, specs, GPU).lowered
    places = {Value(n.id) for n in low.graph.nodes if n.op == "place" and "running" in n.attrs["slot"]}
    assert len(places) == 2
    assert all(not (places & set(k.writes) and places & k.loads().keys()) for k in low.kernels)
    reasons = [reason for value, reason in low.refused.items() if "arena" in reason]
    assert reasons == ["together with its reader it would read an arena and write to it"]


def test_a_small_network_stores_no_windows() -> None:
    low = step("MNIST CNN", GPU).lowered
    assert low.memory.plan.nbytes < 13e6, "the images' windows would be 11 MB more"


def test_batch_norm_in_a_residual_network() -> None:
    low = step("ResNet-18", GPU).lowered
    statistics = [k for k in low.kernels if any("of the batch" in low.name(v) for v in k.writes)]
    assert len(statistics) == 20, "a kernel a layer normalizes, and keeps the batch's statistics"
    assert sum("buffers.f32" in map(low.name, k.writes) for k in low.kernels) == 1, "all of them move at once"


def test_a_step_of_a_residual_network_is_the_same_in_kernels() -> None:
    """The step as a GPU gets it, long sums and matmuls cut in parts, against the graph as it was traced."""
    rng = np.random.default_rng(2)
    weights = [rng.normal(size=s).astype(np.float32) for s in ((8, 4, 3, 3), (8,), (8,), (8, 8, 3, 3), (8, 4, 1, 1))]

    def fn(x: tg.Tensor, w1: tg.Tensor, g: tg.Tensor, b: tg.Tensor, w2: tg.Tensor, wd: tg.Tensor) -> list[tg.Tensor]:
        h = tg.relu(ops.batch_norm(ops.conv2d(x, w1, stride=2, padding=1), None, None, g, b, True))
        y = tg.relu(ops.conv2d(h, w2, padding=1) + ops.conv2d(x, wd, stride=2))
        loss = (ops.max_pool2d(y, 2) * np.cos(np.arange(4 * 8 * 4)).reshape(4, 8, 2, 2)).sum()
        return [loss, *tg.append_grad(loss, [x, w1, g, b, w2, wd])]

    p = for_many_cores(program(fn, (rng.normal(size=(4, 4, 8, 8)).astype(np.float32), *weights)))
    for found, wanted in zip(on_interpret(p, lowered(p)), on_numpy(p, p.traced), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5 * float(np.abs(wanted).max()))
