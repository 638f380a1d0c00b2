"""What outlives a step: parameters, buffers, optimizer state, step count and random counter.

A `State` belongs to one module on one device. Training steps and predictors that share it
see each other's updates at once. The module itself keeps initial values only.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from tensorgrad.backend import Backend, Built
from tensorgrad.callsite import call_site
from tensorgrad.device.base import Executor
from tensorgrad.dtypes import Shape
from tensorgrad.errors import CheckpointError, InputError
from tensorgrad.graph import Graph, TensorType
from tensorgrad.nn.module import Module, leaf_names, match_module, state_names
from tensorgrad.nn.parameter import Parameter
from tensorgrad.nn.state import IncompatibleKeys, match_state
from tensorgrad.ops.arena import parts
from tensorgrad.trace import STEP_SLOTS


class Part(NamedTuple):
    """One parameter's share of a packed state."""

    name: str
    place: slice
    shape: Shape


def steps_name(prefix: str) -> str:
    """The state that counts an optimizer's steps whose loss was finite.

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
        self.seed = secrets.randbits(32) if seed is None else int(seed) % 2**32
        self.calls = 0
        self.counts: dict[str, int] = {}
        self._optimizers: list[Any] = []
        self.names = leaf_names(module)
        self.keys = state_names(module)
        self.tensors: dict[str, Parameter] = {
            name: tensor for name, tensor in [*module.named_parameters(), *module.named_buffers()]
        }
        self.values = {name: tensor.data.copy() for name, tensor in self.tensors.items()}
        self.store = backend.store()
        self.placed: dict[str, Executor] = {}
        self.packs: dict[str, list[Part]] = {}
        self.turns = Turns()

    @property
    def trainable(self) -> frozenset[str]:
        """Names of the parameters that an optimizer updates."""
        return frozenset(name for name, tensor in self.tensors.items() if tensor.requires_grad)

    @property
    def steps(self) -> int:
        """Steps that were made with a finite loss, of all optimizers together."""
        return sum(self.counts.values())

    def enter(self, optimizer: Any) -> str:
        """Gives an optimizer a prefix of its own for its states: `optim`, `optim2` and so on; returns it."""
        if not any(known is optimizer for known in self._optimizers):
            self._optimizers.append(optimizer)
        index = next(i for i, known in enumerate(self._optimizers) if known is optimizer)
        prefix = "optim" if index == 0 else f"optim{index + 1}"
        self.counts.setdefault(prefix, 0)
        return prefix

    async def place(self, built: Built) -> None:
        """Gives the program's new parameters and buffers on the device their values."""
        roles: dict[str, Any] = {**built.graph.names_by_role("param"), **built.graph.names_by_role("state")}
        new = [name for name in roles if name not in self.placed]
        built.executor.upload({name: self.values[name] for name in new if name in self.values})
        self.placed.update(dict.fromkeys(new, built.executor))
        self.packs.update({name: _parts(built.graph, name) for name in built.graph.packs})

    def row(self, graph: Graph) -> np.ndarray:
        """A row of host numbers for `graph`'s steps, with the seed in it."""
        row = np.zeros(STEP_SLOTS, np.uint32)
        row[0] = self.seed
        return row

    async def download(self) -> dict[str, np.ndarray]:
        """Every parameter, buffer and optimizer state by name, one array a parameter."""
        found = {name: array.copy() for name, array in self.values.items()}
        for executor, names in self._by_executor().items():
            found.update(await executor.download(names))
        for name in self.packs:
            flat = found.pop(name)
            found.update({p.name: flat[p.place].reshape(p.shape).copy() for p in self.packs[name]})
        return found

    async def upload(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Overwrites parameters, buffers and optimizer state by name."""
        self.values.update({name: array.copy() for name, array in arrays.items() if name in self.values})
        arrays = {**arrays, **await self._packed(arrays)}
        for executor, names in self._by_executor().items():
            executor.upload({name: arrays[name] for name in names if name in arrays})

    async def _packed(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The packed states of which `arrays` has a part, with those parts replaced."""
        found: dict[str, np.ndarray] = {}
        for name, parts_ in self.packs.items():
            given = [p for p in parts_ if p.name in arrays]
            if given:
                flat = (await self.placed[name].download([name]))[name]
                for part in given:
                    flat[part.place] = arrays[part.name].reshape(-1)
                found[name] = flat
        return found

    def _by_executor(self) -> dict[Executor, list[str]]:
        groups: dict[Executor, list[str]] = {}
        for name, executor in self.placed.items():
            groups.setdefault(executor, []).append(name)
        return groups

    async def recount(self) -> None:
        """Reads the numbers of steps back from the device."""
        for prefix in self.counts:
            name = steps_name(prefix)
            if name in self.placed:
                self.counts[prefix] = int((await self.placed[name].download([name]))[name])

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
            CheckpointError: lists what is missing, unexpected or misshapen.
        """
        parts = state_dict if "model" in state_dict else {"model": state_dict}
        model = match_module(self.module, parts["model"], strict)
        optimizer: dict[str, np.ndarray] = {}
        if "optimizer" in parts:
            async with self.turns:
                present = await self.download()
            kinds = {n: TensorType(a.shape, _dtype(a)) for n, a in present.items() if n not in self.values}
            optimizer = match_state(kinds, parts["optimizer"], strict).arrays
        numbers = {key: _whole(key, parts[key]) for key in ("calls", "seed") if key in parts}
        async with self.turns:
            self.calls = numbers.get("calls", self.calls)
            self.seed = numbers.get("seed", self.seed)
            await self.upload({**model.arrays, **optimizer})
            await self.recount()
        return model.keys

    async def reset(self) -> None:
        """Back to the module's initial values: optimizer state zero, no steps, the seed as it was."""
        async with self.turns:
            arrays = await self.download()
            for name, array in arrays.items():
                tensor = self.tensors.get(name)
                array[...] = 0 if tensor is None else tensor.data
            self.calls = 0
            await self.upload(arrays)
            await self.recount()


class Turns:
    """One user of the device state at a time, in the order in which they asked.

    An interrupt can end a task anywhere, so a lock whose holder has ended is taken from it.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._holder: asyncio.Task[Any] | None = None

    async def __aenter__(self) -> None:
        if self._lock.locked() and self._holder is not None and self._holder.done():
            self._lock.release()
        await self._lock.acquire()
        self._holder = asyncio.current_task()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._holder = None
        self._lock.release()


def _parts(graph: Graph, name: str) -> list[Part]:
    """What a packed state holds: `optim.exp_avg.pack0` has a part for each parameter, `optim.exp_avg.out.weight`."""
    stem = name.rpartition(".")[0]
    found = []
    for value, offset in parts(graph, graph.packs[name]):
        type_ = graph.type(value)
        place = slice(offset, offset + type_.size)
        found.append(Part(f"{stem}.{graph.leaf_name(value)}", place, type_.shape))
    return found


def _dtype(array: np.ndarray) -> Any:
    from tensorgrad.dtypes import from_numpy

    return from_numpy(array.dtype)


def _whole(key: str, value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise CheckpointError(f"{key!r} of the state dict must be a whole number, got {value!r}") from None
    if number < 0:
        raise CheckpointError(f"{key!r} of the state dict must not be negative, got {number}")
    return number
