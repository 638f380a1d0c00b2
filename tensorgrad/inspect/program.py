"""A built program as the printers see it: its kernels and its plan, on every device."""

from __future__ import annotations

from typing import NamedTuple

from tensorgrad.compiled import Built
from tensorgrad.device.base import Limits
from tensorgrad.inspect.kernels import Kernels
from tensorgrad.lower.lowering import Lowered, lower
from tensorgrad.plan import KernelSpec
from tensorgrad.wgsl.generate import generate


class Shown(NamedTuple):
    """What a program is made of.

    Attributes:
        built: the program.
        lowered: its kernels and buffer plan.
        specs: the kernels as WGSL.
        note: where these are not what the device runs, what it does instead.
    """

    built: Built
    lowered: Lowered
    specs: tuple[KernelSpec, ...]
    note: str = ""

    @property
    def kernels(self) -> Kernels:
        """The kernels as they are printed."""
        return Kernels(self.lowered, self.specs, self.note)


def shown(built: Built) -> Shown:
    """A program's kernels: those that it runs, or on a device without any those that a GPU would run."""
    if built.lowered is not None and built.kernels:
        return Shown(built, built.lowered, built.kernels)
    limits = Limits()
    if built.lowered is not None:
        note = "the interpret device evaluates the formulas; the WGSL is what a GPU with the smallest limits would run"
        return Shown(built, built.lowered, tuple(generate(built.lowered, limits)), note)
    outputs = getattr(built.executor, "outputs", None)
    if outputs is None:
        raise TypeError(f"{built.executor!r} does not say what its outputs are, so it cannot be lowered")
    lowered = lower(built.graph, outputs, max_buffers=limits.storage_buffers)
    note = "the numpy device evaluates the graph node by node; these are the kernels that a GPU would run"
    return Shown(built, lowered, tuple(generate(lowered, limits)), note)
