"""The graph of a training step: the forward pass, traced from the user's function, then gradients and updates."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

from tensorgrad.autodiff import connected_grads
from tensorgrad.callsite import call_site
from tensorgrad.debug import stage
from tensorgrad.device.base import Limits
from tensorgrad.dtypes import i32
from tensorgrad.errors import TraceError
from tensorgrad.gate import gate_updates
from tensorgrad.graph import Graph, Value
from tensorgrad.nn.module import Module
from tensorgrad.ops import add, isfinite, reshape, stop_gradient, where
from tensorgrad.optim.optimizer import Optimizer
from tensorgrad.passes import optimize
from tensorgrad.program import Recipe
from tensorgrad.state import State, steps_name
from tensorgrad.structure import Structure
from tensorgrad.tensor import Tensor
from tensorgrad.trace import param_input, state_input, tensor_input, trace_into, update_state


class Spans(NamedTuple):
    """Bytes of the arenas in which the optimizer's and the model's own states may lie together; 0: each by itself."""

    optimizer: int
    gate: int


def step_recipe(
    model: Module,
    loss_fn: Callable[..., Tensor],
    optimizer: Optimizer,
    structure: Structure,
    state: State,
    keep_grads: bool = False,
) -> Recipe:
    """What compiles to one training step. Only the forward pass is traced here and now.

    Args:
        keep_grads: have a buffer for each gradient, that the host can read.
    """
    forward = Graph()

    def run() -> Value:
        leaves = {name: tensor_input(name, spec.static_shape, spec.dtype) for name, spec in structure.leaves.items()}
        args, kwargs = structure.arguments(leaves)
        loss = loss_fn(model, *args, **kwargs)
        _check_loss(loss)
        return reshape(loss, ()).value

    with stage("trace"):
        forward.outputs.append(trace_into(forward, run, training=True, names=state.names))
    trained = frozenset(name for name in state.trainable if optimizer.trains(name))
    spans = Spans(state.span(optimizer.prefix), 0 if state.placed else state.backend.limits.binding_size)
    optimizer = copy(optimizer)  # as it is now: the step may be finished later

    def finish(limits: Limits) -> Graph:
        graph = forward.copy()
        with stage("trace"):
            trace_into(graph, lambda: _append_update(graph, optimizer, trained, spans, keep_grads), training=True)
        with stage("passes"):
            return optimize(graph, limits)

    update = _update_alone(forward, optimizer, trained, spans, keep_grads)
    return Recipe(finish, ("loss",), None if update is None else (forward, update), call_site(), spans)


def _append_update(graph: Graph, optimizer: Optimizer, trained: frozenset[str], spans: Spans, keep_grads: bool) -> None:
    """After a forward pass: the gradients, and the updates of parameters, optimizer state and step count."""
    loss = Tensor(graph, graph.outputs.pop())
    finite = isfinite(loss)
    if own := [name for name, value in graph.leaves.items() if name in trained and value in graph.updates]:
        raise TraceError(
            f"the model updates {own[0]!r} itself, and so does the optimizer; freeze it (requires_grad=False) or "
            "leave it to the optimizer",
            call_site(),
        )
    # what the model updates by itself, such as running statistics, keeps its value with the parameters
    gate_updates(graph, finite, spans.gate)
    params = {n: Tensor(graph, v) for n, v in graph.names_by_role("param").items() if n in trained}
    found = dict(zip(params, connected_grads(loss, list(params.values())), strict=True))
    # a parameter that no gradient reaches is not trained, and so does not decay either
    grads = {name: grad for name, grad in found.items() if grad is not None}
    params = {name: params[name] for name in grads}
    if not params:
        raise TraceError("the loss depends on no parameter of the model that may be trained", call_site())
    held = optimizer.update(params, grads, loss, spans.optimizer)
    if keep_grads:
        graph.grads.update({name: grad.value for name, grad in held.items()})
    steps = state_input(steps_name(optimizer.prefix), (), i32)
    update_state(steps, where(finite, add(steps, 1), steps))
    # what the host reads needs a buffer that no update overwrites
    graph.outputs.append(stop_gradient(loss).value if graph.leaf_name(loss.value) else loss.value)
    for name, value in graph.captures.items():
        if graph.leaf_name(value):
            graph.captures[name] = stop_gradient(Tensor(graph, value)).value


def _update_alone(
    forward: Graph, optimizer: Optimizer, trained: frozenset[str], spans: Spans, keep_grads: bool
) -> Graph | None:
    """The optimizer's update with inputs in place of gradients: all of the optimizer that enters a step's graph.

    None where it cannot be traced by itself.
    """
    graph = Graph()
    types = {name: forward.type(value) for name, value in forward.names_by_role("param").items() if name in trained}

    def run() -> None:
        params = {name: param_input(name, *type_) for name, type_ in types.items() if type_.dtype.is_float}
        grads = {name: tensor_input(f"gradient of {name}", *types[name]) for name in params}
        held = optimizer.update(params, grads, tensor_input("the loss", ()), spans.optimizer)
        if keep_grads:
            graph.grads.update({name: grad.value for name, grad in held.items()})

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
