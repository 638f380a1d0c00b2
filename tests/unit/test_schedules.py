"""Learning-rate schedules against PyTorch's numbers."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from reference.stored import pytorch
from tensorgrad import optim
from tensorgrad.errors import InputError


def values_agree(schedule: optim.Schedule, values: list[float]) -> None:
    # PyTorch multiplies from step to step: rounding of f64 adds up, to 1e-16 where the rate is 0
    np.testing.assert_allclose([schedule(step) for step in range(len(values))], values, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("case", pytorch()["schedules"], ids=lambda case: f"{case['name']}-{len(case['values'])}")
def test_schedules_as_pytorch(case: dict[str, Any]) -> None:
    values_agree(getattr(optim, case["name"])(**case["options"]), case["values"])


@pytest.mark.parametrize("case", pytorch()["sequences"], ids=lambda case: "-".join(n for n, _ in case["schedulers"]))
def test_sequences_of_schedules_as_pytorch(case: dict[str, Any]) -> None:
    parts = [getattr(optim, name)(**options) for name, options in case["schedulers"]]
    values_agree(optim.SequentialLR(parts, case["milestones"]), case["values"])


def test_a_lambda_and_what_schedules_tell_of_themselves() -> None:
    halves = optim.LambdaLR(0.5, lambda step: 0.5**step)
    assert [halves(step) for step in range(3)] == [0.5, 0.25, 0.125]
    steps = optim.MultiStepLR(0.1, (2, 5))
    assert optim.SequentialLR([optim.LinearLR(0.1), steps], [5]).describe() == {
        "kind": "SequentialLR",
        "schedulers": [optim.LinearLR(0.1).describe(), steps.describe()],
        "milestones": [5],
    }
    assert steps.describe()["milestones"] == [2, 5]
    assert optim.SGD(optim.SequentialLR([halves, optim.ConstantLR(3.0)], [2])).scalars(4) == {"optim.lr": 1.0}


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


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: optim.CosineAnnealingLR("0.1", 10), "CosineAnnealingLR: lr must be a number, got '0.1'"),  # pyright: ignore
        (lambda: optim.CosineAnnealingLR(optim.SGD(0.1), 10), r"lr must be a number, got SGD\("),  # pyright: ignore
        (lambda: optim.ConstantLR(-0.1), "lr must be 0 or more, got -0.1"),
        (lambda: optim.LinearLR(0.1, "1"), "start_factor must be a number, got '1'"),  # pyright: ignore
        (lambda: optim.StepLR(0.1, "3"), "step_size must be a number, got '3'"),  # pyright: ignore
        (lambda: optim.MultiStepLR(0.1, 3), "milestones must be a list of numbers of steps, got 3"),  # pyright: ignore
        (lambda: optim.LambdaLR(0.1, 0.5), "lr_lambda must be a function of the step, got 0.5"),  # pyright: ignore
        (lambda: optim.SequentialLR([0.1, 0.2], [3]), "schedulers must be a list of schedules"),  # pyright: ignore
        (lambda: optim.OneCycleLR(0.1, 10, anneal_strategy="up"), "anneal_strategy must be 'cos' or"),  # pyright: ignore
        (lambda: optim.StepLR(0.1, 0), "step_size must be positive"),
        (lambda: optim.WarmupCosineLR(0.1, 10, 10), "warmup must be"),
        (lambda: optim.OneCycleLR(0.1, 10, pct_start=2), "pct_start"),
        (lambda: optim.PolynomialLR(0.1, 0), "total_iters must be positive"),
        (lambda: optim.CosineAnnealingWarmRestarts(0.1, 0), "T_0 must be positive"),
        (lambda: optim.CosineAnnealingWarmRestarts(0.1, 5, 0), "T_mult must be positive"),
        (lambda: optim.CosineAnnealingWarmRestarts(0.1, 5, 0.5), "T_mult must be 1 or more"),  # pyright: ignore
        (lambda: optim.SequentialLR([optim.ConstantLR(0.1)], [3]), "1 schedules want one milestone less, got"),
        (lambda: optim.SequentialLR([optim.ConstantLR(0.1)] * 3, [3, 3]), "milestones must be positive and rise"),
    ],
)
def test_arguments_that_make_no_sense(make: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        make()
