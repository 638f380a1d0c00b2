"""Mixed precision: what is rounded, how the loss is scaled, and what happens where f16 has no room."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import half_cases
import tensorgrad as tg
from models import CharGPT, characters, next_token_loss
from tensorgrad import nn, ops, optim
from tensorgrad.backend import WebGPU
from tensorgrad.cache.key import digest
from tensorgrad.device.base import Limits
from tensorgrad.optim.scaling import INITIAL, INTERVAL
from tensorgrad.passes import autocast, cse, dce, simplify
from tensorgrad.program import Recipe
from tensorgrad.state import State
from tensorgrad.step import step_recipe
from tensorgrad.structure import Structure
from tensorgrad.tensor import Tensor
from tensorgrad.trace import tensor_input, trace
from training import SPECS, Net, assert_same, batch, line, loss_fn, start

DEVICES = ["numpy", "interpret"]
HALF = 2.0**-11
"""How far rounding to f16 moves a number, at most and relatively."""


def lines(text: str) -> list[str]:
    return [" ".join(line.split("#")[0].split()) for line in text.strip().splitlines()]


# What is rounded ------------------------------------------------------------------------------------


def test_factors_are_rounded_once_below_their_views_and_a_bias_gradient_adds_up_rounded_ones() -> None:
    def fn() -> list[Tensor]:
        x, g = tensor_input("x", (2, 3, 4)), tensor_input("g", (6, 5))
        return [ops.relu(x).reshape(6, 4).T @ g, g.sum(0), g.sum(1), g @ g.T]

    graph = dce(cse(simplify(trace(fn))))
    assert lines(str(dce(cse(autocast(graph))))) == lines("""
        %0: f32[2, 3, 4] = input x
        %1: f32[6, 5] = input g
        %2: f32[] = const 0.0
        %3: f32[2, 3, 4] = broadcast_to(%2)
        %4: bool[2, 3, 4] = less_equal(%0, %3)
        %5: f32[2, 3, 4] = where(%4, %3, %0)
        %6: f16[2, 3, 4] = cast(%5)
        %7: f32[2, 3, 4] = cast(%6)
        %8: f32[6, 4] = reshape(%7)
        %9: f32[4, 6] = permute(%8, perm=[1, 0])
        %10: f16[6, 5] = cast(%1)
        %11: f32[6, 5] = cast(%10)
        %12: f32[4, 5] = matmul(%9, %11)
        %13: f32[5] = sum(%11, axes=[0])
        %14: f32[6] = sum(%11, axes=[1])
        %15: f32[5, 6] = permute(%11, perm=[1, 0])
        %16: f32[6, 6] = matmul(%11, %15)
        return %12, %13, %14, %16
    """)


def test_rounding_what_is_rounded_changes_nothing() -> None:
    def fn() -> Tensor:
        x = tensor_input("x", (3, 3), tg.f16)
        return x.astype(tg.f32).astype(tg.f16).astype(tg.f32) @ x.astype(tg.f32)

    once = dce(cse(simplify(autocast(trace(fn)))))
    assert lines(str(once)) == lines("""
        %0: f16[3, 3] = input x
        %1: f32[3, 3] = cast(%0)
        %2: f32[3, 3] = matmul(%1, %1)
        return %2
    """)


@pytest.mark.parametrize("device", DEVICES)
async def test_a_product_is_that_of_the_rounded_numbers_added_up_in_f32(device: str) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(3, 2)).astype(np.float32), rng.normal(size=(2, 2)).astype(np.float32)
    train = await line(lambda m, x: tg.mean(tg.capture("y", m(x)) ** 2), device=device, dtype=tg.f16)
    await train.load_state_dict({"weight": w, "bias": np.zeros(2, np.float32)})
    result = await train.step(x=x)
    halves = [a.astype(np.float16).astype(np.float64) for a in (x, w)]
    np.testing.assert_allclose(result.captures["y"], halves[0] @ halves[1].T, rtol=1e-6)
    assert np.abs(result.captures["y"] - x.astype(np.float64) @ w.T).max() > 1e-5  # they were rounded
    assert not result.skipped


async def gpt(device: str, dtype: Any, steps: int) -> tuple[list[float], tg.Train]:
    nn.init.manual_seed(0)
    x, y = characters(4, 16, 11)
    specs = {"x": tg.i32[x.shape], "y": tg.i32[y.shape]}
    model = CharGPT(2, 32, 2, 16, 11)
    train = await tg.compile(model, next_token_loss, optim.AdamW(1e-2), specs, device=device, dtype=dtype, seed=1)
    return [(await train.step(x=x, y=y)).loss for _ in range(steps)], train


async def test_a_gpt_learns_as_in_f32_and_alike_on_the_oracles() -> None:
    full, _ = await gpt("numpy", tg.f32, 20)
    half, _ = await gpt("numpy", tg.f16, 20)
    formulas, _ = await gpt("interpret", tg.f16, 3)
    assert half[-1] < 0.75 * half[0]
    # a step's rounding moves a loss by some parts of a thousand
    np.testing.assert_allclose(half, full, rtol=2e-2)
    # f32 sums in another order, which now and then round to the other f16
    np.testing.assert_allclose(formulas, half[:3], rtol=1e-4)


async def test_what_a_gelu_feeds_to_a_matmul_is_stored_as_f16_only() -> None:
    _, train = await gpt("interpret", tg.f16, 1)
    graph, lowered = train.built.graph, train.built.lowered
    assert lowered is not None
    stored = {v: graph.type(v).dtype for kernel in lowered.kernels for v in kernel.writes}
    factors = set()
    for kernel in lowered.kernels:
        if kernel.matmul:
            for e in (kernel.matmul.a, kernel.matmul.b):
                factors |= {node.data[0] for node in _walk(e) if node.op == "load"}
    assert factors
    assert {stored[v] for v in factors} == {tg.f16}
    ups = [n for n in graph.nodes if n.op == "cast" and n.type == ((4, 16, 128), tg.f16)]
    assert len(ups) == 4  # of each layer GELU's result, and the gradient of what it was given
    assert all(n.inputs[0] not in stored for n in ups)


PICKS: tuple[tuple[int, Any], ...] = (
    (4, lambda h: tg.max(h, 1)),
    (8, lambda h: tg.max_pool1d(h, 2).reshape(5, 8)),
    (4, lambda h: tg.maximum(h[:, 0], h[:, 1])),
)


@pytest.mark.parametrize(("width", "pick"), PICKS, ids=["max", "pool", "maximum"])
async def test_an_extreme_that_is_a_factor_still_finds_where_it_came_from(width: int, pick: Any) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            nn.init.manual_seed(0)
            self.scale = nn.Parameter(np.linspace(0.5, 1.5, 16).reshape(4, 4))
            self.out = nn.Linear(width, 3)

    def loss(model: Model, x: Tensor) -> Tensor:
        h = tg.tanh(x * model.scale)
        return tg.mean(model.out(pick(h)) ** 2) + tg.mean(h) * 0

    found = {}
    for dtype in (tg.f32, tg.f16):
        train = await tg.compile(
            Model(), loss, optim.SGD(0.1), {"x": tg.f32[5, 4, 4]}, device="numpy", dtype=dtype, keep_grads=True
        )
        await train.step(x=np.random.default_rng(0).normal(size=(5, 4, 4)).astype(np.float32))
        found[dtype] = (await train.gradients())["scale"]
    assert np.abs(found[tg.f32]).max() > 1e-3
    np.testing.assert_allclose(found[tg.f16], found[tg.f32], rtol=2e-2, atol=1e-4)


def _walk(e: Any) -> Any:
    from tensorgrad.lower.expr import walk

    return walk(e)


async def test_the_report_of_check_holds_for_it() -> None:
    _, train = await gpt("interpret", tg.f16, 1)
    assert train.built.lowered is not None
    assert (await train.check()).kernels == len(train.built.lowered.kernels)  # it raises where one differs


# The scale ----------------------------------------------------------------------------------------------


async def states(train: tg.Train) -> dict[str, np.ndarray]:
    return (await train.state_dict())["optimizer"]


def weighted(model: Net, x: Tensor, t: Tensor) -> Tensor:
    """Its gradient grows with the inputs."""
    return tg.cross_entropy(model(x), t) * tg.mean(tg.abs(x))


WILD, TAME = np.full((3, 2), 300, np.float32), np.ones((3, 2), np.float32)
"""Inputs for `squares`: of the first, 65,536 times the gradient of the outputs has no room in f16."""


@pytest.mark.parametrize("device", DEVICES)
async def test_a_gradient_without_room_changes_nothing_but_the_scale(device: str) -> None:
    nn.init.manual_seed(1)
    train = await tg.compile(Net(), weighted, optim.AdamW(0.05), SPECS, device=device, seed=3, dtype=tg.f16)
    await train.step(batch(0))
    before = await train.state_dict()
    wild = {**batch(1), "x": batch(1)["x"] * 100}
    result = await train.step(wild)
    after = await train.state_dict()
    assert np.isfinite(result.loss)
    assert result.skipped
    assert train.state.steps == 1
    assert after["optimizer"].pop("optim.scale") == before["optimizer"].pop("optim.scale") / 2 == INITIAL / 2
    assert (before["optimizer"].pop("optim.good_steps"), after["optimizer"].pop("optim.good_steps")) == (1, 0)
    assert_same(after, before, counters=False)  # the model's own buffer among it
    assert not (await train.step(batch(2))).skipped
    assert train.state.steps == 2


async def test_an_infinite_loss_halves_the_scale_too_and_is_what_raises() -> None:
    train = await line(dtype=tg.f16, nonfinite="raise")
    with pytest.raises(tg.NonFiniteError, match="the loss of step 1 is"):
        await train.step(x=np.full((3, 2), 1e30, np.float32))
    assert (await states(train))["optim.scale"] == INITIAL / 2
    assert (await train.step(x=WILD)).skipped  # a gradient alone is all in a day's work
    assert (await states(train))["optim.scale"] == INITIAL / 4


async def test_queued_and_many_steps_count_what_was_changed() -> None:
    train = await line(dtype=tg.f16, optimizer=optim.SGD(1e-6))
    for x in (TAME, WILD, TAME, WILD):
        await train.submit(x=x)
    assert np.isfinite(await train.losses()).all()
    assert train.state.steps == 2
    losses = await train.run_steps(4, {"x": np.stack([WILD * 100, TAME])})
    assert np.isfinite(losses).all()
    assert train.state.steps == 4
    assert (await states(train))["optim.steps"] == 4
    assert (await states(train))["optim.scale"] == INITIAL / 16


@pytest.mark.parametrize("device", DEVICES)
async def test_the_scale_doubles_after_so_many_good_steps(device: str) -> None:
    train = await line(dtype=tg.f16, device=device)
    state = await train.state_dict()
    state["optimizer"]["optim.good_steps"] = np.int32(INTERVAL - 2)
    await train.load_state_dict(state)
    scales = []
    for _ in range(3):
        await train.step(x=np.ones((3, 2), np.float32))
        found = await states(train)
        scales.append((float(found["optim.scale"]), int(found["optim.good_steps"])))
    assert scales == [(INITIAL, INTERVAL - 1), (2 * INITIAL, 0), (2 * INITIAL, 1)]


async def test_a_scale_beyond_f32_stays() -> None:
    train = await line(lambda m, x: tg.mean(m(x)) * 1e-37, dtype=tg.f16)
    state = await train.state_dict()
    state["optimizer"] |= {"optim.good_steps": np.int32(INTERVAL - 1), "optim.scale": np.float32(2.0**127)}
    await train.load_state_dict(state)
    assert not (await train.step(x=TAME)).skipped
    assert (await states(train))["optim.scale"] == 2.0**127


@pytest.mark.parametrize("options", [{}, {"keep_grads": True}], ids=["packed", "kept"])
async def test_gradients_are_without_the_scale_before_they_are_clipped(options: Any) -> None:
    moved = {}
    for dtype in (tg.f32, tg.f16):
        train = await line(optimizer=optim.SGD(0.1, clip_norm=0.5), dtype=dtype, **options)
        before = (await train.state_dict())["model"]
        await train.step(x=np.linspace(-2, 2, 6, dtype=np.float32).reshape(3, 2))
        after = (await train.state_dict())["model"]
        moved[dtype] = {name: after[name] - before[name] for name in after}
        if options:
            kept = await train.gradients()
            assert 0.1 < np.abs(kept["weight"]).max() < 10
    norm = np.sqrt(sum((d**2).sum() for d in moved[tg.f16].values()))
    np.testing.assert_allclose(norm, 0.05, rtol=1e-3)
    for name, change in moved[tg.f32].items():
        np.testing.assert_allclose(moved[tg.f16][name], change, rtol=8 * HALF, atol=1e-4)


async def test_small_gradients_survive() -> None:
    # 1e-6 / 6 by the mean is below f16's smallest number, and its weights' gradients would be 0
    train = await line(lambda m, x: tg.mean(m(x)) * 1e-7, optimizer=optim.SGD(1.0), dtype=tg.f16, keep_grads=True)
    await train.step(x=np.ones((3, 2), np.float32))
    np.testing.assert_allclose((await train.gradients())["weight"], 0.5e-7, rtol=4 * HALF)


async def test_parameters_of_f16_have_their_gradients_without_the_scale() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            self.a = nn.Parameter(np.ones((3, 5), np.float16))
            self.b = nn.Parameter(np.ones(5, np.float32))

    def loss(model: Mixed, x: Tensor) -> Tensor:
        return tg.mean((x @ model.a.astype(tg.f32)) * model.b)

    train = await tg.compile(Mixed(), loss, optim.SGD(1.0), {"x": tg.f32[7, 3]}, device="interpret", dtype=tg.f16)
    await train.step(x=np.ones((7, 3), np.float32))
    model = (await train.state_dict())["model"]
    assert model["a"].dtype == np.float16
    np.testing.assert_allclose(model["a"], 0.8, rtol=HALF)
    np.testing.assert_allclose(model["b"], 0.4, rtol=1e-6)


@pytest.mark.parametrize("case", half_cases.CASES, ids=lambda case: case.__name__)
async def test_programs_with_f16_under_interpret(case: Any) -> None:
    await case("interpret")


# What it is kept from, and errors -------------------------------------------------------------------------


async def test_weights_and_states_stay_f32_and_a_training_goes_on_from_its_state() -> None:
    train = await start("numpy", dtype=tg.f16)
    await train.step(batch(0))
    state = await train.state_dict()
    assert {a.dtype for part in ("model", "optimizer") for a in state[part].values()} <= {
        np.dtype(np.float32),
        np.dtype(np.int32),
    }
    expected = (await train.step(batch(1))).loss
    other = await start("numpy", dtype=tg.f16, init=2)
    await other.load_state_dict(state)
    assert (await other.step(batch(1))).loss == expected


async def test_a_state_of_f32_training_goes_on_in_mixed_precision_and_back() -> None:
    full = await start("numpy")
    await full.step(batch(0))
    half = await start("numpy", dtype=tg.f16, init=2)
    with pytest.raises(tg.CheckpointError, match=r"optim\.scale"):
        await half.load_state_dict(await full.state_dict())
    keys = await half.load_state_dict(await full.state_dict(), strict=False)
    assert sorted(keys.missing_keys) == ["optim.good_steps", "optim.scale"]
    assert half.state.steps == 1
    wanted = (await full.step(batch(1))).loss
    np.testing.assert_allclose((await half.step(batch(1))).loss, wanted, rtol=1e-2)
    assert (await full.load_state_dict(await half.state_dict(), strict=False)).unexpected_keys


def recipe(model: nn.Module, fn: Any, state: State, **options: bool) -> Recipe:
    return step_recipe(model, fn, optim.SGD(0.1), Structure(SPECS), state, **options)(state.spans("optim"))


def test_the_cache_tells_mixed_precision_from_f32() -> None:
    backend, model = gpu("shader-f16"), Net()
    state = State(model, backend, 0)
    recipes = [recipe(model, loss_fn, state, half=half) for half in (False, True, True)]
    full, half, again = (digest(one, "webgpu", backend.limits) for one in recipes)
    assert full != half == again


async def test_no_other_dtype() -> None:
    with pytest.raises(tg.InputError, match=r"dtype is tg.f32, or tg.f16 for mixed precision, got i32"):
        await line(dtype=tg.i32)


def gpu(*features: str) -> WebGPU:
    limits = Limits(features=frozenset(features), adapter="a card")
    return WebGPU(SimpleNamespace(limits=limits, lost=None, free=lambda buffers: None, begin=lambda kernel: None))


async def test_a_gpu_without_f16_says_so() -> None:
    for options, fn in (
        ({"half": True}, loss_fn),
        ({}, lambda m, x, t: loss_fn(m, x.astype(tg.f16).astype(tg.f32), t)),
    ):
        backend, model = gpu(), Net()
        made = recipe(model, fn, State(model, backend, 0), **options)
        with pytest.raises(tg.UnsupportedError, match=r"'shader-f16', which this GPU does not offer \(a card\)"):
            await backend.compile(made)


async def test_kernels_of_f16_enable_it() -> None:
    backend = gpu("shader-f16")
    model = Net()
    made = recipe(model, loss_fn, State(model, backend, 0), half=True)
    program = (await backend.compile(made)).program
    assert program is not None
    texts = [kernel.wgsl for kernel in program.kernels]
    assert any("vec4<f16>" in text for text in texts)
    for text in texts:
        assert ("f16" in text.replace("enable f16;", "")) == ("enable f16;" in text)
