"""A program as data: what it takes to make one, and all that the host needs to run it.

A `Recipe` is a traced function whose graph can be finished. From the finished graph the
host needs only an `Interface`: names, types and places. With a plan and kernels it is a
`Program`, which holds no graph, so that it can be kept and come back in another session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tensorgrad.callsite import CallSite, deferred
from tensorgrad.device.base import Limits
from tensorgrad.dtypes import Shape
from tensorgrad.graph import Graph, TensorType, Value
from tensorgrad.ops.arena import parts
from tensorgrad.plan import BufferPlan, KernelSpec

CAPTURE = "capture "
"""Goes before the name of a capture to make that of an output."""


class Part(NamedTuple):
    """One parameter's share of a packed state: elements `start` to `stop`."""

    name: str
    start: int
    stop: int
    shape: Shape

    @property
    def place(self) -> slice:
        return slice(self.start, self.stop)


class Held(NamedTuple):
    """A parameter or state that a program keeps on the device, and what it is filled with at first."""

    type: TensorType
    initial: float | int


class Interface(NamedTuple):
    """A program as the host sees it, whatever runs it.

    Attributes:
        inputs: the names of what every run sends.
        held: the parameters and states, by name.
        packs: packed state -> its parts.
        slots: host number (a learning rate, say) -> its place in the row that every step sends.
        outputs: the names of what a run can return.
    """

    inputs: tuple[str, ...]
    held: dict[str, Held]
    packs: dict[str, tuple[Part, ...]]
    slots: dict[str, int]
    outputs: tuple[str, ...]


class Choice(NamedTuple):
    """What tuning chose for the kernels of one text.

    Attributes:
        key: of the default text, see `wgsl.generate.key_of`.
        variant: the name of the one that runs.
        kernel: what the default is called.
        repeats: how many kernels of the program have this text.
        before, after: nanoseconds of one of them, as the default and as it runs.
        tried: variants that were measured.
    """

    key: str
    variant: str
    kernel: str
    repeats: int
    before: float
    after: float
    tried: int


class Tuning(NamedTuple):
    """How a program was tuned.

    Attributes:
        choices: for each text that was measured, most expensive first.
        budget: seconds that were allowed.
        seconds: seconds that it took.
        left: texts for which no time was left.
    """

    choices: tuple[Choice, ...]
    budget: float
    seconds: float
    left: int = 0


class Program(NamedTuple):
    """A compiled program: its interface, its buffers, the kernels of a step in order, and how they were tuned."""

    interface: Interface
    plan: BufferPlan
    kernels: tuple[KernelSpec, ...]
    tuning: Tuning | None = None


class Recipe(NamedTuple):
    """A traced function, and how its graph is finished.

    Attributes:
        finish: gives the optimized graph for a device of these limits, the same one each time.
        names: of the graph's outputs, in order. Captures are outputs too, under `capture NAME`.
        forward: the user's function as it was traced, nothing added and nothing simplified.
        traced: graphs that decide, with `names`, what `finish` gives; None where something else does too.
        site: the user's line that asked for the program.
        options: numbers that decide with the traced graphs.
        tune: seconds in which variants of the kernels may be measured; 0: they are not.
    """

    finish: Callable[[Limits], Graph]
    names: tuple[str, ...]
    forward: Graph
    traced: tuple[Graph, ...] | None = None
    site: CallSite | None = None
    options: tuple[int, ...] = ()
    tune: float = 0.0

    def graph(self, limits: Limits) -> Graph:
        """The optimized graph. It may be asked for long after the user's call, to whose line it still belongs."""
        return deferred(self.site, lambda: self.finish(limits))

    def outputs(self, graph: Graph) -> dict[str, Value]:
        """Name -> value of all that the host can read after a run of the finished graph."""
        captures = {CAPTURE + name: value for name, value in graph.captures.items()}
        return {**dict(zip(self.names, graph.outputs, strict=True)), **captures}


def interface_of(graph: Graph, outputs: dict[str, Value]) -> Interface:
    """What a finished graph shows to the host."""
    held = {**graph.names_by_role("param"), **graph.names_by_role("state")}
    return Interface(
        tuple(graph.names_by_role("input")),
        {name: Held(graph.type(v), graph.node(v).attrs["initial"]) for name, v in held.items()},
        {name: _parts(graph, name) for name in graph.packs},
        dict(graph.slots),
        tuple(outputs),
    )


def _parts(graph: Graph, name: str) -> tuple[Part, ...]:
    """What a packed state holds: `optim.exp_avg.pack0` has a part for each parameter, `optim.exp_avg.out.weight`."""
    stem = name.rpartition(".")[0]
    found = []
    for value, offset in parts(graph, graph.packs[name]):
        type_ = graph.type(value)
        found.append(Part(f"{stem}.{graph.leaf_name(value)}", offset, offset + type_.size, type_.shape))
    return tuple(found)
