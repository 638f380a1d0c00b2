"""What a step of each of the benchmark's workloads costs, as exact counts. They may only fall.

A change that lowers a count changes the number here; one that raises it says why in its message.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from steps import LARGE, MATRICES, Compiled, step
from tensorgrad.device.base import Limits


class Cost(NamedTuple):
    """Of one step.

    Attributes:
        dispatches: kernels that run.
        pipelines: different ones.
        bindings: buffers bound by all kernels together.
        copies: buffers that are copied after the kernels.
        megabytes: of all buffers of the plan, rounded up.
    """

    dispatches: int
    pipelines: int
    bindings: int
    copies: int
    megabytes: int


def cost(found: Compiled) -> Cost:
    plan, run = found.lowered.memory.plan, [k for k in found.kernels if k.runs]
    return Cost(
        len(run),
        len({k.wgsl for k in run}),
        sum(len(k.bindings) for k in run),
        len(plan.writebacks),
        -(-plan.nbytes // 10**6),
    )


LARGE_GPU = {
    "sin MLP": Cost(9, 9, 42, 0, 1),
    "MNIST MLP": Cost(12, 12, 55, 0, 5),
    "MNIST CNN": Cost(19, 19, 70, 0, 11),
    "character GPT": Cost(100, 34, 465, 0, 73),
    "baby GPT": Cost(194, 43, 760, 0, 1797),
    "ResNet-18": Cost(143, 85, 618, 0, 230),
}

SMALLEST_GPU = {
    "MNIST CNN": Cost(19, 19, 70, 0, 11),
    "character GPT": Cost(100, 34, 465, 0, 73),
    "ResNet-18": Cost(150, 93, 630, 0, 226),
}


@pytest.mark.parametrize("name", LARGE_GPU)
def test_on_a_large_gpu(name: str) -> None:
    assert cost(step(name, LARGE)) == LARGE_GPU[name]


MIXED = {
    "character GPT": Cost(126, 44, 554, 1, 53),
    "baby GPT": Cost(208, 54, 837, 0, 1233),
}
"""In mixed precision, on subgroup matrices."""


@pytest.mark.parametrize("name", MIXED)
def test_mixed_precision_on_a_large_gpu(name: str) -> None:
    assert cost(step(name, MATRICES, half=True)) == MIXED[name]


@pytest.mark.parametrize("name", SMALLEST_GPU)
def test_with_the_limits_that_webgpu_guarantees(name: str) -> None:
    found = step(name, Limits())
    assert cost(found) == SMALLEST_GPU[name]
    assert max(len(k.bindings) for k in found.kernels) <= 8
