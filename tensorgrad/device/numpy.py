"""The numpy device: a graph evaluated node by node with the primitives' reference rules.

It is the fallback where there is no GPU, and the oracle that kernels are compared with.
Nothing is fused and nothing is clever here; what a node means is `Primitive.eval`.
`NumpyRuntime` has the methods of `runtime.Runtime`.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from time import perf_counter_ns
from typing import Any, NamedTuple

import numpy as np

from tensorgrad.callsite import call_site
from tensorgrad.device.base import LOSS_RING, KernelTime, Limits
from tensorgrad.device.batches import Batches, Held
from tensorgrad.device.convert import as_array, check_names
from tensorgrad.dtypes import Shape
from tensorgrad.errors import InputError, TensorgradError
from tensorgrad.graph import Graph, Node, Value
from tensorgrad.ops.arena import parts
from tensorgrad.primitive import REGISTRY

__all__ = ["Evaluator", "NumpyRuntime", "evaluate"]


class _Step(NamedTuple):
    """A node to evaluate, and the values that nobody needs after it."""

    node: Node
    dead: tuple[Value, ...]


class Evaluator:
    """A graph made ready to be evaluated many times.

    Args:
        graph: what to evaluate.
        xp: the array namespace: NumPy, or one like it.
        wanted: the values to keep; by default all that somebody outside the graph sees.
        exact: whether every array must have its declared dtype. False leaves the width of
            floats to the leaves: float64 ones are computed with in float64, to compare with.
    """

    def __init__(
        self, graph: Graph, xp: Any = np, wanted: Iterable[Value] | None = None, *, exact: bool = True
    ) -> None:
        self.graph, self.xp, self.exact = graph, xp, exact
        self.wanted = tuple(dict.fromkeys(graph.roots() if wanted is None else wanted))
        self.steps = _schedule(graph, self.wanted)

    def __call__(self, values: Mapping[str, Any], times: list[KernelTime] | None = None) -> dict[Value, Any]:
        """Evaluates the wanted values.

        Args:
            values: arrays by leaf name. A parameter or state that is not there holds its initial value.
            times: if given, gets the time of every node.
        """
        known: dict[Value, Any] = {}
        with np.errstate(all="ignore"):
            for node, dead in self.steps:
                start = perf_counter_ns() if times is not None else 0
                results = self._evaluate(node, known, values)
                known.update(zip(node.values, results, strict=True))
                for value in dead:
                    del known[value]
                if times is not None:
                    times.append(KernelTime(str(node), node.id, float(perf_counter_ns() - start)))
        return {value: known[value] for value in self.wanted}

    def _evaluate(self, node: Node, known: Mapping[Value, Any], values: Mapping[str, Any]) -> list[Any]:
        if node.op == "leaf":
            results: Any = self._leaf(node, values)
        else:
            results = REGISTRY[node.op].eval(self.xp, *(known[v] for v in node.inputs), **node.attrs)
        # NumPy makes a scalar of what has no axes
        several = results if len(node.types) > 1 else (results,)
        arrays = [self.xp.asarray(array) for array in several]
        for array, type_ in zip(arrays, node.types, strict=True):
            fits = array.dtype == type_.dtype.numpy or (not self.exact and array.dtype.kind == type_.dtype.kind)
            if tuple(array.shape) != type_.shape or not fits:
                raise AssertionError(f"{node} evaluated to {array.dtype}{list(array.shape)}, declared {type_}")
        return arrays

    def _leaf(self, node: Node, values: Mapping[str, Any]) -> Any:
        name, type_ = node.attrs["name"], node.type
        if name in values:
            return values[name]
        if node.attrs["role"] == "input":
            raise InputError(f"missing input {name!r}, {type_}")
        return self.xp.full(type_.shape, node.attrs["initial"], dtype=type_.dtype.numpy)


def _schedule(graph: Graph, wanted: Sequence[Value]) -> list[_Step]:
    """The nodes that the wanted values need, in order, each with what can be dropped after it."""
    needed = {value.node for value in wanted}
    for node in reversed(graph.nodes):
        if node.id in needed:
            needed.update(value.node for value in node.inputs)
    keep, seen = set(wanted), set()
    steps: list[_Step] = []
    for node in reversed(graph.nodes):
        if node.id not in needed:
            continue
        last = [v for v in dict.fromkeys((*node.inputs, *node.values)) if v not in seen]
        seen.update(last)
        steps.append(_Step(node, tuple(v for v in last if v not in keep)))
    return steps[::-1]


def evaluate(graph: Graph, values: Mapping[str, Any], xp: Any = np, *, exact: bool = True) -> dict[Value, Any]:
    """Evaluates a graph with the reference rules.

    Args:
        graph: what to evaluate.
        values: arrays by leaf name. A parameter or state that is not there holds its initial value.
        xp: the array namespace.
        exact: False lets float64 leaves be computed with in float64.

    Returns:
        The array of every value that somebody outside the graph sees: outputs, updates,
        captures and gradients. Some may be views of `values` or read-only.

    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> graph = tg.trace(lambda: tg.tensor_input("x", (3,)) * 2.0)
    >>> evaluate(graph, {"x": np.arange(3, dtype=np.float32)})[graph.outputs[0]]
    array([0., 2., 4.], dtype=float32)
    """
    return Evaluator(graph, xp, exact=exact)(values)


class _Update(NamedTuple):
    """A leaf's next value: some elements of a flat result."""

    name: str
    value: Value
    place: slice
    shape: Shape


def _updates(graph: Graph, leaf: Value, value: Value) -> list[_Update]:
    """The leaves that an update of a leaf, or of a pack of leaves, changes."""
    found = []
    for part, offset in parts(graph, leaf) or [(leaf, 0)]:
        type_ = graph.type(part)
        place = slice(offset, offset + type_.size)
        found.append(_Update(graph.node(part).attrs["name"], value, place, type_.shape))
    return found


class NumpyRuntime:
    """A graph on the numpy device, with the methods of `runtime.Runtime`.

    A step changes parameters and states only when all of it was evaluated, so an
    interrupted step changes nothing.

    Args:
        graph: the step. Its leaves are the inputs, parameters and states.
        outputs: name -> value that `run` can return. By default the graph's captures, and
            its output as `loss` if there is one of a single element, else `0`, `1` and so on.
        store: name -> array of parameters and states, which runtimes may share. What it
            holds is used, and must fit; what it lacks is added.

    Raises:
        InputError: the store holds an array of another shape or dtype under a name.
    """

    limits = Limits(adapter="NumPy, without a GPU", software=True)
    at_once = 1

    def __init__(
        self,
        graph: Graph,
        *,
        outputs: Mapping[str, Value] | None = None,
        store: dict[str, np.ndarray] | None = None,
    ) -> None:
        self.graph = graph
        self.outputs = dict(_named_outputs(graph) if outputs is None else outputs)
        self.store: dict[str, np.ndarray] = {} if store is None else store
        self._evaluate = Evaluator(graph, wanted=(*graph.roots(), *self.outputs.values()))
        self._inputs = {name: graph.type(v) for name, v in graph.names_by_role("input").items()}
        self._params = graph.names_by_role("param")
        self._states = graph.names_by_role("state")
        self._updates = [update for leaf, value in graph.updates.items() for update in _updates(graph, leaf, value)]
        self._grads: dict[str, np.ndarray] = {}
        self._losses: deque[float] = deque(maxlen=LOSS_RING)
        self._destroyed = False
        self._place()

    def _place(self) -> None:
        """Adds what the store lacks."""
        made: dict[str, np.ndarray] = {}
        for name, value in {**self._params, **self._states}.items():
            node, type_ = self.graph.node(value), self.graph.type(value)
            held = self.store.get(name)
            if held is None:
                made[name] = np.full(type_.shape, node.attrs["initial"], type_.dtype.numpy)
            elif held.shape != type_.shape or held.dtype != type_.dtype.numpy:
                raise InputError(f"the store holds {name!r} as {held.dtype}{list(held.shape)}, not {type_}")
        self.store.update(made)

    # -- steps --------------------------------------------------------------------------

    async def step(self, inputs: Mapping[str, Any]) -> float:
        """Run one step and return its loss."""
        self._loss()
        return _number((await self._run(inputs))[self._loss()])

    async def run(self, inputs: Mapping[str, Any], read: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Run one step and return outputs by name; None reads all of them."""
        names = list(self.outputs if read is None else read)
        if unknown := [name for name in names if name not in self.outputs]:
            raise InputError(f"there is no output {unknown[0]!r}; outputs are {sorted(self.outputs)}")
        results = await self._run(inputs)
        if "loss" in self.outputs and "loss" not in names:
            self._losses.append(_number(results[self.outputs["loss"]]))
        return {name: np.array(results[self.outputs[name]], order="C") for name in names}

    async def submit(self, inputs: Mapping[str, Any]) -> None:
        """Run one step and keep its loss for `losses`."""
        results = await self._run(inputs)
        if "loss" in self.outputs:
            self._losses.append(_number(results[self.outputs["loss"]]))

    async def upload_batches(self, arrays: Mapping[str, np.ndarray], count: int) -> Batches:
        """Keep `count` values of some inputs, along the arrays' first axis, for `run_steps`."""
        self._check_alive()
        types = {name: self._inputs[name] for name in arrays}
        held = {name: Held(types[name].shape, types[name].dtype, array.copy()) for name, array in arrays.items()}
        return Batches(None, count, held)

    async def run_steps(self, batches: Batches, first: int, count: int, own: Mapping[str, np.ndarray]) -> np.ndarray:
        """Run `count` steps and return their losses; see `runtime.Runtime.run_steps`."""
        batches.check(None, {name: (t.shape, t.dtype) for name, t in self._inputs.items() if name not in own})
        losses = []
        for i in range(count):
            inputs = {name: held.place[(first + i) % batches.count] for name, held in batches.inputs.items()}
            losses.append(await self.step({**inputs, **{name: values[i] for name, values in own.items()}}))
        return np.array(losses, self.graph.type(self._loss()).dtype.numpy)

    async def losses(self) -> np.ndarray:
        """The losses of all steps whose loss was not returned yet, oldest first; at most 1,024."""
        self._check_alive()
        dtype = self.graph.type(self._loss()).dtype.numpy
        unread = np.array(self._losses, dtype)
        self._losses.clear()
        return unread

    async def profile(self, inputs: Mapping[str, Any]) -> list[KernelTime]:
        """Run one step, which counts as any other, and return the time of every node."""
        times: list[KernelTime] = []
        await self._run(inputs, times)
        return times

    async def _run(self, inputs: Mapping[str, Any], times: list[KernelTime] | None = None) -> dict[Value, Any]:
        await asyncio.sleep(0)  # lets a page breathe; from here to the end nothing else runs
        self._check_alive()
        check_names("inputs", inputs, self._inputs)
        values = {n: as_array(f"input {n!r}", inputs[n], t.shape, t.dtype) for n, t in self._inputs.items()}
        results = self._evaluate(self.store | values, times)
        new = {u.name: np.array(results[u.value].reshape(-1)[u.place].reshape(u.shape)) for u in self._updates}
        grads = {name: np.array(results[value], order="C") for name, value in self.graph.grads.items()}
        self.store.update(new)
        self._grads = grads
        return results

    # -- parameters and states ------------------------------------------------------------

    def upload(self, values: Mapping[str, Any], *, strict: bool = False) -> None:
        """Overwrite parameters and states by name; `strict` wants every one of them."""
        self._upload("parameters and states", {**self._params, **self._states}, values, strict)

    def upload_params(self, params: Mapping[str, Any], strict: bool = True) -> None:
        """Overwrite the parameters; `strict` wants every one of them."""
        self._upload("parameters", self._params, params, strict)

    def upload_states(self, states: Mapping[str, Any], strict: bool = True) -> None:
        """Overwrite the states, as `upload_params` does parameters."""
        self._upload("states", self._states, states, strict)

    async def download(self, names: Iterable[str] | None = None) -> dict[str, np.ndarray]:
        """Parameters and states by name; None is all of them."""
        return self._download("parameters and states", {**self._params, **self._states}, names)

    async def download_params(self) -> dict[str, np.ndarray]:
        """All parameters by name."""
        return self._download("parameters", self._params)

    async def download_states(self) -> dict[str, np.ndarray]:
        """All states by name."""
        return self._download("states", self._states)

    async def download_param_grads(self) -> dict[str, np.ndarray]:
        """The gradients of the last step, by parameter name; zeros before the first."""
        self._check_alive()
        if self._params and not self.graph.grads:
            raise TensorgradError("this graph keeps no gradients after a step; compile with keep_grads=True")
        types = {name: self.graph.type(value) for name, value in self.graph.grads.items()}
        zeros = {name: np.zeros(t.shape, t.dtype.numpy) for name, t in types.items()}
        return {name: array.copy() for name, array in {**zeros, **self._grads}.items()}

    def _upload(self, what: str, leaves: Mapping[str, Value], values: Mapping[str, Any], strict: bool) -> None:
        self._check_alive()
        check_names(what, values, leaves if strict else [n for n in leaves if n in values])
        ready: dict[str, np.ndarray] = {}
        for name, value in values.items():
            type_ = self.graph.type(leaves[name])
            ready[name] = as_array(f"{what} {name!r}", value, type_.shape, type_.dtype).copy()
        self.store.update(ready)

    def _download(
        self, what: str, leaves: Mapping[str, Value], names: Iterable[str] | None = None
    ) -> dict[str, np.ndarray]:
        self._check_alive()
        chosen = list(leaves if names is None else names)
        if unknown := [name for name in chosen if name not in leaves]:
            check_names(what, [*leaves, *unknown], leaves)
        return {name: self.store[name].copy() for name in chosen}

    # -- life -------------------------------------------------------------------------------

    def destroy(self) -> None:
        """Forget the graph's results; a given store lives on. Safe twice."""
        self._destroyed = True
        self._grads.clear()
        self._losses.clear()

    def _check_alive(self) -> None:
        if self._destroyed:
            raise TensorgradError("this runtime was destroyed; compile again to get another", call_site())

    def _loss(self) -> Value:
        if "loss" not in self.outputs:
            raise TensorgradError("this graph has no output named 'loss'; call run() and read its outputs by name")
        return self.outputs["loss"]

    def __repr__(self) -> str:
        state = ", destroyed" if self._destroyed else ""
        count = sum(math.prod(a.shape) * a.itemsize for a in self.store.values())
        return f"NumpyRuntime({len(self.graph.nodes)} nodes, {count:,} bytes of parameters and states{state})"


def _number(loss: Any) -> float:
    return np.asarray(loss).reshape(()).item()


def _named_outputs(graph: Graph) -> dict[str, Value]:
    single = len(graph.outputs) == 1 and graph.type(graph.outputs[0]).size == 1
    names = ["loss"] if single else map(str, range(len(graph.outputs)))
    return {**dict(zip(names, graph.outputs, strict=True)), **graph.captures}
