"""Compiling as for a GPU without one, and the benchmark's workloads."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import workloads

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
    storage_buffers=16,
    invocations=1024,
    workgroup_size=(1024, 1024, 64),
    workgroup_storage=49_152,
    binding_size=2**31 - 4,
    buffer_size=2**33,
    subgroup_size=32,
    features=frozenset({"subgroups"}),
)
"""As an NVIDIA H200 has them in Chromium."""

MATRICES = LARGE._replace(features=LARGE.features | {"shader-f16"}, matrices=True)
"""With f16 and its matrices."""


def on_gpu(backend: Any, **limits: Any) -> Any:
    """The backend, which compiles as for a GPU."""
    backend.limits = Limits(**limits)
    return backend


class Compiled(NamedTuple):
    """A training step, ready for a GPU of these limits."""

    lowered: Lowered
    kernels: list[KernelSpec]


def compiled(
    model: nn.Module,
    loss_fn: Callable[..., tg.Tensor],
    optimizer: optim.Optimizer,
    specs: object,
    limits: Limits,
    half: bool = False,
) -> Compiled:
    """What `tg.compile` would give to the device, in mixed precision where `half`."""
    backend = Numpy()
    backend.limits = limits
    state = State(model, backend, 0)
    with state.entering(optimizer):
        recipe = step_recipe(model, loss_fn, optimizer, Structure(specs), state, half=half)(state.spans("optim"))
    graph = recipe.graph(limits)
    lowered = lower(graph, recipe.outputs(graph), max_buffers=limits.storage_buffers, totals=not limits.software)
    return Compiled(lowered, generate(lowered, limits))


STAGES = [(64, 64, 1), (64, 64, 1), *((c // s, c, s) for c in (128, 256, 512) for s in (2, 1))]


def work(kind: str, rows: int, *dims: int) -> Any:
    return SimpleNamespace(kind=kind, B=rows, dims=dims)


def options(**gpt: int) -> dict[str, Any]:
    return {"gpt": {"V": 65, **gpt}, "stages": STAGES}


STEPS: dict[str, tuple[Any, dict[str, Any]]] = {
    "sin MLP": (work("sin", 256, 1, 64, 64, 1), {}),
    "MNIST MLP": (work("mlp", 128, 784, 256, 128, 10), {}),
    "MNIST CNN": (work("cnn", 64), options()),
    "character GPT": (work("gpt", 16), options(B=16, T=64, L=4, D=128, H=4)),
    "baby GPT": (work("gpt", 32), options(B=32, T=256, L=6, D=384, H=6)),
    "ResNet-18": (work("resnet", 16), options()),
}


def step(name: str, limits: Limits, half: bool = False) -> Compiled:
    """That of a workload of `STEPS`."""
    given, settings = STEPS[name]
    model, loss_fn, specs, _ = workloads.problem(given, settings)
    optimizer = optim.SGD(0.01, momentum=0.9) if name == "ResNet-18" else optim.Adam(1e-3)
    return compiled(model, loss_fn, optimizer, specs, limits, half)
