"""What training steps and predictors show of themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from tensorgrad.compiled import Built
from tensorgrad.device.base import KernelTime
from tensorgrad.device.peaks import Peaks
from tensorgrad.inspect.check import CheckReport, check
from tensorgrad.inspect.kernels import Kernels
from tensorgrad.inspect.memory import MemoryReport
from tensorgrad.inspect.profile import Profile, kernel_profile, node_profile
from tensorgrad.inspect.program import Shown, shown
from tensorgrad.inspect.tuning import TuningReport


class Inspected(ABC):
    """Gives what runs a program its `kernels` and `memory`; a subclass says which program."""

    _seen: tuple[Built, Shown] | None = None

    @abstractmethod
    def _inspected(self) -> Built: ...

    def _shown(self) -> Shown:
        built = self._inspected()
        if self._seen is None or self._seen[0] is not built:
            self._seen = built, shown(built)
        return self._seen[1]

    @property
    def kernels(self) -> Kernels:
        """The kernels of the program in the order in which they run.

        `print(train.kernels)` is a table; `print(train.kernels[3])` shows a kernel's formula, source
        lines, WGSL, buffers, and why it is one kernel. On the numpy device they are those that a GPU
        would run.
        """
        return Kernels(self._shown())

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
