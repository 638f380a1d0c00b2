"""Function transforms for the REPL: `jit`, `grad` and `value_and_grad` of functions of arrays.

Outside a trace a transformed function is called with arrays and awaited: it is traced,
compiled for the shapes that it meets, and run. Inside a trace it is a plain call whose
operations join the running trace.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tensorgrad.autodiff import append_grad
from tensorgrad.backend import Backend, open_backend
from tensorgrad.callsite import call_site
from tensorgrad.checks import is_whole
from tensorgrad.compiled import Built
from tensorgrad.dtypes import DType
from tensorgrad.errors import InputError, ShapeError, TraceError
from tensorgrad.graph import Graph
from tensorgrad.inspect import Inspected
from tensorgrad.ops.core import host_array, tensor
from tensorgrad.outside import Positions
from tensorgrad.predict import CACHED, collect, fill, function_recipe, name_of
from tensorgrad.structure import is_nest, parts, rebuild
from tensorgrad.tensor import Tensor
from tensorgrad.trace import STEP_SLOTS, is_tracing, tensor_input, trace_into
from tensorgrad.turns import Turns

Argnums = int | tuple[int, ...]


def jit(fn: Callable[..., Any], *, device: Any = None, seed: int = 0) -> Callable[..., Any]:
    """A function that runs compiled.

    Args:
        fn: takes arrays, or nests of them, and returns tensors, or nests of them. Floats and lists of
            numbers are arrays; whole numbers, strings and None are static: another one compiles anew.
        device: as in `tg.compile`.
        seed: of the random numbers; each call draws others.

    Returns:
        A function of the same arguments: outside a trace it must be awaited and gives NumPy arrays,
        inside one it is called plainly and gives tensors.

    >>> import asyncio
    >>> import numpy as np
    >>> import tensorgrad as tg
    >>> double = tg.jit(lambda x: x * 2 + 1, device="numpy")
    >>> asyncio.run(double(np.arange(3.0)))
    array([1., 3., 5.], dtype=float32)
    """
    compiled = _Compiled(fn, device, seed)

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs) if is_tracing() else compiled(args, kwargs)

    return call


def grad(fn: Callable[..., Tensor], argnums: Argnums = 0, *, device: Any = None) -> Callable[..., Any]:
    """The gradient of a function that returns a scalar, with respect to some of its arguments.

    Args:
        fn: returns one float; its differentiated arguments are float arrays or nests of them.
        argnums: which positional arguments; a tuple gives a tuple of gradients.
        device: as in `tg.compile`.

    >>> import asyncio
    >>> import tensorgrad as tg
    >>> slope = tg.grad(lambda x: x**3, device="numpy")
    >>> float(asyncio.run(slope(2.0)))
    12.0
    >>> float(asyncio.run(tg.grad(slope, device="numpy")(2.0)))  # the second derivative
    12.0
    """
    both = _value_and_grad(fn, argnums)

    @functools.wraps(fn)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[1]

    return jit(gradient, device=device)


def value_and_grad(fn: Callable[..., Tensor], argnums: Argnums = 0, *, device: Any = None) -> Callable[..., Any]:
    """The value of a function that returns a scalar, and its gradient; see `grad`."""
    return jit(_value_and_grad(fn, argnums), device=device)


def _value_and_grad(fn: Callable[..., Tensor], argnums: Argnums) -> Callable[..., tuple[Tensor, Any]]:
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    if not all(is_whole(n) for n in numbers):
        raise InputError(f"argnums is a position or a tuple of positions, got {argnums!r}", call_site())

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> tuple[Tensor, Any]:
        if any(not -len(args) <= n < len(args) for n in numbers):
            raise InputError(f"argnums {argnums} names an argument beyond the {len(args)} given", call_site())
        arguments = list(args)
        for n in numbers:
            arguments[n] = _arrays(args[n], lambda _, array: tensor(array))
        wrt = [_tensors(arguments[n]) for n in numbers]
        value = fn(*arguments, **kwargs)
        if not isinstance(value, Tensor) or value.size != 1:
            what = value.type if isinstance(value, Tensor) else type(value).__name__
            raise ShapeError(f"grad needs a function that returns one number, this one returned {what}", call_site())
        flat = append_grad(value, [t for part in wrt for t in part])
        grads, start = [], 0
        for n, part in zip(numbers, wrt, strict=True):
            grads.append(_refill(arguments[n], iter(flat[start : start + len(part)])))
            start += len(part)
        return value, tuple(grads) if isinstance(argnums, tuple) else grads[0]

    return call


def _tensors(nest: Any) -> list[Tensor]:
    if isinstance(nest, Tensor):
        if not nest.dtype.is_float:
            raise InputError(f"gradients are of floats; this argument is {nest.type}", call_site())
        return [nest]
    if is_nest(nest):
        return [t for _, child in parts(nest) for t in _tensors(child)]
    hint = f"; {nest!r} is static, write {float(nest)!r}" if type(nest) in (int, bool) else ""
    raise InputError(f"a differentiated argument must be of arrays, got {type(nest).__name__}{hint}", call_site())


def _refill(nest: Any, tensors: Iterator[Tensor]) -> Any:
    if isinstance(nest, Tensor):
        return next(tensors)
    return rebuild(nest, (_refill(child, tensors) for _, child in parts(nest)))


class _Program(NamedTuple):
    built: Built
    names: tuple[str, ...]
    form: Any
    positions: Positions


class _Leaf(NamedTuple):
    """An array argument in a call's form."""

    name: str


class _Compiled(Inspected):
    """Programs of one function, by the shapes and static arguments of its calls."""

    def __init__(self, fn: Callable[..., Any], device: Any, seed: int) -> None:
        self.fn, self.device, self.seed = fn, device, seed
        self.calls = 0
        self.backend: Backend | None = None
        self.programs: OrderedDict[Any, _Program] = OrderedDict()
        self.turns = Turns()

    @property
    def title(self) -> str:
        return f"jit of {name_of(self.fn)}"

    def _inspected(self) -> Built:
        if not self.programs:
            raise InputError("nothing is compiled before the first call tells the shapes; call it once", call_site())
        return next(reversed(self.programs.values())).built

    async def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        arrays: dict[str, np.ndarray] = {}

        def leaf(path: str, value: Any) -> _Leaf:
            if path in arrays:  # {"a.b": x, "a": {"b": y}}
                raise InputError(f"two arguments are named {path!r}", call_site())
            arrays[path], _ = host_array(value)
            return _Leaf(path)

        form = _arrays(args, leaf, "arg"), _arrays(kwargs, leaf, "kwarg")
        async with self.turns:
            return await self._run(form, arrays)

    async def _run(self, form: Any, arrays: Mapping[str, np.ndarray]) -> Any:
        types = {name: (array.shape, host_array(array)[1]) for name, array in arrays.items()}
        backend = await self._open()
        key = (repr(form), tuple(types.items()))
        program = self.programs.get(key)
        if program is None:
            program = self.programs[key] = await self._build(backend, form, types)
            if len(self.programs) > CACHED:
                self.programs.popitem(last=False)[1].built.executor.destroy()
            self._compiled()
        self.programs.move_to_end(key)
        names = program.built.interface.inputs  # an argument without effect has none
        inputs: dict[str, Any] = {name: array for name, array in arrays.items() if name in names}
        if "step" in names:
            inputs["step"] = np.zeros(STEP_SLOTS, np.uint32)
            inputs["step"][:2] = self.seed % 2**32, self.calls % 2**32
        self.calls += 1
        found = await program.built.executor.run(inputs, program.names)
        program.positions.explain(arrays, found.values())
        return fill(program.form, found)

    async def _open(self) -> Backend:
        """The device; after it was lost, a new one."""
        if self.backend is None or self.backend.lost is not None:
            self.backend = await open_backend(self.device)
            while self.programs:
                self.programs.popitem()[1].built.executor.destroy()
        return self.backend

    async def _build(self, backend: Backend, form: Any, types: dict[str, tuple[tuple[int, ...], DType]]) -> _Program:
        graph = Graph()

        def run() -> Any:
            leaves = {name: tensor_input(name, shape, dtype) for name, (shape, dtype) in types.items()}
            args, kwargs = (_call_form(part, leaves) for part in form)
            return collect(graph, self.fn(*args, **kwargs))

        outputs = trace_into(graph, run)
        if graph.updates:
            name = graph.leaf_name(next(iter(graph.updates)))
            raise TraceError(f"a jitted function keeps no state, but updates {name!r}; use tg.compile", call_site())
        recipe = function_recipe(graph, outputs)
        built = await backend.build(await backend.compile(recipe), backend.store(), {})
        return _Program(built, recipe.names, outputs.form, Positions(graph))


def _arrays(value: Any, leaf: Callable[[str, Any], Any], path: str = "") -> Any:
    """Arguments with `leaf(path, array)` for arrays; floats are arrays, so that a new number compiles nothing."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if is_nest(value) and not _is_numeric(value):
        return rebuild(value, (_arrays(child, leaf, f"{path}.{key}") for key, child in parts(value)))
    if callable(value) and not hasattr(value, "__array__"):
        raise InputError(f"a jitted function takes arrays and static values, got {type(value).__name__}", call_site())
    return leaf(path, value)


def _is_numeric(value: Any) -> bool:
    """A list of numbers (or of such lists) is an array; one with arrays or strings in it is a nest."""
    if isinstance(value, list | tuple):
        return bool(value) and isinstance(value, list) and all(_is_numeric(child) for child in value)
    return isinstance(value, bool | int | float)


def _call_form(form: Any, leaves: Mapping[str, Tensor]) -> Any:
    if isinstance(form, _Leaf):
        return leaves[form.name]
    if is_nest(form):
        return rebuild(form, (_call_form(child, leaves) for _, child in parts(form)))
    return form
