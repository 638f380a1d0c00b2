"""A training step: its graph (the forward pass, traced from the user's function, gradients, updates) and its result."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tensorgrad.autodiff import connected_grads
from tensorgrad.callsite import call_site
from tensorgrad.debug import stage
from tensorgrad.device.base import Limits
from tensorgrad.dtypes import f32, i32
from tensorgrad.errors import TraceError
from tensorgrad.gate import gate_updates
from tensorgrad.graph import Graph, Value
from tensorgrad.nn.module import Module
from tensorgrad.ops import add, cast, isfinite, reshape, stop_gradient, where
from tensorgrad.optim.arguments import listed
from tensorgrad.optim.optimizer import Optimizer
from tensorgrad.optim.scaling import LossScale
from tensorgrad.passes import optimize
from tensorgrad.program import Recipe
from tensorgrad.state import Spans, State, steps_name
from tensorgrad.structure import Structure
from tensorgrad.tensor import Tensor
from tensorgrad.trace import param_input, state_input, tensor_input, trace_into, update_state

FINITE = "finite"
"""The output that tells whether a step of mixed precision changed anything."""


class Options(NamedTuple):
    """Numbers that decide, with the traced graphs, what a step is.

    Attributes:
        optimizer, gate: bytes of the arenas in which the optimizer's and the model's own states may lie together; 0:
            each by itself.
        half: mixed precision.
        keep_grads: a buffer for each gradient, that the host can read.
    """

    optimizer: int
    gate: int
    half: bool
    keep_grads: bool


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step gives.

    Attributes:
        loss: as a Python float.
        captures: what `tg.capture` marked, by name.
        skipped: the step changed nothing, because the loss is NaN or infinite, or with `dtype=tg.f16` a gradient.
    """

    loss: float
    captures: dict[str, np.ndarray] = field(default_factory=dict)
    skipped: bool = False


def step_recipe(
    model: Module,
    loss_fn: Callable[..., Tensor],
    optimizer: Optimizer,
    structure: Structure,
    state: State,
    keep_grads: bool = False,
    *,
    half: bool = False,
    tune: float = 0.0,
) -> Callable[[Spans], Recipe]:
    """What compiles to one training step, given how its states lie. Only the forward pass is traced here and now.

    Args:
        keep_grads: have a buffer for each gradient, that the host can read.
        half: multiply in f16, with a scaled loss.
        tune: seconds for tuning.
    """
    structure.check_call("the loss function", loss_fn)
    optimizer.check_names([name for name, _ in model.named_parameters()])
    forward = Graph()

    def run() -> Value:
        leaves = {name: tensor_input(name, spec.static_shape, spec.dtype) for name, spec in structure.leaves.items()}
        loss = structure.call(loss_fn, model, leaves)
        _check_loss(loss)
        return reshape(loss, ()).value

    with stage("trace"):
        forward.outputs.append(trace_into(forward, run, training=True, names=state.names))
    trained = frozenset(name for name in state.trainable if optimizer.trains(name))
    optimizer, site = _frozen(optimizer), call_site()

    def recipe(spans: Spans) -> Recipe:
        options = Options(*spans, half, keep_grads)

        def finish(limits: Limits) -> Graph:
            graph = forward.copy()
            with stage("trace"):
                trace_into(graph, lambda: _append_update(graph, optimizer, trained, options), training=True)
            with stage("passes"):
                return optimize(graph, limits, half=half)

        update = _update_alone(forward, optimizer, trained, options)
        names = ("loss", FINITE) if half else ("loss",)
        return Recipe(finish, names, forward, None if update is None else (forward, update), site, options, tune)

    return recipe


def _frozen(optimizer: Optimizer) -> Optimizer:
    """The optimizer as it is now: the step may be finished later."""
    same = copy(optimizer)
    same.groups = tuple((which, dict(changes)) for which, changes in optimizer.groups)
    return same


def _append_update(graph: Graph, optimizer: Optimizer, trained: frozenset[str], options: Options) -> None:
    """After a forward pass: the gradients, and the updates of parameters, optimizer state and step count."""
    loss = Tensor(graph, graph.outputs.pop())
    if both := [name for name, value in graph.leaves.items() if name in trained and value in graph.updates]:
        raise TraceError(
            f"the model updates {both[0]!r} itself, and so does the optimizer; freeze it (requires_grad=False) or "
            "leave it to the optimizer",
            call_site(),
        )
    finite = isfinite(loss)
    # what the model updates by itself, such as running statistics, keeps its value with the parameters
    own, graph.updates = graph.updates, {}
    if not options.half:
        gate_updates(graph, own, finite, options.gate)
    params = {n: Tensor(graph, v) for n, v in graph.names_by_role("param").items() if n in trained}
    scale = LossScale(optimizer.prefix) if options.half else None
    scaled = cast(loss, f32) * scale.scale if scale else loss
    found = dict(zip(params, connected_grads(scaled, list(params.values())), strict=True))
    # a parameter that no gradient reaches is not trained, and so does not decay either
    grads = {name: grad for name, grad in found.items() if grad is not None}
    params = {name: params[name] for name in grads}
    if not params:
        raise TraceError(_why_untrained(graph, optimizer), call_site())
    held, finite = optimizer.update(params, grads, loss, options.optimizer, scale, options.keep_grads)
    if options.keep_grads:
        graph.grads.update({name: grad.value for name, grad in held.items()})
    if options.half:  # now that the gradients are known
        gate_updates(graph, own, finite, options.gate)
    steps = state_input(steps_name(optimizer.prefix), (), i32)
    update_state(steps, where(finite, add(steps, 1), steps))
    # what the host reads needs a buffer that no update overwrites
    graph.outputs.append(stop_gradient(loss).value if graph.leaf_name(loss.value) else loss.value)
    if options.half:
        graph.outputs.append(finite.value)
    for name, value in graph.captures.items():
        if graph.leaf_name(value):
            graph.captures[name] = stop_gradient(Tensor(graph, value)).value


def _why_untrained(graph: Graph, optimizer: Optimizer) -> str:
    why = "the loss depends on no parameter of the model that may be trained"
    read = graph.names_by_role("param")
    if not read:
        return f"{why}: it reads none of them; is the model called in the loss?"
    return (
        f"{why}: it reads {listed(list(read))}, each of which is frozen (requires_grad=False), behind a detach, "
        f"or left out by the optimizer's params={optimizer.params!r}"
    )


def _update_alone(forward: Graph, optimizer: Optimizer, trained: frozenset[str], options: Options) -> Graph | None:
    """The optimizer's update with inputs in place of gradients, by which the plan cache knows the optimizer.

    None where it cannot be traced by itself. A `rule` that looks at how its gradient was computed is not told apart.
    """
    graph = Graph()
    types = {name: forward.type(value) for name, value in forward.names_by_role("param").items() if name in trained}

    def run() -> None:
        params = {name: param_input(name, *type_) for name, type_ in types.items() if type_.dtype.is_float}
        grads = {name: tensor_input(f"gradient of {name}", *types[name]) for name in params}
        optimizer.update(params, grads, tensor_input("the loss", ()), options.optimizer)

    try:
        trace_into(graph, run, training=True)
    except Exception:  # whatever is wrong with it, the step itself will tell
        return None
    return graph


def _check_loss(loss: Any) -> None:
    if not isinstance(loss, Tensor):
        raise TraceError(f"the loss function must return a Tensor, got {type(loss).__name__}", call_site())
    if loss.size != 1 or not loss.dtype.is_float:
        raise TraceError(
            f"the loss must be one floating-point number, got {loss.type}; mean() or sum() it", loss.site or call_site()
        )
