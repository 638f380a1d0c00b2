"""What outlives a step: parameters, buffers, optimizer state, step count and random counter.

A `State` belongs to one module on one device. Training steps and predictors that share it
see each other's updates at once. The module itself keeps initial values only.
"""

from __future__ import annotations

import itertools
import operator
import secrets
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from tensorgrad.backend import Backend, open_backend
from tensorgrad.callsite import call_site
from tensorgrad.compiled import Built
from tensorgrad.errors import CheckpointError, InputError, UnsupportedError
from tensorgrad.graph import TensorType
from tensorgrad.nn.module import Module, leaf_names, match_module, state_names
from tensorgrad.nn.parameter import Draw, Parameter
from tensorgrad.nn.state import IncompatibleKeys, match_state, require_state
from tensorgrad.program import Interface, Part, Recipe
from tensorgrad.trace import STEP_SLOTS
from tensorgrad.turns import Turns

T = TypeVar("T")


class Spans(NamedTuple):
    """Bytes of the arenas in which the optimizer's and the model's own states may lie together; 0: each by itself."""

    optimizer: int
    gate: int


class Client(Protocol):
    """What a state builds again on another device: a training step."""

    spans: Spans | None

    async def build(self) -> Built: ...

    def use(self, built: Built) -> None: ...


def steps_name(prefix: str) -> str:
    """The state that counts an optimizer's steps that were not skipped.

    It is updated by the same gate as the parameters, so that it is right after an interrupt
    and after a loss that nobody read.
    """
    return f"{prefix}.steps"


class State:
    """Parameters, buffers and optimizer state of a module on a device.

    Args:
        module: whose parameters; read once, for names and initial values.
        backend: the device.
        seed: of the random numbers; None draws one, which `seed` reports.
    """

    def __init__(self, module: Module, backend: Backend, seed: int | None = None) -> None:
        if not isinstance(module, Module):
            raise InputError(f"the model must be an nn.Module, got {type(module).__name__}", call_site())
        self.module, self.backend = module, backend
        self.seed = secrets.randbits(32) if seed is None else _seed(seed)
        self.calls = 0
        self.counts: dict[str, int] = {}
        self._optimizers: dict[str, Any] = {}
        self._entered: Counter[str] = Counter()
        self._names = leaf_names(module)
        self.keys = state_names(module)
        self.tensors: dict[str, Parameter] = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        self.values: dict[str, np.ndarray | Draw] = {name: tensor.initial() for name, tensor in self.tensors.items()}
        self.store = backend.store()
        self.placed: set[str] = set()
        self.packs: dict[str, tuple[Part, ...]] = {}
        self.kinds: dict[str, TensorType] = {}
        self.arenas: dict[str, TensorType] = {}
        self.initial: dict[str, float] = {}
        self.unsure = False
        self.turns = Turns()
        self._clients: weakref.WeakKeyDictionary[Client, None] = weakref.WeakKeyDictionary()

    def __str__(self) -> str:
        size = sum(p.size for p in self.module.parameters())
        return f"{type(self.module).__name__}, {size:,} parameters on {self.backend.name}, steps made: {self.steps:,}"

    @property
    def names(self) -> dict[int, str]:
        """`id -> name` of the module's parameters and buffers, for a trace.

        Raises:
            InputError: the module has others than when the state was made.
        """
        if (now := leaf_names(self.module)) != self._names:
            other = sorted({name for _, name in now.items() ^ self._names.items()})
            raise InputError(
                f"{', '.join(map(repr, other))} of the module came, went or changed since its state was made; "
                "compile it without state=",
                call_site(),
            )
        return self._names

    @property
    def trainable(self) -> frozenset[str]:
        """Names of the parameters that an optimizer updates."""
        return frozenset(name for name, tensor in self.tensors.items() if tensor.requires_grad)

    @property
    def steps(self) -> int:
        """Steps that were made and not skipped, of all optimizers together.

        As the host knows it: a step that was interrupted, or queued and skipped for what is not finite,
        shows once the device was asked (`unsure`): by the next step, `losses` or `state_dict`.
        """
        return sum(self.counts.values())

    @contextmanager
    def entering(self, optimizer: Any) -> Iterator[None]:
        """Gives an optimizer a prefix of its own for its states: `optim`, `optim2` and so on.

        Where the block fails, an optimizer that is used nowhere else leaves, so that the next one has its names.
        """
        known = next((prefix for prefix, other in self._optimizers.items() if other is optimizer), None)
        free = (f"optim{n}" if n > 1 else "optim" for n in itertools.count(1))
        optimizer.prefix = known or next(prefix for prefix in free if prefix not in self._optimizers)
        prefix = optimizer.prefix
        self._optimizers[prefix] = optimizer
        self.counts.setdefault(prefix, 0)
        self._entered[prefix] += 1
        try:
            yield
        except BaseException:
            self._entered[prefix] -= 1
            if not self._entered[prefix]:
                del self._optimizers[prefix], self.counts[prefix]
            raise

    def check_inputs(self, names: Iterable[str]) -> None:
        """Raises InputError for an input that has the name of a parameter, or of the row of host numbers."""
        leaves = set(self.names.values())
        for name in names:
            if name in leaves or name == "step":
                whose = "a parameter or buffer of the model" if name in leaves else "the library's own input"
                raise InputError(f"the input {name!r} has the name of {whose}; give it another name", call_site())

    def spans(self, prefix: str, before: Spans | None = None) -> Spans:
        """How the states of a training step lie; the caller holds the turn and builds it in the same.

        Tensors that have their places already are updated one by one, unless the same optimizer has placed them.

        Args:
            prefix: of the optimizer.
            before: on the device that the step moves from; what lay together there does so here.
        """
        packed = any(name.startswith(f"{prefix}.") for name in self.packs)
        together = before or (packed or not self.placed, not self.placed)
        return Spans(*(self.backend.limits.binding_size if so else 0 for so in together))

    async def build(self, recipe: Recipe, prefix: str | None = None) -> Built:
        """A program on the device, its new parameters and buffers with their values; the caller holds the turn.

        Args:
            prefix: of the optimizer that it has, if it has one.
        """
        compiled = await self.backend.compile(recipe)
        interface = compiled.interface
        if prefix is not None:
            self._check_packs(interface, prefix)
        new = interface.held.keys() - self.placed
        values = {name: self.values[name] for name in new if name in self.values}
        built = await self.backend.build(compiled, self.store, values)
        self.placed |= new
        self.packs.update(interface.packs)
        for name in new - self.values.keys():
            type_, initial = interface.held[name]
            shapes = {p.name: p.shape for p in self.packs[name]} if name in self.packs else {name: type_.shape}
            if name in self.packs:
                self.arenas[name] = type_
            self.kinds |= {part: TensorType(shape, type_.dtype) for part, shape in shapes.items()}
            self.initial.update(dict.fromkeys(shapes, float(initial)))
        return built

    def _check_packs(self, interface: Interface, prefix: str) -> None:
        """Raises InputError where an optimizer's state lies otherwise than an earlier program has laid it out."""
        if not any(name.startswith(f"{prefix}.") for name in self.packs):
            return
        if interface.packs != {name: parts for name, parts in self.packs.items() if name.startswith(f"{prefix}.")}:
            raise InputError(
                "this loss trains other parameters, or meets them in another order, than the loss that the "
                "optimizer was first compiled with; give it an optimizer of its own",
                call_site(),
            )

    def enroll(self, client: Client) -> None:
        """Has a training step built again where `move` goes."""
        self._clients[client] = None

    def dismiss(self, client: Client) -> None:
        """Has it not built again any more."""
        self._clients.pop(client, None)

    async def move(self, backend: Backend) -> None:
        """Goes to another device, with the values of the last upload; the caller holds the turn.

        Where that fails, everything stays where it is.
        """
        before, found = vars(self).copy(), dict[Client, Built]()
        self.backend, self.store = backend, backend.store()
        # what no program needs any more, such as the momenta of one that is gone, stays behind
        self.placed, self.packs, self.kinds, self.arenas, self.initial = set(), {}, {}, {}, {}
        self.counts = dict.fromkeys(self.counts, 0)
        # others use tensors wherever they are; one that lays them together has to come first
        clients = sorted(self._clients, key=lambda client: -sum(map(bool, client.spans or ())))
        try:
            for client in clients:
                found[client] = await client.build()
        except BaseException:
            vars(self).update(before)
            for built in found.values():
                built.executor.destroy()
            raise
        for client, built in found.items():
            client.use(built)

    def running(self, calls: int = 1) -> _Running:
        """Around a run on the device, which counts as so many calls unless it was refused."""
        return _Running(self, calls)

    def row(self) -> np.ndarray:
        """A row of host numbers, with the seed in it."""
        row = np.zeros(STEP_SLOTS, np.uint32)
        row[0] = self.seed % 2**32
        return row

    async def read(self, names: Collection[str]) -> dict[str, np.ndarray]:
        """Copies of some parameters and buffers as they are now, on the device or before they are there."""
        found = {name: np.array(self.values[name]) for name in names if name not in self.placed}
        return found | await self.backend.read(self.store, sorted(self.placed.intersection(names)))

    async def download(self) -> dict[str, np.ndarray]:
        """Every parameter, buffer and optimizer state by name, one array a parameter."""
        found = await self.read(self.values.keys() | self.placed)
        for name in self.packs:
            flat = found.pop(name)
            found.update({p.name: flat[p.place].reshape(p.shape).copy() for p in self.packs[name]})
        return found

    async def upload(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Overwrites parameters, buffers and optimizer state by name."""
        self.values.update({name: array.copy() for name, array in arrays.items() if name in self.values})
        arrays = {**arrays, **await self._packed(arrays)}
        self.backend.write(self.store, {name: array for name, array in arrays.items() if name in self.placed})

    async def _packed(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The packed states of which `arrays` has a part, with those parts replaced."""
        found: dict[str, np.ndarray] = {}
        for name, parts in self.packs.items():
            if given := [p for p in parts if p.name in arrays]:
                flat = (await self.backend.read(self.store, [name]))[name]
                for part in given:
                    flat[part.place] = arrays[part.name].reshape(-1)
                found[name] = flat
        return found

    async def recount(self) -> None:
        """Reads the numbers of steps back from the device."""
        names = {prefix: steps_name(prefix) for prefix in self.counts if steps_name(prefix) in self.placed}
        found = await self.backend.read(self.store, list(names.values()))
        self.counts.update({prefix: int(found[name]) for prefix, name in names.items()})
        self.unsure = False

    async def state_dict(self) -> dict[str, Any]:
        """All that an exact resume needs, as host arrays.

        Returns:
            `model`: the module's parameters and buffers by PyTorch's names; `optimizer`: the optimizer's
            states, its count of steps among them; `calls` and `seed`: whole numbers.
        """
        async with self.turns:
            await self.recount()
            arrays = await self.download()
        return {
            "model": {key: arrays[name] for key, name in self.keys.items()},
            "optimizer": {name: array for name, array in arrays.items() if name not in self.values},
            "calls": self.calls,
            "seed": self.seed,
        }

    async def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> IncompatibleKeys:
        """Loads what `state_dict` gave; all of it is checked before anything changes.

        Args:
            state_dict: of this form, or the `model` part alone (weights from elsewhere).
            strict: False skips names that are missing or unknown, and returns them.

        Raises:
            CheckpointError: lists all that is missing, unexpected or misshapen.
        """
        async with self.turns:
            return await self.load(state_dict, strict)

    async def load(self, state_dict: Mapping[str, Any], strict: bool = True) -> IncompatibleKeys:
        """As `load_state_dict`, for a caller who holds the turn."""
        require_state(state_dict)
        whole = isinstance(state_dict.get("model"), Mapping)
        parts = state_dict if whole else {"model": state_dict}
        problems: list[str] = []
        model = _attempt(problems, lambda: match_module(self.module, parts["model"], strict))
        optimizer = _attempt(problems, lambda: match_state(self.kinds, parts.get("optimizer", {}), strict and whole))
        numbers = {"calls": self.calls, "seed": self.seed}
        for key in numbers:
            if key in parts:
                numbers[key] = _attempt(problems, lambda key=key: _whole(key, parts[key])) or 0
            elif whole and strict:
                problems.append(f"the state dict has no {key!r}")
        if problems or model is None or optimizer is None:
            raise CheckpointError("\n".join(problems), call_site())
        await self.upload({**model.arrays, **optimizer.arrays})
        self.calls, self.seed = numbers["calls"], numbers["seed"]
        await self.recount()
        if not whole:
            return model.keys
        return IncompatibleKeys(*(a + b for a, b in zip(model.keys, optimizer.keys, strict=True)))

    async def reset(self) -> None:
        """Back to the module's initial values: optimizer state as it began, no steps, the seed as it was."""
        start = {name: tensor.data for name, tensor in self.tensors.items()}
        for name, kind in self.kinds.items():
            start[name] = np.full(kind.shape, self.initial[name], kind.dtype.numpy)
        async with self.turns:
            await self.upload(start)
            self.calls = 0
            await self.recount()


async def open_state(model: Module, state: State | None, device: Any, seed: int | None) -> State:
    """The given state, if it is the model's, or a new one."""
    if state is None:
        return State(model, await open_backend(device), seed)
    if state.module is not model:
        raise InputError("the given state belongs to another module", call_site())
    if device is not None or seed is not None:
        raise InputError("the given state has its device and seed already; leave them out", call_site())
    return state


class _Running:
    """See `State.running`; a class, because each step enters one and a generator takes three times as long."""

    __slots__ = ("_calls", "_state")

    def __init__(self, state: State, calls: int) -> None:
        self._state, self._calls = state, calls

    def __enter__(self) -> None:
        self._state.calls += self._calls

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, InputError | UnsupportedError):
            self._state.calls -= self._calls
        elif error is not None:
            self._state.unsure = True  # the step may have been made: the device knows


def _attempt(problems: list[str], check: Callable[[], T]) -> T | None:
    """The check's result, or None with its complaint added to the problems, so that all are reported together."""
    try:
        return check()
    except CheckpointError as error:
        problems.append(error.message)
        return None


def _seed(value: Any) -> int:
    try:
        return operator.index(value) % 2**32
    except TypeError:
        raise InputError(f"the seed must be a whole number, got {value!r}", call_site()) from None


def _whole(key: str, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise CheckpointError(f"{key!r} of the state dict must be a whole number, got {value!r}") from None
    if number < 0:
        raise CheckpointError(f"{key!r} of the state dict must not be negative, got {number}")
    return number
