"""Small programs for tests: a function of arrays traced, and run on each device.

A program's inputs are leaves `x0, x1, ...`. What it returns is compared between the
reference rules, the kernels' own expressions (with fusion and without), and WebGPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensorgrad.backend import WebGPU, open_backend
from tensorgrad.compiled import Built
from tensorgrad.device import interpret
from tensorgrad.device.base import Limits
from tensorgrad.device.numpy import evaluate
from tensorgrad.dtypes import from_numpy
from tensorgrad.graph import Graph, Value
from tensorgrad.lower.kernel import Kernel
from tensorgrad.lower.lowering import Lowered, lower
from tensorgrad.ops import stop_gradient
from tensorgrad.passes import optimize
from tensorgrad.program import Recipe
from tensorgrad.tensor import Tensor
from tensorgrad.trace import STEP_SLOTS, tensor_input, trace

Arrays = dict[str, np.ndarray]


@dataclass(slots=True)
class Program:
    """A traced function and the arrays that it is run on.

    Attributes:
        traced: the graph as it was recorded.
        graph: the optimized graph.
        values: leaf name -> array.
    """

    traced: Graph
    graph: Graph
    values: Arrays = field(default_factory=dict)

    @property
    def outputs(self) -> dict[str, Value]:
        return {str(n): value for n, value in enumerate(self.graph.outputs)}


def program(
    fn: Callable[..., Any], inputs: Sequence[np.ndarray], states: Mapping[str, np.ndarray] | None = None
) -> Program:
    """Traces `fn` on tensors of the inputs' shapes; it returns a tensor or a list of them."""

    def traced() -> list[Tensor]:
        leaves = [tensor_input(f"x{n}", a.shape, from_numpy(a.dtype)) for n, a in enumerate(inputs)]
        found = fn(*leaves)
        several = list(found) if isinstance(found, list | tuple) else [found]
        # what is returned as it came in gets a buffer of its own
        return [stop_gradient(t) if t.graph.leaf_name(t.value) else t for t in several]

    graph = trace(traced)
    values = {f"x{n}": np.asarray(a) for n, a in enumerate(inputs)}
    values |= states or {}
    if "step" in graph.leaves:
        values["step"] = np.zeros(STEP_SLOTS, np.uint32)
        values["step"][:2] = 7, 3
    return Program(graph, optimize(graph), values)


def for_many_cores(p: Program) -> Program:
    """The same program with long sums and products cut, as for a GPU."""
    return Program(p.traced, optimize(p.traced, Limits()), p.values)


def on_numpy(p: Program, graph: Graph | None = None, values: Arrays | None = None) -> list[np.ndarray]:
    """The outputs and the updated states by the reference rules; float64 leaves are computed with in float64."""
    graph, values = graph or p.graph, values or p.values
    exact = not any(a.dtype == np.float64 for a in values.values())
    found = evaluate(graph, values, exact=exact)
    return [np.asarray(found[value]) for value in (*graph.outputs, *graph.updates.values())]


def lowered(p: Program, fuse: bool = True, **options: Any) -> Lowered:
    return lower(p.graph, p.outputs, fuse=fuse, **options)


def on_interpret(p: Program, low: Lowered) -> list[np.ndarray]:
    """The outputs and the updated states by the kernels' expressions and the buffer plan."""
    with np.errstate(all="ignore"):
        buffers = interpret.run(low, with_initial(p))
    plan, graph = low.memory.plan, p.graph
    found = [interpret.result(low, buffers, value, plan.outputs[name]) for name, value in p.outputs.items()]
    leaves = {graph.leaf_name(leaf): leaf for leaf in graph.updates}
    held = {**plan.params, **plan.states}
    return found + [interpret.result(low, buffers, leaf, held[name]) for name, leaf in leaves.items() if name]


def with_initial(p: Program) -> Arrays:
    """The values, and the initial ones of the parameters and states that have none."""
    values = dict(p.values)
    for name, leaf in p.graph.leaves.items():
        type_ = p.graph.type(leaf)
        initial = p.graph.node(leaf).attrs["initial"]
        values.setdefault(name, np.full(type_.shape, initial, type_.dtype.numpy))
    return values


async def on_webgpu(p: Program) -> tuple[list[np.ndarray], Built]:
    """`on_gpu` in the browser."""
    backend = await open_backend("webgpu")
    assert isinstance(backend, WebGPU)
    return await on_gpu(p, backend)


async def on_gpu(p: Program, backend: WebGPU) -> tuple[list[np.ndarray], Built]:
    """The outputs and the updated states on the GPU, and what ran there (destroyed; its kernels can be read)."""
    recipe = Recipe(lambda limits: p.graph, tuple(p.outputs), p.graph)
    built = await backend.build(await backend.compile(recipe), backend.store(), {})
    names = p.graph.names_by_role("input")
    found = await built.executor.run({name: p.values[name] for name in names})
    updated = [str(p.graph.leaf_name(leaf)) for leaf in p.graph.updates]
    states = await built.executor.download(updated) if updated else {}
    built.executor.destroy()
    return [found[name] for name in p.outputs] + [states[name] for name in updated], built


def assert_close(found: np.ndarray, wanted: np.ndarray, rtol: float, atol: float, what: str = "") -> None:
    """Equal shape, dtype kind, and numbers to `atol + rtol * |wanted|`; NaN equals NaN, inf itself."""
    assert found.shape == wanted.shape, f"{what}: shape {found.shape}, expected {wanted.shape}"
    assert found.dtype.kind == wanted.dtype.kind, f"{what}: {found.dtype}, expected {wanted.dtype}"
    if found.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted, err_msg=what)
        return
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol, equal_nan=True, err_msg=what)


def bound(kernel: Kernel) -> int:
    """How many buffers a kernel binds."""
    return len({*kernel.loads(), *(kernel.inplace.get(v, v) for v in kernel.writes)})
