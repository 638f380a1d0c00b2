"""Activation checkpointing: what a function computes on the way is not kept for the backward pass, but computed again.

`checkpoint` calls the function as usual and puts a node after its results that knows which nodes of the graph are the
function's: those from `start` up to itself. The node's gradient rule copies them and differentiates the copy. The copy
reads its operands through `after`, a view that waits for the gradient that has arrived: no pass takes copy and original
for the same computation, and no kernel of the copy runs, or is joined with another, before the backward pass is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tensorgrad.callsite import call_site
from tensorgrad.errors import TraceError
from tensorgrad.graph import Graph, Node, Value
from tensorgrad.primitive import primitive
from tensorgrad.structure import is_nest, parts, rebuild
from tensorgrad.tensor import Tensor
from tensorgrad.trace import bind, current_graph, own

SHARED = frozenset({"const", "iota", "array"})
"""What is never computed again: it is text of a kernel, or in a buffer from the start."""

after_p = primitive(
    "after",
    shape=lambda x, *others: x,
    eval=lambda xp, x, *others: x,
    grad=lambda g, out, x, *others: (g, *(None for _ in others)),
    lower=lambda idx, x, *others: x(idx),
    view=True,
)


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None, **kwargs: Any) -> Any:
    """`function(*args, **kwargs)`, of which the backward pass keeps nothing but what the function reads.

    What the function computes is computed again when its gradient is needed, with the same random numbers. The memory
    between forward and backward pass gets smaller, the step longer by about another forward pass. Values and
    gradients are the same.

    Args:
        function: such as a block of a model; it returns a tensor, or a nest of them.
        args, kwargs: handed to it.
        use_reentrant: as torch.utils.checkpoint.checkpoint has it; there is only one way here.

    Raises:
        TraceError: outside of a trace, or where the function returns something else.

    >>> import tensorgrad as tg
    >>> def f(x):
    ...     return tg.checkpoint(lambda x: tg.exp(tg.sin(x)), x).sum()
    >>> float(tg.sync(tg.grad(f, device="numpy")(0.0)))
    1.0
    """
    graph = current_graph()
    start = len(graph.nodes)
    result = function(*args, **kwargs)
    outputs = [own(tensor).value for tensor in _tensors(result)]
    region = graph.nodes[start:]
    read = (v for v in (*(v for node in region for v in node.inputs), *outputs))
    # leaves that were first met in the function are not of it
    operands = dict.fromkeys(v for v in read if v.node < start or graph.node(v).op == "leaf")
    tensors = [Tensor(graph, v) for v in (*outputs, *operands)]
    found = bind(checkpoint_p, *tensors, start=start, count=len(outputs)) if outputs else ()
    left = iter((found,) if isinstance(found, Tensor) else found)
    return _refill(result, left)


def _checkpoint_grad(g: Any, out: Any, *tensors: Tensor, start: int, count: int) -> tuple[Tensor | None, ...]:
    from tensorgrad.autodiff import connected_grads  # which reads the operations: no cycle at import

    gradients, results = ((g,), (out,)) if count == 1 else (g, out)
    outputs, operands = tensors[:count], tensors[count:]
    graph = current_graph()
    again = {
        x.value: x if graph.node(x.value).op in SHARED else bind(after_p, x, *gradients, *outputs) for x in operands
    }
    copies = _copy(graph, start, results[0].value.node, {v: t.value for v, t in again.items()})
    made = [Tensor(graph, copies[t.value]) for t in outputs]
    seeds = [(t, g) for t, g in zip(made, gradients, strict=True) if t.dtype.is_float]
    wanted = [again[x.value] for x in operands if x.dtype.is_float]
    found = iter(connected_grads([t for t, _ in seeds], wanted, [g for _, g in seeds]))
    return (*(None for _ in outputs), *(next(found) if x.dtype.is_float else None for x in operands))


checkpoint_p = primitive(
    "checkpoint",
    shape=lambda *types, start, count: types[0] if count == 1 else types[:count],
    eval=lambda xp, *arrays, start, count: arrays[0] if count == 1 else arrays[:count],
    grad=_checkpoint_grad,
)


def _copy(graph: Graph, start: int, stop: int, copies: dict[Value, Value]) -> dict[Value, Value]:
    """Appends the nodes from `start` up to `stop` once more.

    Args:
        copies: value -> what stands for it in the copy.

    Returns:
        The same for all values.
    """
    places: dict[int, int] = {}
    for node in graph.nodes[start:stop]:
        places[node.id] = len(graph.nodes)
        if node.op != "leaf":
            inputs = tuple(copies[v] for v in node.inputs)
            attrs = node.attrs
            if node.op == "checkpoint":  # one inside another
                attrs = {**attrs, "start": places[attrs["start"]]}
            copy: Node = graph.add(node.op, inputs, attrs, node.types, node.site)
            copies.update(zip(node.values, copy.values, strict=True))
    return copies


def _tensors(nest: Any) -> Iterator[Tensor]:
    if isinstance(nest, Tensor):
        yield nest
    elif is_nest(nest):
        for _, child in parts(nest):
            yield from _tensors(child)
    elif nest is not None:
        kind = type(nest).__name__
        raise TraceError(
            f"a checkpointed function returns tensors (in tuples, lists or mappings), got {kind}", call_site()
        )


def _refill(nest: Any, tensors: Iterator[Tensor]) -> Any:
    """The nest with other tensors."""
    if isinstance(nest, Tensor):
        return next(tensors)
    return nest if nest is None else rebuild(nest, (_refill(child, tensors) for _, child in parts(nest)))
