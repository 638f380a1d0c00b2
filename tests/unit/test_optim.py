"""Optimizers, schedules and clipping against PyTorch's numbers, on the numpy device."""

from __future__ import annotations

import asyncio
import math
import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from reference.agree import optimizer_agrees
from reference.stored import array, arrays, f, pytorch, run, step_row
from tensorgrad import ops, optim
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
    size = np.abs(case["grads"][0]["w"]["data"]).max()
    return f"{case['name']}({options})-{size:.0e}"


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
    class Sign(optim.Optimizer):
        """Moves by the sign of an average."""

        def __init__(self, lr: float, keep: float = 0.5) -> None:
            super().__init__(lr, keep=keep)

        def state(self, hyper: Mapping[str, Any]) -> tuple[str, ...]:
            return ("average",)

        def rule(
            self, param: Tensor, grad: Tensor, state: Mapping[str, Tensor], at: optim.Rule
        ) -> tuple[Tensor, dict[str, Tensor]]:
            average = state["average"] * at.hyper["keep"] + grad
            return param - ops.sign(average) * at.scalars["lr"], {"average": average}

    trainer = Trainer(Sign(0.25), {"p": f([1, 1])})
    trainer.step({"p": f([4, -0.1])})
    np.testing.assert_array_equal(trainer.step({"p": f([-1, 0.1])})["p"], [0.5, 1.0])


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
        (lambda: optim.Adam(groups=[("*", {"lr": -1})]), "lr must be 0 or more, got -1"),
        (lambda: optim.StepLR(0.1, 0), "step_size must be positive"),
        (lambda: optim.WarmupCosineLR(0.1, 10, 10), "warmup must be"),
        (lambda: optim.OneCycleLR(0.1, 10, pct_start=2), "pct_start"),
    ],
)
def test_hyper_parameters_that_make_no_sense(make: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        make()


@pytest.mark.parametrize("case", pytorch()["schedules"], ids=lambda case: case["name"])
def test_schedules_as_pytorch(case: dict[str, Any]) -> None:
    schedule = getattr(optim, case["name"])(**case["options"])
    np.testing.assert_allclose([schedule(step) for step in range(len(case["values"]))], case["values"], rtol=1e-12)


def test_schedules_are_plain_records_that_end_well() -> None:
    schedules = [
        optim.CosineAnnealingLR(0.1, 10, 0.01),
        optim.WarmupCosineLR(0.1, 2, 10, 0.01),
        optim.OneCycleLR(0.1, 10),
        optim.LinearLR(0.1, 1.0, 0.1, 10),
    ]
    for schedule in schedules:
        assert pickle.loads(pickle.dumps(schedule)) == schedule
        assert eval(repr(schedule), dict(vars(optim))) == schedule
        assert schedule(10) == schedule(1000)
    assert schedules[0].describe() == {"kind": "CosineAnnealingLR", "lr": 0.1, "T_max": 10, "eta_min": 0.01}
    assert max(schedules[1](step) for step in range(20)) == 0.1


def test_gradient_norms() -> None:
    def fn(a: Tensor, b: Tensor) -> list[Tensor]:
        grads = {"a": a, "b": b}
        clipped = optim.clip_grad_norm(grads, 1.0)
        kept = optim.clip_grad_norm(grads, 100.0)
        norms = [optim.grad_norm(grads, p) for p in (2, 1, math.inf)]
        return [*norms, clipped["a"], clipped["b"], kept["b"], optim.clip_grad_value(grads, 2.0)["b"]]

    two, one, most, a, b, kept, cut = run(fn, a=f([3]), b=f([[0, -4]]))
    assert (two, one, most) == (5, 7, 4)
    np.testing.assert_allclose(a, [0.6], rtol=1e-6)
    np.testing.assert_allclose(b, [[0, -0.8]], rtol=1e-6)
    np.testing.assert_array_equal(kept, [[0, -4]])
    np.testing.assert_array_equal(cut, [[0, -2]])
    assert run(lambda: optim.grad_norm({})) == 0


def test_optimizers_print() -> None:
    shown = repr(optim.AdamW(optim.StepLR(0.1, 5), clip_norm=1.0))
    assert shown.startswith("AdamW(lr=StepLR(lr=0.1, step_size=5, gamma=0.1), betas=(0.9, 0.999)")
    assert shown.endswith("clip_norm=1.0)")
