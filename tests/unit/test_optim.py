"""Optimizers, schedules and clipping against PyTorch's numbers, on the numpy device."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from reference.agree import optimizer_agrees
from reference.stored import array, arrays, f, pytorch, run, step_row
from tensorgrad import nn, ops, optim
from tensorgrad.device.numpy import NumpyRuntime
from tensorgrad.errors import InputError
from tensorgrad.graph import Graph
from tensorgrad.tensor import Tensor
from tensorgrad.trace import param_input, tensor_input, trace

Arrays = Mapping[str, np.ndarray]


class Trainer:
    """Parameters that move by gradients which are given, with the loss that is given."""

    def __init__(self, optimizer: optim.Optimizer, start: Arrays) -> None:
        self.optimizer, self.step_count = optimizer, 0
        self.graph = trace(lambda: self._build(start))
        self.runtime = NumpyRuntime(self.graph)
        self.runtime.upload_params(start)

    def _build(self, start: Arrays) -> Tensor:
        params = {n: param_input(n, a.shape) for n, a in start.items()}
        grads = {n: tensor_input(f"grad.{n}", a.shape) for n, a in start.items()}
        loss = tensor_input("loss", ())
        self.optimizer.update(params, grads, loss)
        return loss

    def step(self, grads: Arrays, loss: float = 1.0) -> dict[str, np.ndarray]:
        self.step_count += 1
        row = step_row(0, 0, self.graph.slots, self.optimizer.scalars(self.step_count))
        inputs = {**{f"grad.{n}": g for n, g in grads.items()}, "loss": np.float32(loss)}
        needs_row = {"step": row} if "step" in self.graph.leaves else {}
        asyncio.run(self.runtime.submit({**inputs, **needs_row}))
        return asyncio.run(self.runtime.download_params())

    def states(self) -> dict[str, np.ndarray]:
        return asyncio.run(self.runtime.download_states())


def label(case: dict[str, Any]) -> str:
    options = ",".join(f"{k}={v}" for k, v in case["options"].items())
    return f"{case['name']}({options})-{case['size']:.0e}"


@pytest.mark.parametrize("case", pytorch()["optimizers"], ids=label)
def test_steps_as_pytorch(case: dict[str, Any]) -> None:
    trainer = Trainer(getattr(optim, case["name"])(**case["options"]), arrays(case["start"]))
    for grads, expected in zip(case["grads"], case["params"], strict=True):
        found = trainer.step(arrays(grads))
        for name, entry in expected.items():
            # a step of Adam is a quotient of roundings: a few units in the last place of the step
            np.testing.assert_allclose(found[name], array(entry), rtol=3e-6, atol=3e-7)


@pytest.mark.parametrize("device", ["numpy", "interpret"])
@pytest.mark.parametrize("case", pytorch()["optimizers"], ids=label)
def test_compiled_steps_as_pytorch(case: dict[str, Any], device: str) -> None:
    tg.sync(optimizer_agrees(case, device))


@pytest.mark.parametrize(
    ("optimizer", "grads", "expected"),
    [
        (
            optim.Adam(lr=1e-3),
            [[1e-08, -1e-08], [1e-08, 2e-08], [0.0, 1.0]],
            [
                [0.9994999766349792, -1.999500036239624],
                [0.9989999532699585, -1.999724268913269],
                [0.9986525177955627, -2.0003631114959717],
            ],
        ),
        (
            optim.AdamW(lr=1e-2, weight_decay=0.1),
            [[0.5, -0.25], [0.1, 0.3], [-0.2, 0.0]],
            [
                [0.9890000224113464, -1.9880000352859497],
                [0.9799806475639343, -1.9874415397644043],
                [0.9755571484565735, -1.9865590333938599],
            ],
        ),
    ],
    ids=["adam_small_gradients", "adamw_steps"],
)
def test_agreed_cases(optimizer: optim.Optimizer, grads: list[list[float]], expected: list[list[float]]) -> None:
    trainer = Trainer(optimizer, {"p": f([1, -2])})
    for grad, wanted in zip(grads, expected, strict=True):
        # eps before the bias correction would differ in the fourth digit
        np.testing.assert_allclose(trainer.step({"p": f(grad)})["p"], wanted, rtol=2e-7)


OPTIMIZERS = [
    optim.SGD(0.1),
    optim.SGD(0.1, momentum=0.9, dampening=0.1, weight_decay=0.1),
    optim.Adam(0.1, amsgrad=True),
    optim.AdamW(0.1, clip_norm=1.0),
    optim.Adagrad(0.1, initial_accumulator_value=0.1),
    optim.RMSprop(0.1, momentum=0.5, centered=True),
    optim.Adadelta(),
    optim.Adamax(),
    optim.NAdam(),
    optim.Lion(0.1),
    optim.Muon(0.1),
]


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda o: type(o).__name__)
@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_changes_nothing(optimizer: optim.Optimizer, loss: float) -> None:
    start = {"w": f([[1, 2]]), "b": f([3])}
    grads = {"w": f([[0.5, -1]]), "b": f([2])}
    trainer = Trainer(optimizer, start)
    before = trainer.step(grads)
    states = trainer.states()
    after = trainer.step({name: np.full_like(g, np.nan) for name, g in grads.items()}, loss)
    for name in start:
        np.testing.assert_array_equal(after[name], before[name])
    for name, state in trainer.states().items():
        np.testing.assert_array_equal(state, states[name])
    assert not np.array_equal(trainer.step(grads)["w"], after["w"])


def test_states_have_names_and_start_at_zero() -> None:
    trainer = Trainer(optim.Adam(), {"a.weight": np.ones((2, 2), np.float32)})
    assert {n: (a.shape, a.any()) for n, a in trainer.states().items()} == {
        "optim.exp_avg.a.weight": ((2, 2), False),
        "optim.exp_avg_sq.a.weight": ((2, 2), False),
    }
    assert Trainer(optim.SGD(), {"w": np.ones(1, np.float32)}).states() == {}
    assert list(Trainer(optim.SGD(momentum=0.9), {"w": np.ones(1, np.float32)}).states()) == ["optim.momentum_buffer.w"]


def updates(graph: Graph, name: str) -> list[str]:
    """The operations behind a parameter's update, without what names and shapes decide."""
    seen: set[int] = set()
    todo = [graph.updates[graph.leaves[name]].node]
    while todo:
        node = graph.nodes[todo.pop()]
        if node.id not in seen:
            seen.add(node.id)
            todo += [v.node for v in node.inputs]
    return [graph.nodes[i].op for i in sorted(seen)]


def test_all_parameters_get_the_same_expression() -> None:
    start = {"w": np.ones((2, 3), np.float32), "b": np.ones((3,), np.float32), "v": np.ones((4, 3), np.float32)}
    for optimizer in (optim.AdamW(0.1), optim.SGD(0.1, momentum=0.9)):
        graph = Trainer(optimizer, start).graph
        assert len(graph.updates) == 3 * len(Trainer(optimizer, {"w": start["w"]}).graph.updates)
        assert sorted(updates(graph, "w")) == sorted(updates(graph, "b")) == sorted(updates(graph, "v"))


def test_the_learning_rate_may_be_a_schedule_and_may_be_assigned() -> None:
    optimizer = optim.SGD(optim.ExponentialLR(1.0, 0.5))
    assert [optimizer.scalars(step)["optim.lr"] for step in (1, 2, 3)] == [1.0, 0.5, 0.25]
    optimizer.lr = lambda step: 10.0 + step
    assert optimizer.scalars(1) == {"optim.lr": 10.0}
    optimizer.lr = 0.125
    trainer = Trainer(optimizer, {"p": f([1])})
    assert trainer.step({"p": f([2])})["p"] == 0.75
    optimizer.lr = 0.5
    assert trainer.step({"p": f([2])})["p"] == -0.25
    with pytest.raises(InputError, match="lr must be 0 or more, got -1"):
        optimizer.lr = -1


def test_bias_corrections_are_exact_at_small_and_large_steps() -> None:
    adam = optim.Adam(1.0, betas=(0.9, 1 - 1e-12))
    assert adam.scalars(1)["optim.root"] == pytest.approx(1e6, rel=1e-4)
    assert adam.scalars(10**6)["optim.step_size"] == 1.0


def test_groups() -> None:
    groups = [("*.bias", {"weight_decay": 0.0}), (lambda name: name.startswith("head"), {"lr": 1.0})]
    optimizer = optim.SGD(0.5, weight_decay=1.0, groups=groups)
    start = {name: f([4]) for name in ("body.weight", "head.weight", "head.bias")}
    found = Trainer(optimizer, start).step({name: f([2]) for name in start})
    assert {n: float(p[0]) for n, p in found.items()} == {
        "body.weight": 4 - 0.5 * (2 + 4),
        "head.weight": 4 - 1.0 * (2 + 4),
        "head.bias": 4 - 0.5 * 2,
    }
    optimizer.lr = 0.25
    assert optimizer.scalars(1) == {"optim.lr": 0.25, "optim.lr.1": 0.25, "optim.lr.2": 1.0}
    with pytest.raises(InputError, match=r"SGD has no hyper-parameter 'beta'; it has lr, momentum"):
        optim.SGD(0.1, groups=[("*", {"beta": 1})])


def test_an_optimizer_may_train_some_of_the_parameters() -> None:
    start = {name: f([3, 4]) for name in ("generator.w", "judge.w")}
    grads = {"generator.w": f([6, 8]), "judge.w": f([600, 800])}
    trainer = Trainer(optim.Adam(0.5, params="generator.*", clip_norm=5.0), start)
    found = trainer.step(grads)
    np.testing.assert_array_equal(found["judge.w"], [3, 4])
    # the norm is that of what is trained
    np.testing.assert_allclose(trainer.states()["optim.exp_avg.generator.w"], [0.3, 0.4], rtol=1e-5)
    assert set(trainer.states()) == {"optim.exp_avg.generator.w", "optim.exp_avg_sq.generator.w"}


def test_an_optimizer_of_ones_own() -> None:
    @dataclass
    class Sign(optim.Optimizer):
        """Moves by the sign of an average that starts at `start`."""

        keep: float = 0.5
        start: float = 0.0

        def state(self, param: Tensor, hyper: Mapping[str, Any]) -> dict[str, float]:
            return {"average": hyper["start"]}

        def rule(
            self, param: Tensor, grad: Tensor, state: Mapping[str, Tensor], at: optim.Rule
        ) -> tuple[Tensor, dict[str, Tensor]]:
            average = state["average"] * at.hyper["keep"] + grad
            return param - ops.sign(average) * at.scalars["lr"], {"average": average}

    trainer = Trainer(Sign(0.25), {"p": f([1, 1])})
    trainer.step({"p": f([4, -0.1])})
    np.testing.assert_array_equal(trainer.step({"p": f([-1, 0.1])})["p"], [0.5, 1.0])
    high = Trainer(Sign(0.25, start=16.0), {"p": f([1, 1])})
    np.testing.assert_array_equal(high.step({"p": f([-9, -7])})["p"], [1.25, 0.75])


WRONG: Any = "0.01"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: optim.SGD(-0.1), "SGD: lr must be 0 or more, got -0.1"),
        (lambda: optim.SGD(0.1, momentum=-1), "momentum"),
        (lambda: optim.SGD(0.1, nesterov=True), "nesterov"),
        (lambda: optim.Adam(betas=(0.9, 1.0)), "betas"),
        (lambda: optim.AdamW(weight_decay=-1), "AdamW: weight_decay"),
        (lambda: optim.Adam(eps=-1), "eps"),
        (lambda: optim.Adam(clip_norm=0), "clip_norm must be positive"),
        (lambda: optim.Adam(normalize=1), "normalize must be True or False, got 1"),  # pyright: ignore
        (lambda: optim.Adam(groups=[("*", {"lr": -1})]), "lr must be 0 or more, got -1"),
        (lambda: optim.Adagrad(lr_decay=-1), "Adagrad: lr_decay must be 0 or more"),
        (lambda: optim.Adagrad(initial_accumulator_value=-1), "initial_accumulator_value"),
        (lambda: optim.RMSprop(alpha=-0.1), "alpha"),
        (lambda: optim.RMSprop(momentum=-0.1), "RMSprop: momentum"),
        (lambda: optim.Adadelta(rho=1.5), "rho must be from 0 to 1"),
        (lambda: optim.Adamax(betas=(1.0, 0.9)), "Adamax: betas"),
        (lambda: optim.NAdam(momentum_decay=-1), "momentum_decay"),
        (lambda: optim.Lion(betas=(0.9,)), "Lion: betas"),  # pyright: ignore
        (lambda: optim.Muon(ns_steps=100), "ns_steps must be from 0 to 99"),
        (lambda: optim.Muon(ns_coefficients=(1, 2)), "ns_coefficients must be three"),  # pyright: ignore
        (lambda: optim.Muon(adjust_lr_fn="none"), "adjust_lr_fn must be None, 'original' or"),  # pyright: ignore
        (lambda: optim.Muon(adamw_betas=(0.9, 1.0)), "betas"),
        (lambda: setattr(optim.Adam(), "eps", -1), "eps must be 0 or more"),
        (lambda: setattr(optim.Adam(), "clip_norm", -1), "clip_norm must be positive, got -1"),
        (lambda: optim.Adam(WRONG), r"Adam: lr must be a number, got '0\.01'"),
        (lambda: optim.Adam(optim.StepLR), "lr must be a number, got <class"),  # pyright: ignore
        (lambda: optim.SGD(0.1, dampening=WRONG), "dampening must be a number, got '0"),
        (lambda: optim.Adam(weight_decay=WRONG), "weight_decay must be a number, got '0"),
        (lambda: optim.Adam(betas=0.9), r"betas must be two numbers, got 0\.9"),  # pyright: ignore
        (lambda: optim.Adam(betas=("a", "b")), "betas must be two numbers, got"),  # pyright: ignore
        (lambda: optim.Adadelta(rho=WRONG), "rho must be a number, got"),
        (lambda: optim.Muon(ns_steps=2.5), "ns_steps must be a whole number, 0 or more, got 2.5"),  # pyright: ignore
        (lambda: optim.Adam(clip_norm=WRONG), "clip_norm must be a number, got"),
        (lambda: optim.Adam(clip_value=WRONG), "clip_value must be a number, got"),
        (lambda: optim.Adam(ema_decay=WRONG), "ema_decay must be a number, got"),
        (lambda: optim.Adam(accumulate=2.0), "accumulate must be a whole number, 1 or more, got 2.0"),  # pyright: ignore
        (lambda: optim.Adam(groups={"*.bias": {}}), r'groups must be pairs such as \[\("\*\.bias".*, got \{'),  # pyright: ignore
        (lambda: optim.Adam(groups=[("*", {}, 1)]), "groups must be pairs such as"),  # pyright: ignore
        (lambda: optim.Adam(groups=["*"]), "groups must be pairs such as"),  # pyright: ignore
        (lambda: optim.Adam(params=["0.weight"]), r"params must be a pattern.*, got \['0\.weight'\]"),  # pyright: ignore
        (lambda: optim.Adam(nn.Linear(2, 2).parameters(), lr=0.1), "Adam is given no parameters"),  # pyright: ignore
        (lambda: optim.Adam(nn.Linear(2, 2)), r"given no parameters.*the learning rate, Adam\(lr="),
    ],
)
def test_hyper_parameters_that_make_no_sense(make: Any, text: str) -> None:
    with pytest.raises(InputError, match=text) as caught:
        make()
    assert f"at {__file__}" in str(caught.value), "the user's line"


def test_a_schedule_of_ones_own_that_gives_no_number() -> None:
    optimizer = optim.SGD(lambda step: None)  # pyright: ignore
    with pytest.raises(InputError, match=r"lr must give a number for every step, but .* gives None for 2"):
        optimizer.scalars(3)


def test_gradient_norms() -> None:
    def fn(a: Tensor, b: Tensor) -> list[Tensor]:
        grads = {"a": a, "b": b}
        clipped = optim.clip_grad_norm(grads, 1.0)
        kept = optim.clip_grad_norm(grads, 100.0)
        norms = [optim.grad_norm(grads, p) for p in (2, 1, math.inf)]
        cut = optim.clip_grad_value(grads, 2.0)["b"]
        return [*norms, clipped["a"], clipped["b"], kept["b"], cut, optim.normalize_grad(grads)["b"]]

    two, one, most, a, b, kept, cut, unit = run(fn, a=f([3]), b=f([[0, -4]]))
    np.testing.assert_allclose(unit, [[0, -1]], rtol=1e-6)
    assert (two, one, most) == (5, 7, 4)
    np.testing.assert_allclose(a, [0.6], rtol=1e-6)
    np.testing.assert_allclose(b, [[0, -0.8]], rtol=1e-6)
    np.testing.assert_array_equal(kept, [[0, -4]])
    np.testing.assert_array_equal(cut, [[0, -2]])
    assert run(lambda: optim.grad_norm({})) == 0


def test_lion_as_its_paper_has_it() -> None:
    start, grads = f([1, -2, 0.5, 0]), [f([1, -1, 0, 0]), f([-0.1, -2, 1, 0]), f([-3, 4, -0.5, 0])]
    for maximize in (False, True):
        trainer = Trainer(optim.Lion(0.01, (0.75, 0.5), 0.25, maximize=maximize), {"p": start})
        param, mean = start.astype(np.float64), np.zeros(4)
        for grad in grads:
            way = -grad if maximize else grad
            param = param - 0.01 * (np.sign(0.75 * mean + 0.25 * way) + 0.25 * param)
            mean = 0.5 * mean + 0.5 * way
            np.testing.assert_allclose(trainer.step({"p": grad})["p"], param, rtol=2e-7)


def test_a_constant_gradient_has_no_variance_that_is_nan() -> None:
    """The average of squares less the square of the average is below 0 by rounding, sooner or later."""
    trainer = Trainer(optim.RMSprop(1e-3, alpha=0.5, centered=True, eps=1.0), {"p": np.zeros(64, np.float32)})
    grad = np.random.default_rng(0).normal(size=64).astype(np.float32)
    for _ in range(39):
        trainer.step({"p": grad})
    found = trainer.step({"p": grad})["p"]
    states = trainer.states()
    assert (states["optim.square_avg.p"] - states["optim.grad_avg.p"] ** 2 < 0).any()
    np.testing.assert_allclose(found, -40e-3 * grad, rtol=0.1)


def test_nadams_product_of_momenta_is_that_of_its_factors() -> None:
    for beta, decay in ((0.9, 0.004), (0.5, 0.0), (0.99, 1.0), (0.0, 0.1)):
        product = 1.0
        for step in range(1, 300):
            factor, ahead = (beta * (1 - 0.5 * 0.96 ** (at * decay)) for at in (step, step + 1))
            product *= factor
            found = optim.NAdam(1.0, (beta, 0.999), momentum_decay=decay).scalars(step)
            assert found["optim.grad_size"] == pytest.approx((1 - factor) / (1 - product), rel=1e-13)
            assert found["optim.mean_size"] == pytest.approx(ahead / (1 - product * ahead), rel=1e-13)


def test_muon_moves_matrices_by_matrices_that_are_nearly_orthogonal() -> None:
    rng = np.random.default_rng(1)
    shapes = {"tall": (9, 4), "wide": (3, 7), "embedding": (5, 4), "bias": (4,), "kernel": (2, 2, 3)}
    start = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    grads = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    options: dict[str, Any] = {"weight_decay": 0.0, "groups": [("embedding", {"adamw": True})]}
    trainer = Trainer(optim.Muon(0.5, **options), start)
    adamw = Trainer(optim.AdamW(0.5, weight_decay=0.0), start)
    found, other = trainer.step(grads), adamw.step(grads)
    for name, scale in (("tall", 1.5), ("wide", 1.0)):
        sizes = np.linalg.svd((start[name] - found[name]) / (0.5 * scale), compute_uv=False)
        assert sizes.min() > 0.5, name
        assert sizes.max() < 1.5, name
        # the same singular vectors as the gradient's: their product is symmetric
        product = grads[name].T @ (start[name] - found[name])
        np.testing.assert_allclose(product, product.T, atol=1e-5)
    for name in ("embedding", "bias", "kernel"):
        np.testing.assert_array_equal(found[name], other[name])
    assert {key for key in trainer.states() if "embedding" not in key and "exp_avg" in key} == {
        f"optim.{key}.{name}" for key in ("exp_avg", "exp_avg_sq") for name in ("bias", "kernel")
    }


def test_signatures_tell_every_argument() -> None:
    shown = str(inspect.signature(optim.AdamW))
    for text in ("lr: 'LearningRate' = 0.001, betas", "weight_decay: 'float' = 0.01, amsgrad: 'bool' = False, *, "):
        assert text in shown
    assert list(inspect.signature(optim.NAdam).parameters)[-8:] == [
        "maximize",
        "groups",
        "params",
        "normalize",
        "clip_norm",
        "clip_value",
        "accumulate",
        "ema_decay",
    ]


def test_optimizers_print() -> None:
    shown = repr(optim.AdamW(optim.StepLR(0.1, 5), clip_norm=1.0))
    assert shown.startswith("AdamW(lr=StepLR(lr=0.1, step_size=5, gamma=0.1), betas=(0.9, 0.999)")
    assert shown.endswith("clip_norm=1.0)")
