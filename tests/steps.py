"""The benchmark's workloads, compiled as for a GPU without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import tensorgrad as tg
from tensorgrad import nn, optim
from tensorgrad.backend import Numpy
from tensorgrad.device.base import Limits
from tensorgrad.lower.lowering import Lowered, lower
from tensorgrad.plan import KernelSpec
from tensorgrad.state import State
from tensorgrad.step import step_recipe
from tensorgrad.structure import Structure
from tensorgrad.wgsl.generate import generate

LARGE = Limits(
    storage_buffers=10,
    invocations=1024,
    workgroup_size=(1024, 1024, 64),
    workgroup_storage=49_152,
    binding_size=2**31 - 4,
    buffer_size=2**33,
    subgroup_size=32,
    features=frozenset({"subgroups"}),
)
"""As an NVIDIA H200 has them in Chromium."""


class Compiled(NamedTuple):
    """A training step, ready for a GPU of these limits."""

    lowered: Lowered
    kernels: list[KernelSpec]


def compiled(
    model: nn.Module, loss_fn: Callable[..., tg.Tensor], optimizer: optim.Optimizer, specs: object, limits: Limits
) -> Compiled:
    """What `tg.compile` would give to the device."""
    backend = Numpy()
    backend.limits = limits
    state = State(model, backend, 0)
    with state.entering(optimizer):
        recipe = step_recipe(model, loss_fn, optimizer, Structure(specs), state)
    graph = recipe.graph(limits)
    lowered = lower(graph, recipe.outputs(graph), max_buffers=limits.storage_buffers)
    return Compiled(lowered, generate(lowered, limits))
