"""What training steps and predictors show of themselves."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from tensorgrad.compiled import Built
from tensorgrad.device.base import KernelTime
from tensorgrad.device.peaks import Peaks
from tensorgrad.graph import Graph
from tensorgrad.inspect.check import CheckReport, check
from tensorgrad.inspect.kernels import Kernels
from tensorgrad.inspect.memory import MemoryReport
from tensorgrad.inspect.profile import Profile, kernel_profile, node_profile
from tensorgrad.inspect.program import Shown, shown
from tensorgrad.inspect.tuning import TuningReport


class Inspected(ABC):
    """Gives what runs a program its `kernels` and `memory`; a subclass says which program."""

    _seen: tuple[Built, Shown, Kernels] | None = None

    @property
    @abstractmethod
    def title(self) -> str:
        """What it is, in a few words: `training step of MLP`."""

    @abstractmethod
    def _inspected(self) -> Built: ...

    def _compiled(self) -> None:
        """Notes that it has a new program, for `programs`."""
        _known.pop(self, None)
        _known[self] = None

    @property
    def graph(self) -> Graph:
        """The optimized graph; of what has several programs, that of the one used last."""
        return self._inspected().graph

    def _looked(self) -> tuple[Built, Shown, Kernels]:
        built = self._inspected()
        if self._seen is None or self._seen[0] is not built:
            made = shown(built)
            self._seen = built, made, made.kernels
        return self._seen

    def _shown(self) -> Shown:
        return self._looked()[1]

    @property
    def kernels(self) -> Kernels:
        """The kernels of the program in the order in which they run.

        `print(train.kernels)` is a table; `print(train.kernels[3])` shows a kernel's formula, source
        lines, WGSL, buffers, and why it is one kernel. On the numpy device they are those that a GPU
        would run.
        """
        return self._looked()[2]

    @property
    def memory(self) -> MemoryReport:
        """The program's memory on the device: by kind, arenas, and the pool of temporaries."""
        return MemoryReport(self._shown())

    @property
    def tuning(self) -> TuningReport | None:
        """What `tune=True` has chosen; None where nothing was tuned."""
        program = self._inspected().compiled.program
        return None if program is None or program.tuning is None else TuningReport(program.tuning)

    def _profile(self, times: Sequence[KernelTime], peaks: Peaks | None) -> Profile:
        built = self._inspected()
        if built.lowered is None:
            return node_profile(built.graph, times)
        return kernel_profile(self._shown(), times, on_gpu=bool(built.kernels), peaks=peaks)

    async def _check(self, inputs: Mapping[str, Any]) -> CheckReport:
        return await check(self._inspected(), self._shown(), inputs)


_known: weakref.WeakKeyDictionary[Inspected, None] = weakref.WeakKeyDictionary()


def programs() -> list[Inspected]:
    """Training steps, predictors and jitted functions that were compiled and are still in use, the last one first.

    >>> import asyncio
    >>> import tensorgrad as tg
    >>> from tensorgrad.inspect import programs
    >>> double = tg.jit(lambda x: x * 2, device="numpy")
    >>> float(asyncio.run(double(1.5)))
    3.0
    >>> programs()[0].title, len(programs()[0].kernels)
    ('jit of <lambda>', 1)
    """
    return list(_known)[::-1]
