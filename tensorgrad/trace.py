"""The tracer: runs a Python function once and records its operations in a graph.

Operations find the graph that is being built here, so that user code need not pass it
around. Traces do not nest. A traced tensor belongs to one graph; one of another is
refused.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, TypeVar

from tensorgrad.callsite import call_site, called
from tensorgrad.dtypes import DType, Shape, as_dtype, f32, u32
from tensorgrad.errors import ShapeError, TensorgradError, TraceError
from tensorgrad.graph import Graph, IndexRange, Role, TensorType, Value
from tensorgrad.primitive import Primitive
from tensorgrad.tensor import Tensor

T = TypeVar("T")

_RAW = (TypeError, AttributeError, LookupError, ValueError, ArithmeticError)
"""What a wrong argument may come to, deep in the library."""

STEP_SLOTS = 64
"""Numbers that the host sends with every step: the random key, learning rates, bias corrections."""


@dataclass(slots=True, eq=False, repr=False)
class Trace:
    """A trace that runs: its graph, and what depends on how it was started."""

    graph: Graph
    training: bool = False
    names: Mapping[int, str] = field(default_factory=dict)
    leaves: dict[int, Tensor] = field(default_factory=dict)
    """id of a module's parameter or buffer -> its name, and its leaf once it was used."""


_current: Trace | None = None


def current_trace() -> Trace:
    """The running trace.

    Raises:
        TraceError: where none runs.
    """
    if _current is None:
        name = called()
        operator = not name or name.startswith("__")
        what, on_arrays = ("this operation", "lambda x: ...") if operator else (name, f"tg.{name}")
        raise TraceError(
            f"no trace is running, so {what} has no graph to join. Call it inside a function that is given to "
            "tg.compile, tg.compile_forward, tg.jit, tg.grad or tg.trace. "
            f"On arrays: await tg.jit({on_arrays})(array).",
            call_site(),
        )
    return _current


def current_graph() -> Graph:
    return current_trace().graph


def is_tracing() -> bool:
    return _current is not None


@contextmanager
def _running(graph: Graph, training: bool, names: Mapping[int, str]) -> Iterator[None]:
    global _current
    if _current is not None:
        raise TraceError(
            "a trace is running already and traces do not nest: call the inner function directly, "
            "its operations join the running trace",
            call_site(),
        )
    if "einops" in sys.modules:
        import_module("tensorgrad.einops")  # by which einops knows our tensors
    _current = Trace(graph, training, names)
    try:
        yield
    except _RAW as error:
        # what the library means to raise says what is wrong; the module is for the rest, and loaded for it
        if isinstance(error, TensorgradError):
            raise
        from tensorgrad.misuse import argument_error

        found = argument_error(error)
        if found is None:
            raise
        raise found from error
    finally:
        _current = None


def trace(
    fn: Callable[[], Tensor | Sequence[Tensor]], *, training: bool = False, names: Mapping[int, str] | None = None
) -> Graph:
    """Runs `fn` and returns the graph of its operations, with the tensors it returned as outputs.

    Args:
        fn: takes no arguments and returns a Tensor or a sequence of them; makes its leaves with
            `tensor_input`, `param_input` and `state_input`.
        training: what modules such as Dropout see.
        names: `id(parameter) -> name` for the module parameters and buffers that become leaves.

    Raises:
        TraceError: inside another trace, or when `fn` returns something else.

    >>> import tensorgrad as tg
    >>> print(tg.trace(lambda: tg.tensor_input("x", (3,)) + 1.0))  # doctest: +ELLIPSIS
    %0: f32[3] = input x  ...
    %1: f32[]  = const 1.0
    %2: f32[3] = broadcast_to(%1)
    %3: f32[3] = add(%0, %2)
    return %3
    """
    graph = Graph()
    with _running(graph, training, names or {}):
        result = fn()
        results = list(result) if isinstance(result, list | tuple) else [result]
        graph.outputs.extend(own(t).value for t in results)
    return graph


def trace_into(
    graph: Graph, fn: Callable[[], T], *, training: bool = False, names: Mapping[int, str] | None = None
) -> T:
    """Runs `fn` with its operations appended to `graph`; returns what `fn` returns."""
    with _running(graph, training, names or {}):
        return fn()


def own(tensor: Any) -> Tensor:
    """The tensor, if it belongs to the running trace."""
    if not isinstance(tensor, Tensor):
        raise TraceError(f"expected a Tensor of this trace, got {type(tensor).__name__}", call_site())
    if tensor.graph is not current_graph():
        raise TraceError(
            f"this tensor ({tensor.type}) belongs to another trace; pass it into this one as an input", call_site()
        )
    return tensor


def bind(primitive: Primitive, *inputs: Tensor, **attrs: Any) -> Any:
    """Appends an operation to the running trace; returns its result, or a tuple of several."""
    graph = current_graph()
    values = tuple(own(t).value for t in inputs)
    types = primitive.shape(*(graph.type(v) for v in values), **attrs)
    types = types if isinstance(types, tuple) and not isinstance(types, TensorType) else (types,)
    for type_ in types:
        if min(type_.shape, default=0) < 0:
            raise ShapeError(f"{primitive.name}: a size cannot be negative, got {list(type_.shape)}", call_site())
    node = graph.add(primitive.name, values, attrs, types, call_site())
    results = tuple(Tensor(graph, value) for value in node.values)
    return results[0] if len(results) == 1 else results


# Leaves ---------------------------------------------------------------------------


def tensor_input(name: str, shape: Shape, dtype: DType = f32) -> Tensor:
    """A leaf that every step supplies."""
    return _leaf("input", name, shape, dtype)


def param_input(name: str, shape: Shape, dtype: DType = f32) -> Tensor:
    """A leaf that is trained: it lives on the device, and gradients are taken of it."""
    return _leaf("param", name, shape, dtype)


def state_input(name: str, shape: Shape, dtype: DType = f32, initial: float = 0) -> Tensor:
    """A leaf that lives on the device from step to step, filled with `initial` (truncated for integers)."""
    dtype = as_dtype(dtype)
    return _leaf("state", name, shape, dtype, initial if dtype.is_float else int(initial))


def update_state(state: Tensor, value: Tensor) -> None:
    """After the step, `state` (a param or state leaf, or a pack of them) holds `value`.

    Raises:
        TraceError: if it is no such leaf, or another shape or dtype.
    """
    graph = current_graph()
    leaf, new = own(state), own(value)
    node = graph.node(leaf.value)
    if node.op != "pack" and (node.op != "leaf" or node.attrs["role"] == "input"):
        raise TraceError(f"only a parameter or a state can be updated, not the result of {node.op}", call_site())
    if leaf.type != new.type:
        raise TraceError(f"{node.attrs['name']!r} is {leaf.type}, its update {new.type}", call_site())
    graph.updates[leaf.value] = new.value


def updated_state(state: Tensor) -> Tensor:
    """What a state will hold after the updates so far: the state itself where there are none."""
    graph = current_graph()
    return Tensor(graph, graph.updates.get(own(state).value, state.value))


def capture(name: str, tensor: Tensor) -> Tensor:
    """Marks a tensor to be read back with every step under `name`; returns it."""
    graph = current_graph()
    if name in graph.captures:
        raise TraceError(f"capture name {name!r} is used already in this trace", call_site())
    graph.captures[name] = own(tensor).value
    return tensor


def expect_index(
    indices: Tensor, size: int, what: str, first: int = 0, ignored: int | None = None, silent: bool = False
) -> None:
    """Notes that integers have to lie in `first <= i < size`, to explain what comes of others; see `outside`.

    Args:
        what: has so many places, in words: "cross_entropy has 10 classes".
        ignored: a number that is allowed too.
        silent: another number gives no NaN.
    """
    current_graph().ranges.append(IndexRange(own(indices).value, first, size, what, ignored, silent, call_site()))


def _leaf(role: Role, name: str, shape: Shape, dtype: DType, initial: float = 0) -> Tensor:
    graph, dtype = current_graph(), as_dtype(dtype)
    if name in graph.leaves:
        raise TraceError(f"the name {name!r} is used already in this trace; give each leaf its own", call_site())
    attrs = {"name": name, "role": role, "initial": initial}
    node = graph.add("leaf", (), attrs, (TensorType(tuple(map(int, shape)), dtype),), call_site())
    value = graph.leaves[name] = Value(node.id)
    return Tensor(graph, value)


def module_leaf(tensor: Any, role: Role, initial: float = 0) -> Tensor | None:
    """The leaf of a module's parameter or buffer, made on first use; None where the trace has no name for it.

    By identity: a parameter that a module holds under two names is one leaf.
    """
    running = current_trace()
    key = id(tensor)
    if key not in running.leaves:
        if key not in running.names:
            return None
        name = running.names[key]
        known = running.graph.leaves.get(name)
        leaf = Tensor(running.graph, known) if known else _leaf(role, name, tensor.shape, tensor.dtype, initial)
        running.leaves[key] = leaf
    return running.leaves[key]


def step_slot(name: str) -> int:
    """The place of a named host number in the row that every step sends; given out on first use."""
    slots = current_graph().slots
    if name not in slots:
        if len(slots) + 2 >= STEP_SLOTS:
            raise TraceError(f"a step sends at most {STEP_SLOTS - 2} numbers; {name!r} is one too many", call_site())
        slots[name] = len(slots) + 2
    return slots[name]


def step_row() -> Tensor:
    """The u32 row of host numbers, made on first use: seed, call count, then the slots as f32 bits."""
    graph = current_graph()
    if "step" in graph.leaves:
        return Tensor(graph, graph.leaves["step"])
    return _leaf("input", "step", (STEP_SLOTS,), u32)
