"""`await train.check()`: one step under the oracles, kernel by kernel, without changing anything.

On a GPU the device's own kernels run once more, on copies of the parameters and states,
with every value in a buffer of its own. Each kernel is then compared with the reference
rules on the numbers that it read. If all agree, the step runs a third time in the pooled
buffers, which has to give the same bits. Elsewhere the kernels' formulas are evaluated
instead of the WGSL.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorgrad.compiled import Built
from tensorgrad.device import interpret
from tensorgrad.device.convert import as_array, check_names
from tensorgrad.device.store import Store
from tensorgrad.errors import CheckError, OutOfMemoryError
from tensorgrad.graph import Value
from tensorgrad.inspect.apart import Apart, apart
from tensorgrad.inspect.graphs import show_site
from tensorgrad.inspect.kernels import KernelView
from tensorgrad.inspect.program import Shown
from tensorgrad.inspect.reference import Difference, judge
from tensorgrad.inspect.tables import counted
from tensorgrad.inspect.why import describe
from tensorgrad.lower.kernel import Kernel
from tensorgrad.ops.arena import parts
from tensorgrad.primitive import REGISTRY
from tensorgrad.runtime import Runtime, create_runtime

Arrays = Mapping[str, np.ndarray]

INTERPRETED = 1 << 24
"""Arithmetic operations up to which a differing kernel's formula is evaluated too, to tell where the fault is."""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """All kernels agree with the reference.

    Attributes:
        kernels, values: how many were compared.
        worst: the kernel that came nearest to its tolerance, with the part of it that was used, 0 to 1.
        seconds: what the check took.
        note: what ran.
    """

    kernels: int
    values: int
    worst: tuple[int, float]
    seconds: float
    note: str

    def __str__(self) -> str:
        index, used = self.worst
        return (
            f"all {counted(self.kernels, 'kernel')} agree with the reference ({counted(self.values, 'stored value')}; "
            f"the nearest to its tolerance is kernel {index}, at {used:.0%} of it); {self.note}; {self.seconds:.1f} s"
        )


async def check(built: Built, shown: Shown, inputs: Mapping[str, Any]) -> CheckReport:
    """Compares every kernel of one step with the reference.

    Args:
        built: the program; its parameters and states are read, and stay as they are.
        shown: its kernels.
        inputs: of the step, host numbers included.

    Raises:
        CheckError: names the first kernel that differs, or says that the buffer plan is at fault.
    """
    start = time.perf_counter()
    graph = shown.lowered.graph
    types = {name: graph.type(value) for name, value in graph.names_by_role("input").items()}
    check_names("inputs", inputs, types)
    given = {name: as_array(f"input {name!r}", inputs[name], t.shape, t.dtype).copy() for name, t in types.items()}
    names = [*graph.names_by_role("param"), *graph.names_by_role("state")]
    state = await built.executor.download(names)
    checker = Checker(shown, {**state, **given})
    if isinstance(built.executor, Runtime):
        await _on_device(built.executor, checker, state, given)
        note = "each ran on the GPU on what it reads there, and the pooled buffers give the same bits"
    else:
        checker.interpret()
        note = "their formulas were evaluated, on no GPU"
    return checker.report(time.perf_counter() - start, note)


class Checker:
    """Judges kernels in the order in which they run.

    Args:
        shown: the kernels.
        leaves: name -> array of every parameter, state and input before the step.
    """

    def __init__(self, shown: Shown, leaves: Arrays) -> None:
        self.shown, self.lowered, self.leaves = shown, shown.lowered, leaves
        self.views = shown.kernels
        self.arrays: dict[Value, np.ndarray] = {}
        self.last = self._last_reads()
        self.kernels = self.values = 0
        self.worst = 0, 0.0

    def _last_reads(self) -> dict[Value, int]:
        """The last kernel that needs each stored value, by itself or as a part of a pack."""
        last: dict[Value, int] = {}
        for i, kernel in enumerate(self.lowered.kernels):
            for value in (*kernel.writes, *kernel.loads()):
                last[value] = i
                last.update({part: i for part, _ in parts(self.lowered.graph, value)})
        return last

    def read(self, value: Value) -> np.ndarray:
        """What the device had stored of a value when its readers ran."""
        if value in self.arrays:
            return self.arrays[value]
        node = self.lowered.graph.node(value)
        if node.op == "leaf":
            return self.leaves[node.attrs["name"]]
        if node.op == "array":
            return np.asarray(node.attrs["data"].array)
        if node.type.size == 0:  # no kernel stores it
            return np.zeros(node.type.shape, node.type.dtype.numpy)
        assert node.op == "pack", f"{node} was not stored before it is read"
        return REGISTRY["pack"].eval(np, *(self.read(v) for v in node.inputs), **node.attrs)

    def judge(self, index: int, stored: dict[Value, np.ndarray]) -> None:
        """Compares what kernel `index` stored.

        Raises:
            CheckError: it differs from the reference.
        """
        kernel = self.lowered.kernels[index]
        verdict = judge(self.lowered.graph, kernel, self.read, stored)
        if verdict.difference is not None:
            raise self._error(self.views[index], kernel, verdict.difference)
        self.kernels += 1
        self.values += len(stored)
        if verdict.used >= self.worst[1]:
            self.worst = index, verdict.used
        self.arrays.update(stored)
        for value in [v for v in self.arrays if self.last.get(v, -1) <= index]:
            del self.arrays[value]

    def interpret(self) -> None:
        """Evaluates the kernels' formulas and judges each."""

        def watch(index: int, buffers: Mapping[int, np.ndarray]) -> None:
            self.judge(index, self._stored(self.lowered.kernels[index], buffers))

        with np.errstate(all="ignore"):
            interpret.run(self.lowered, self.leaves, watch)

    def _stored(self, kernel: Kernel, buffers: Mapping[int, np.ndarray]) -> dict[Value, np.ndarray]:
        where = self.lowered.memory.where
        return {v: interpret.result(self.lowered, buffers, v, where[v]).copy() for v in kernel.writes}

    def report(self, seconds: float, note: str) -> CheckReport:
        return CheckReport(self.kernels, self.values, self.worst, seconds, note)

    def _error(self, view: KernelView, kernel: Kernel, d: Difference) -> CheckError:
        place = f"[{', '.join(map(str, d.index))}]" if d.index else ""
        allowed = f", to {d.allowed:.2g}" if d.allowed else ""
        lines = [
            f"kernel {view.index} of {len(self.views)} is the first that differs from the reference: {view.name}",
            f"  {describe(self.lowered, d.value)}, stored in {self.lowered.name(d.value)}:",
            f"  element {place or 'of the scalar'} is {_number(d.got)}, expected {_number(d.expected)}{allowed}; "
            f"{d.count:,} of {counted(d.size, 'element')} differ",
            "  formula",
            *(f"    {line}" for line in view.formula.splitlines()),
            "  source",
            *(f"    {show_site(site)}" for site in view.sites),
            f"  {self._blame(kernel, view)}",
        ]
        error = CheckError("\n".join(lines))
        error.kernel, error.difference = view, d
        return error

    def _blame(self, kernel: Kernel, view: KernelView) -> str:
        """Where the fault lies: in the formula, or in what was made of it."""
        if not isinstance(self.shown.built.executor, Runtime):
            return "its formula does not compute what the graph says: the fault is in lowering or fusion"
        if view.flops > INTERPRETED:
            return f"print(train.kernels[{view.index}]) shows its WGSL"
        where = self.lowered.memory.where
        if len({where[v] for v in kernel.loads()}) < len(kernel.loads()):
            return "two values that it reads share a buffer: the fault is in the buffer plan"
        buffers = {where[v]: self.read(v).reshape(-1).copy() for v in kernel.loads()}
        with np.errstate(all="ignore"):
            interpret.run_kernel(self.lowered, kernel, buffers)
        verdict = judge(self.lowered.graph, kernel, self.read, self._stored(kernel, buffers))
        if verdict.difference is None:
            fault = "its formula, evaluated without the GPU, agrees: the fault is in the WGSL or in the device"
        else:
            fault = "its formula, evaluated without the GPU, differs too: the fault is in lowering or fusion"
        return f"{fault}; print(train.kernels[{view.index}]) shows both"


def _number(number: float) -> str:
    return f"{number:.8g}" if isinstance(number, float) else str(number)


async def _on_device(runtime: Runtime, checker: Checker, state: Arrays, given: Arrays) -> None:
    """Runs the kernels on copies of the state, and judges each."""
    lowered, specs = checker.lowered, checker.shown.specs
    copy = apart(lowered, specs)
    try:
        replay = await _copy(runtime, copy, state)
    except OutOfMemoryError as error:
        raise OutOfMemoryError(
            f"a check keeps every value of a step in memory, which does not fit: {error}. Check with a smaller batch"
        ) from None
    try:
        await replay.submit(given)
        for index, (kernel, spec) in enumerate(zip(lowered.kernels, specs, strict=True)):
            if spec.runs:
                found = await replay.download_outputs([copy.outputs[v] for v in kernel.writes])
                checker.judge(index, {v: found[copy.outputs[v]] for v in kernel.writes})
        single = await _results(replay, runtime)
    finally:
        _free(replay)
    replay = await _copy(runtime, Apart(runtime.plan, runtime.kernels, {}), state)
    try:
        await replay.submit(given)
        pooled = await _results(replay, runtime)
    finally:
        _free(replay)
    wrong = [name for name, array in single.items() if not np.array_equal(array, pooled[name], equal_nan=True)]
    if wrong:
        raise CheckError(
            f"every kernel agrees with the reference by itself, but in the buffers of the plan {', '.join(wrong)} "
            "come out differently: the buffer plan overwrites something too early. print(train.memory) shows it"
        )


async def _copy(runtime: Runtime, copy: Apart, state: Arrays) -> Runtime:
    """A program on the same device with parameters and states of its own."""
    store = Store(runtime.device)
    try:
        device = runtime.device
        made = await create_runtime(copy.plan, copy.kernels, device=device, store=store, label="tensorgrad check")
    except BaseException:
        store.destroy()
        raise
    made.upload(state)
    return made


async def _results(replay: Runtime, runtime: Runtime) -> dict[str, np.ndarray]:
    """Everything that outlives a step."""
    found = {f"output {n}": a for n, a in (await replay.download_outputs(runtime.plan.outputs)).items()}
    found |= {f"state {n}": a for n, a in (await replay.download()).items()}
    if runtime.plan.grads:
        found |= {f"gradient {n}": a for n, a in (await replay.download_param_grads()).items()}
    return found


def _free(replay: Runtime) -> None:
    replay.destroy()
    replay.store.destroy()
