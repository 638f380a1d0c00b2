"""The interpret device: runs the kernels' own expressions on index grids, without a GPU.

It is the second oracle beside the reference rules: what it computes went through
lowering, fusion and the buffer plan, and through none of the WGSL templates. Buffers
start as poison (NaN), so what a kernel failed to write shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from time import perf_counter_ns
from typing import Any

import numpy as np

from tensorgrad.device.base import KernelTime, Limits
from tensorgrad.device.numpy import NumpyRuntime
from tensorgrad.graph import Value
from tensorgrad.lower.evaluate import evaluate
from tensorgrad.lower.expr import from_index
from tensorgrad.lower.index import Var
from tensorgrad.lower.kernel import Attention, Kernel, Line, store_vars
from tensorgrad.lower.lowering import Lowered
from tensorgrad.plan import BufferSpec
from tensorgrad.primitive import REGISTRY

Watch = Callable[[int, Mapping[int, np.ndarray]], None]


def run(lowered: Lowered, leaves: Mapping[str, np.ndarray], watch: Watch | None = None) -> dict[int, np.ndarray]:
    """Runs all kernels once.

    Args:
        leaves: name -> array of every parameter, state and input.
        watch: called after each kernel with its place and the buffers.

    Returns:
        buffer id -> its flat contents after the kernels and the writebacks.
    """
    plan = lowered.memory.plan
    arenas = {name: np.zeros(nbytes, np.uint8) for name, nbytes in plan.arenas.items()}
    buffers: dict[int, np.ndarray] = {
        spec.id: arenas[spec.arena][spec.offset : spec.offset + _nbytes(spec)].view(spec.dtype.numpy)
        for spec in plan.buffers
        if spec.arena is not None
    }
    for spec in plan.buffers:
        if spec.kind in ("param", "state", "input"):
            data = np.array(leaves[spec.name], dtype=spec.dtype.numpy).reshape(-1)
            if spec.arena is None:
                buffers[spec.id] = data
            else:
                buffers[spec.id][...] = data
        elif spec.kind == "const":
            buffers[spec.id] = np.asarray(spec.initial, dtype=spec.dtype.numpy).reshape(-1).copy()
    for i, kernel in enumerate(lowered.kernels):
        run_kernel(lowered, kernel, buffers)
        if watch is not None:
            watch(i, buffers)
    for copy in plan.writebacks:
        data = buffers.get(copy.source)
        if data is not None:
            buffers[copy.dest][: data.size] = data
    return buffers


def _nbytes(spec: BufferSpec) -> int:
    return math.prod(spec.shape) * spec.dtype.itemsize


def result(lowered: Lowered, buffers: Mapping[int, np.ndarray], value: Value, buffer: int) -> np.ndarray:
    """A value's array, from the buffer that holds it."""
    type_ = lowered.graph.type(value)
    held = buffers.get(buffer)
    if held is None:
        return np.zeros(type_.shape, type_.dtype.numpy)
    return held[: type_.size].reshape(type_.shape)


def run_kernel(lowered: Lowered, kernel: Kernel, buffers: dict[int, np.ndarray]) -> None:
    """Runs one kernel on the buffers (by id) that it reads; what it stores goes into them."""
    graph, where, plan = lowered.graph, lowered.memory.where, lowered.memory.plan

    def read(value: Value) -> np.ndarray:
        return buffers[where[value]][: graph.type(value).size]

    acc: dict[Any, np.ndarray] = {}
    if kernel.matmul:
        m = kernel.matmul
        a = _on(m.a, (m.batch, m.m, m.k), read)
        b = _on(m.b, (m.batch, m.k, m.n), read)
        acc = {Value(m.node): np.matmul(a, b), m.m: a.sum(2)[:, :, None], m.n: b.sum(1)[:, None, :]}
    if kernel.attention:
        acc = {**_attention(kernel.attention, read)}
    if kernel.line:
        operands = [_on(e, kernel.vars, read) for e in kernel.line.operands]
        acc = {Value(kernel.line.node): _line(kernel.line, operands)}
    found: list[tuple[Value, np.ndarray, np.ndarray]] = []
    for store in kernel.stores:
        variables = store_vars(store, kernel) if kernel.attention else kernel.vars
        grid, shape = _grid(variables), tuple(v.size for v in variables)
        own = {store.expr.data: acc[store.expr.data]} if kernel.attention else acc
        index = np.broadcast_to(evaluate(from_index(store.index), grid, read, own), shape).reshape(-1)
        data = np.broadcast_to(evaluate(store.expr, grid, read, own), shape).reshape(-1)
        found.append((store.value, index, data))
    for value, index, data in found:
        type_ = graph.type(value)
        target = buffers.get(where[value])
        own = plan.buffers[where[value]].arena is None
        if target is None or (own and value not in kernel.inplace):
            target = np.full(type_.size, np.nan if type_.dtype.is_float else 0, type_.dtype.numpy)
            buffers[where[value]] = target
        target[index] = data.astype(type_.dtype.numpy)


def _attention(a: Attention, read: Callable[[Value], np.ndarray]) -> dict[Value, np.ndarray]:
    """The results of a pass over scores, from its formula (see `Attention`), all scores at once."""
    q, k, v = (
        _on(a.q, (a.batch, a.i, a.e), read),
        _on(a.k, (a.batch, a.j, a.e), read),
        _on(a.v, (a.batch, a.j, a.f), read),
    )
    scores = np.matmul(q, k.swapaxes(1, 2)) * np.float32(a.scale)
    if a.bias is not None:
        scores = scores + _on(a.bias, (a.batch, a.i, a.j), read)
    if a.causal:
        scores = np.where(np.tri(a.i.size, a.j.size, dtype=bool), scores, np.float32(-np.inf))
    if a.g is None or a.lse is None or a.delta is None:
        top = scores.max(axis=2)
        lse = np.log(_softmax(scores, top).sum(axis=2)) + np.where(top == -np.inf, 0, top)
        out = np.matmul(_softmax(scores, lse), v)
        return {Value(a.node, 0): out, Value(a.node, 1): lse}
    g = _on(a.g, (a.batch, a.i, a.f), read)
    lse, delta = (_on(x, (a.batch, a.i), read) for x in (a.lse, a.delta))
    p = _softmax(scores, lse)
    d = p * (np.matmul(g, v.swapaxes(1, 2)) - delta[:, :, None]) * np.float32(a.scale)
    results = (np.matmul(d, k), np.matmul(d.swapaxes(1, 2), q), np.matmul(p.swapaxes(1, 2), g))
    return {Value(a.node, n): x for n, x in enumerate(results)}


def _line(line: Line, operands: list[np.ndarray]) -> np.ndarray:
    """The results of a scan or a sort of rows."""
    if line.op == "sort":
        return np.argsort(operands[0], axis=-1, kind="stable").astype(np.int32)
    return REGISTRY[line.op].eval(np, *operands, reverse=line.reverse)


def _softmax(scores: np.ndarray, lse: np.ndarray) -> np.ndarray:
    """exp(scores) scaled down: by the rows' log-sum-exp, softmax; zeros for rows of -inf."""
    return np.exp(scores - np.where(lse == -np.inf, 0, lse)[:, :, None])


def _grid(variables: tuple[Var, ...]) -> dict[Var, np.ndarray]:
    count = len(variables)
    return {
        v: np.arange(v.size, dtype=np.uint32).reshape([-1 if i == n else 1 for i in range(count)])
        for n, v in enumerate(variables)
    }


def _on(e: object, variables: tuple[Var, ...], read: object) -> np.ndarray:
    out = evaluate(e, _grid(variables), read)  # type: ignore[arg-type]
    return np.broadcast_to(out, tuple(v.size for v in variables))


class InterpretRuntime(NumpyRuntime):
    """A lowered graph on the interpret device, with the methods of `runtime.Runtime`."""

    limits = Limits(adapter="the kernels' expressions, without a GPU", software=True)

    def __init__(
        self,
        lowered: Lowered,
        *,
        outputs: Mapping[str, Value] | None = None,
        store: dict[str, np.ndarray] | None = None,
    ) -> None:
        super().__init__(lowered.graph, outputs=outputs, store=store)
        self.lowered = lowered
        self._evaluate = self._kernels  # called as an Evaluator is

    def _kernels(
        self, values: Mapping[str, np.ndarray], times: list[KernelTime] | None = None
    ) -> dict[Value, np.ndarray]:
        """The values that the reference evaluation would give, from the kernels' buffers."""
        lowered, graph, plan = self.lowered, self.lowered.graph, self.lowered.memory.plan
        before = perf_counter_ns()

        def timed(index: int, _: Mapping[int, np.ndarray]) -> None:
            nonlocal before
            if times is not None:
                kernel, now = lowered.kernels[index], perf_counter_ns()
                times.append(KernelTime(kernel.kind, max(kernel.nodes), float(now - before)))
                before = now

        with np.errstate(all="ignore"):
            buffers = run(lowered, values, timed)
        found = {v: result(lowered, buffers, v, plan.outputs[name]) for name, v in self.outputs.items()}
        found |= {v: result(lowered, buffers, v, plan.grads[name]) for name, v in graph.grads.items()}
        found |= {v: result(lowered, buffers, v, lowered.memory.where[leaf]) for leaf, v in graph.updates.items()}
        return found
