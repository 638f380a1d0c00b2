"""What a device's compiler gives: a program that can be built, and what it was made from when somebody asks.

A program that came from the cache has no graph and no kernels to look into. They are made
where they are asked for, by compiling again: the same recipe gives the same program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tensorgrad.cache.text import encode
from tensorgrad.device.base import Executor
from tensorgrad.errors import TensorgradError
from tensorgrad.graph import Graph, Value
from tensorgrad.lower.lowering import Lowered
from tensorgrad.plan import KernelSpec
from tensorgrad.program import Interface, Program, Tuning, interface_of


class Made(NamedTuple):
    """All that the compiler makes of a recipe.

    Attributes:
        graph: the optimized graph.
        outputs: name -> value of what the host can read.
        lowered: kernels and buffer plan, where the device has them.
        program: these as plain data, where the device runs it.
    """

    graph: Graph
    outputs: dict[str, Value]
    lowered: Lowered | None = None
    program: Program | None = None


class Compiled:
    """A recipe compiled for a device.

    Args:
        make: compiles it, with the choices of a tuning.
        program: what the cache holds for it; None: it is made now, if `made` is not given.
        key: its place in the cache, if it has one.
        made: what the compiler made of it.

    Attributes:
        interface: names, types and places.
        program: its plan and kernels, where the device runs such.
        cached: whether it came from the cache.
    """

    def __init__(
        self,
        make: Callable[[Tuning | None], Made],
        program: Program | None = None,
        key: str | None = None,
        made: Made | None = None,
    ) -> None:
        self.key, self.cached = key, program is not None
        self._make = make
        self._made = made
        if program is None:
            self._made = made or make(None)
            program = self._made.program
        self.program = program
        self.interface: Interface = program.interface if program else interface_of(self.made.graph, self.made.outputs)

    @property
    def made(self) -> Made:
        """What the compiler makes of it; after a hit in the cache, it compiles now.

        Raises:
            TensorgradError: that is not what the cache holds.
        """
        if self._made is None:
            made = self._make(self.program.tuning if self.program else None)
            if made.program is None or self.program is None or encode(made.program) != encode(self.program):
                raise TensorgradError(
                    "the program that came from the cache is not what the compiler makes; `await tg.cache.clear()` "
                    "and compile again. Please report it"
                )
            self._made = made
        return self._made


class Built(NamedTuple):
    """A program ready to run.

    Attributes:
        executor: runs it.
        compiled: what it was built from.
    """

    executor: Executor
    compiled: Compiled

    @property
    def interface(self) -> Interface:
        """Names, types and places."""
        return self.compiled.interface

    @property
    def graph(self) -> Graph:
        """The optimized graph."""
        return self.compiled.made.graph

    @property
    def lowered(self) -> Lowered | None:
        """Its kernels and buffer plan, where there are any."""
        return self.compiled.made.lowered

    @property
    def kernels(self) -> tuple[KernelSpec, ...]:
        """The kernels as the device was given them; none where it evaluates the graph or formulas."""
        return self.compiled.program.kernels if self.compiled.program else ()
