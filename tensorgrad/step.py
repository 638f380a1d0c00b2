"""The graph of a training step: forward pass, gradients and updates, in one trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorgrad.autodiff import connected_grads
from tensorgrad.callsite import call_site
from tensorgrad.debug import stage
from tensorgrad.dtypes import i32
from tensorgrad.errors import TraceError
from tensorgrad.graph import Graph
from tensorgrad.nn.module import Module
from tensorgrad.ops import add, isfinite, reshape, stop_gradient, where
from tensorgrad.optim.optimizer import Optimizer
from tensorgrad.passes import optimize
from tensorgrad.state import State, steps_name
from tensorgrad.structure import Structure
from tensorgrad.tensor import Tensor
from tensorgrad.trace import state_input, tensor_input, trace_into, update_state


def trace_step(
    model: Module, loss_fn: Callable[..., Tensor], optimizer: Optimizer, structure: Structure, state: State
) -> Graph:
    """The optimized graph of one training step: forward, gradients, updates."""
    graph = Graph()

    def step() -> None:
        leaves = {name: tensor_input(name, spec.static_shape, spec.dtype) for name, spec in structure.leaves.items()}
        args, kwargs = structure.arguments(leaves)
        loss = loss_fn(model, *args, **kwargs)
        _check_loss(loss)
        loss = reshape(loss, ())
        finite = isfinite(loss)
        # what the model updates by itself, such as running statistics, keeps its value with the parameters
        for leaf, value in graph.updates.items():
            graph.updates[leaf] = where(finite, Tensor(graph, value), Tensor(graph, leaf)).value
        trainable = state.trainable
        used = {n: Tensor(graph, v) for n, v in graph.names_by_role("param").items()}
        params = {n: p for n, p in used.items() if n in trainable and optimizer.trains(n)}
        found = dict(zip(params, connected_grads(loss, list(params.values())), strict=True))
        # a parameter that no gradient reaches is not trained, and so does not decay either
        grads = {name: grad for name, grad in found.items() if grad is not None}
        params = {name: params[name] for name in grads}
        if not params:
            raise TraceError("the loss depends on no parameter of the model that may be trained", call_site())
        if own := [name for name, param in params.items() if param.value in graph.updates]:
            raise TraceError(
                f"the model updates {own[0]!r} itself, and so does the optimizer; freeze it (requires_grad=False) or "
                "leave it to the optimizer",
                call_site(),
            )
        held = optimizer.update(params, grads, loss, state.span(optimizer.prefix))
        graph.grads.update({name: grad.value for name, grad in held.items()})
        steps = state_input(steps_name(optimizer.prefix), (), i32)
        update_state(steps, where(finite, add(steps, 1), steps))
        # what the host reads needs a buffer that no update overwrites
        graph.outputs.append(stop_gradient(loss).value if graph.leaf_name(loss.value) else loss.value)
        for name, value in graph.captures.items():
            if graph.leaf_name(value):
                graph.captures[name] = stop_gradient(Tensor(graph, value)).value

    with stage("trace"):
        trace_into(graph, step, training=True, names=state.names)
    state.check_packs(graph, optimizer.prefix)
    with stage("passes"):
        return optimize(graph, many_cores=not state.backend.limits.software)


def _check_loss(loss: Any) -> None:
    if not isinstance(loss, Tensor):
        raise TraceError(f"the loss function must return a Tensor, got {type(loss).__name__}", call_site())
    if loss.size != 1 or not loss.dtype.is_float:
        raise TraceError(
            f"the loss must be one floating-point number, got {loss.type}; mean() or sum() it", loss.site or call_site()
        )
