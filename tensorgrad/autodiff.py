"""Reverse-mode differentiation: appends the gradient's operations to the graph.

Each primitive's `grad` is made of primitives, so the gradient is a graph like any
other: it can be differentiated again, simplified and fused.
"""

from __future__ import annotations

from collections.abc import Sequence

from tensorgrad.callsite import call_site, standing_at
from tensorgrad.errors import ShapeError, TraceError
from tensorgrad.graph import Graph, Value
from tensorgrad.ops import add, ones_like, zeros_like
from tensorgrad.primitive import REGISTRY
from tensorgrad.tensor import Tensor
from tensorgrad.trace import current_graph, own


def append_grad(output: Tensor, wrt: Sequence[Tensor], seed: Tensor | None = None) -> list[Tensor]:
    """Appends d(output)/d(each of `wrt`) to the running trace.

    Args:
        output: a float tensor of one element, or of any shape with `seed`.
        wrt: float tensors of the same trace.
        seed: the gradient of `output` itself; ones by default.

    Returns:
        One tensor for each of `wrt`, of its shape; zeros where the output does not depend on it.

    Raises:
        ShapeError: an output of several elements without a seed, or a seed of another type.
        TraceError: an output or a target that is not of floats.

    >>> import tensorgrad as tg
    >>> def f():
    ...     x = tg.tensor_input("x", (3,))
    ...     return tg.append_grad((x * x).sum(), [x])[0]
    >>> tg.trace(f).type(tg.trace(f).outputs[0])
    f32[3]
    """
    grads = connected_grads(output, wrt, seed)
    return [zeros_like(tensor) if grad is None else grad for tensor, grad in zip(wrt, grads, strict=True)]


def connected_grads(
    output: Tensor | Sequence[Tensor], wrt: Sequence[Tensor], seed: Tensor | Sequence[Tensor | None] | None = None
) -> list[Tensor | None]:
    """The same as `append_grad`, but None where no gradient flows to one of `wrt`: such a parameter is not trained.

    Of several outputs, each with its seed, the gradients are added up.
    """
    graph = current_graph()
    outputs = [output] if isinstance(output, Tensor) else list(output)
    seeds = [seed] if seed is None or isinstance(seed, Tensor) else list(seed)
    for tensor in (*outputs, *wrt):
        if not own(tensor).dtype.is_float:
            raise TraceError(f"gradients are of floats; {tensor.type} has none", call_site())
    grads: dict[Value, Tensor] = {}
    for tensor, g in zip(outputs, seeds, strict=True):
        g = _seed(tensor, g)
        grads[tensor.value] = add(grads[tensor.value], g) if tensor.value in grads else g
    for node_id in _between(graph, {t.value.node for t in wrt}, {t.value.node for t in outputs}):
        node = graph.nodes[node_id]
        rule = REGISTRY[node.op].grad
        if rule is None or not any(v in grads for v in node.values):
            continue
        results = [Tensor(graph, v) for v in node.values]
        with standing_at(node.site):
            cotangents = [grads[r.value] if r.value in grads else zeros_like(r) for r in results]
            g, out = (cotangents[0], results[0]) if len(results) == 1 else (cotangents, results)
            parts = rule(g, out, *(Tensor(graph, v) for v in node.inputs), **node.attrs)
            for value, part in zip(node.inputs, parts, strict=True):
                if part is not None:
                    grads[value] = add(grads[value], part) if value in grads else part
    return [grads.get(t.value) for t in wrt]


def _seed(output: Tensor, seed: Tensor | None) -> Tensor:
    """The gradient of an output itself."""
    if seed is None:
        if output.size != 1:
            raise ShapeError(f"the gradient of {output.type} needs a scalar: sum() or mean() it first", call_site())
        return ones_like(output)
    if own(seed).type != output.type:
        raise ShapeError(f"the seed is {seed.type}, but the output is {output.type}", call_site())
    return seed


def _between(graph: Graph, sources: set[int], ends: set[int]) -> list[int]:
    """The nodes that pass a gradient on from an end towards a source, last first; a source may lie before another."""
    reaches, passing, end = set(sources), set[int](), max(ends, default=-1)
    for node in graph.nodes[: end + 1]:
        if any(v.node in reaches for v in node.inputs):
            reaches.add(node.id)
            passing.add(node.id)
    needed = set(ends)
    for node in reversed(graph.nodes[: end + 1]):
        if node.id in needed:
            needed.update(v.node for v in node.inputs)
    return sorted(passing & needed, reverse=True)
