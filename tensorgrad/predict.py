"""Compiled functions without a training step: predictions on a state, one program a shape."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tensorgrad.callsite import call_site
from tensorgrad.compiled import Built
from tensorgrad.debug import stage
from tensorgrad.device.base import Limits
from tensorgrad.dtypes import f32, i32
from tensorgrad.errors import InputError, TraceError
from tensorgrad.graph import Graph, Value
from tensorgrad.inspect import CheckReport, Inspected
from tensorgrad.nn.module import Module
from tensorgrad.ops import cast, reshape, stop_gradient, where
from tensorgrad.outside import Positions
from tensorgrad.passes import optimize
from tensorgrad.program import Recipe
from tensorgrad.state import State, open_state
from tensorgrad.structure import Structure, is_nest, parts, rebuild
from tensorgrad.tensor import Tensor
from tensorgrad.trace import current_trace, module_leaf, state_input, tensor_input, trace_into

CACHED = 8
"""Programs that a function with open sizes keeps, the last used ones."""


class Outputs(NamedTuple):
    """A traced function's result: its form, with names where tensors were."""

    form: Any
    values: dict[str, Value]


class Averages(NamedTuple):
    """Which optimizer's averages of the weights to use: its prefix, and the step that first makes them."""

    prefix: str
    first: int


class _Program(NamedTuple):
    built: Built
    names: tuple[str, ...]
    form: Any
    row: np.ndarray
    positions: Positions


class Predictor(Inspected):
    """A function of a model, compiled for each shape that it is called with. Made by `attach` and `compile_forward`.

    Awaiting a call gives NumPy arrays in the form that the function returned its tensors in.
    """

    def __init__(
        self, state: State, fn: Callable[..., Any], inputs: Structure, training: bool, averages: Averages | None = None
    ) -> None:
        self.state, self.fn, self.inputs, self.training = state, fn, inputs, training
        self.averages = averages
        state.check_inputs(inputs.leaves)
        inputs.check_call("the function", fn)
        self._programs: OrderedDict[tuple[tuple[int, ...], ...], _Program] = OrderedDict()
        self._store: Any = None

    def __repr__(self) -> str:
        return f"<Predictor of {self.state}; await it as predict({self.inputs})>"

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the function on inputs in its structure, or as keywords.

        Raises:
            InputError: names, shapes or dtypes that do not fit.

        An index or a label out of range gives NaN, and a warning that names it.
        """
        inputs = self.inputs.flatten(args, kwargs)
        async with self.state.turns:
            program = await self._prepare(inputs)
            with self.state.running("step" in inputs):
                found = await program.built.executor.run(inputs, program.names)
        program.positions.explain(inputs, found.values())
        return fill(program.form, found)

    async def check(self, *args: Any, **kwargs: Any) -> CheckReport:
        """Runs the function on these inputs under the oracles; see `Train.check`.

        Raises:
            CheckError: names the first kernel that differs from the reference.
        """
        inputs = self.inputs.flatten(args, kwargs)
        async with self.state.turns:
            await self._prepare(inputs)
            return await self._check(inputs)

    async def _prepare(self, inputs: dict[str, Any]) -> _Program:
        """The program for inputs of these shapes; adds the host's numbers to them."""
        program = await self._program(self.inputs.shapes(inputs))
        if "step" in program.built.interface.inputs:
            program.row[0], program.row[1] = self.state.seed % 2**32, self.state.calls % 2**32
            inputs["step"] = program.row
        return program

    async def _program(self, shapes: tuple[tuple[int, ...], ...]) -> _Program:
        state = self.state
        if self._store is not state.store:  # the state has moved to another device
            self.destroy()
            self._store = state.store
        program = self._programs.get(shapes)
        if program is None:
            recipe, form = self._trace(self.inputs.concrete(shapes))
            built = await state.build(recipe)
            positions = Positions(recipe.forward)
            program = self._programs[shapes] = _Program(built, recipe.names, form, state.row(), positions)
            if len(self._programs) > CACHED:
                _, oldest = self._programs.popitem(last=False)
                oldest.built.executor.destroy()
            self._compiled()
        self._programs.move_to_end(shapes)
        return program

    def destroy(self) -> None:
        """Frees its programs; the state's tensors live on, and the next call compiles again."""
        while self._programs:
            self._programs.popitem()[1].built.executor.destroy()

    def _trace(self, structure: Structure) -> tuple[Recipe, Any]:
        graph = Graph()

        def run() -> Outputs:
            leaves = {n: tensor_input(n, spec.static_shape, spec.dtype) for n, spec in structure.leaves.items()}
            if self.averages is not None:
                use_averages(self.state, *self.averages)
            return collect(graph, structure.call(self.fn, self.state.module, leaves))

        with stage("trace"):
            outputs = trace_into(graph, run, training=self.training, names=self.state.names)
        return function_recipe(graph, outputs), outputs.form

    @property
    def built(self) -> Built | None:
        """The program that was used last."""
        return next(reversed(self._programs.values())).built if self._programs else None

    @property
    def title(self) -> str:
        return f"{name_of(self.fn)} of {type(self.state.module).__name__}"

    def _inspected(self) -> Built:
        built = self.built
        if built is None:
            raise InputError("nothing is compiled before the first call tells the shapes; call it once", call_site())
        return built


def use_averages(state: State, prefix: str, first: int) -> None:
    """In the running trace, parameters stand for the averages that an optimizer keeps of them.

    Before there are any, and where it does not train them, they stand for themselves.
    """
    stem, leaves = f"{prefix}.ema.", current_trace().leaves
    started = state_input(f"{prefix}.counted", (), i32) >= first
    arenas = {name: state_input(name, *type_) for name, type_ in state.arenas.items() if name.startswith(stem)}
    found = {p.name: reshape(arenas[name][p.place], *p.shape) for name in arenas for p in state.packs[name]}
    for key, name in state.names.items():
        if stem + name in state.kinds:
            param = module_leaf(state.tensors[name], "param")
            assert param is not None
            average = found[stem + name] if stem + name in found else state_input(stem + name, param.shape, f32)
            leaves[key] = where(started, cast(average, param.dtype), param)


def name_of(fn: Callable[..., Any]) -> str:
    """A function as its user calls it."""
    return getattr(fn, "__name__", type(fn).__name__)


def function_recipe(graph: Graph, outputs: Outputs) -> Recipe:
    """What compiles to a traced function."""
    graph.outputs.extend(outputs.values.values())

    def finish(limits: Limits) -> Graph:
        with stage("passes"):
            return optimize(graph, limits)

    return Recipe(finish, tuple(outputs.values), graph, (graph,), call_site())


def collect(graph: Graph, result: Any) -> Outputs:
    """Names every tensor of a result; `fill` puts arrays in their places.

    Raises:
        TraceError: for anything but tensors in tuples, lists and mappings.
    """
    values: dict[str, Value] = {}

    def visit(part: Any, path: str) -> Any:
        if isinstance(part, Tensor):
            name = path or "result"
            while name in values:  # {"a.b": x, "a": {"b": y}}
                name += "'"
            # a leaf is returned through a buffer of its own
            own = stop_gradient(part) if graph.leaf_name(part.value) else part
            values[name] = own.value
            return name
        if is_nest(part):
            return rebuild(part, (visit(child, f"{path}.{key}".lstrip(".")) for key, child in parts(part)))
        raise TraceError(
            f"the function must return tensors (in tuples, lists or mappings), got {type(part).__name__}", call_site()
        )

    return Outputs(visit(result, ""), values)


def fill(form: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """The form with each name replaced by its array."""
    if isinstance(form, str):
        return arrays[form]
    return rebuild(form, (fill(child, arrays) for _, child in parts(form)))


async def compile_forward(
    model: Module,
    fn: Callable[..., Any],
    inputs: Any,
    *,
    state: State | None = None,
    device: Any = None,
    seed: int | None = None,
) -> Predictor:
    """Compiles a function of a model, without training it.

    Args:
        model: the module.
        fn: `fn(model, **inputs)` (or `*inputs`); returns a Tensor or a tuple, list or mapping of them.
        inputs: specs; a None size takes any.
        state, device, seed: as in `tg.compile`.
    """
    return Predictor(await open_state(model, state, device, seed), fn, Structure(inputs), False)
