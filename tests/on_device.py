"""Kernels and rows of the table on a device, against what they must give. The browser's tests and naga's share them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import attention_cases
import matmul_cases
from programs import Program, assert_close, lowered, on_gpu, on_numpy, program, with_initial
from table import Case, Row, weighted
from tensorgrad.autodiff import append_grad
from tensorgrad.backend import WebGPU
from tensorgrad.device import interpret
from tensorgrad.device.base import Bound, Dispatch, Recording, Slice
from tensorgrad.graph import Value
from tensorgrad.lower.kernel import Kernel
from tensorgrad.plan import KernelSpec
from tensorgrad.tensor import Tensor
from tensorgrad.wgsl import attention, matmul
from tensorgrad.wgsl.generate import Writer
from tensorgrad.wgsl.matmul_tiles import Tile
from tensorgrad.wgsl.rows import Shape
from tensorgrad.wgsl.shader import Source

# Single kernels ---------------------------------------------------------------------------


async def verify_matmuls(device: Any, kernels: Iterable[tuple[matmul_cases.Case, Tile | None]]) -> list[str]:
    """Runs kernels as one program and compares every buffer that they write; returns the variants' names.

    Outputs are poisoned, and what surrounds the operands in memory is NaN: a kernel that leaves an element
    out, writes beside the result or reads where it should not gives a wrong number.
    """
    todo = [(case, matmul.generate(case.kernel, device.limits, tile=tile)) for case, tile in kernels]
    held = await run_sources(device, [(case.name, source, case.arrays) for case, source in todo])
    for (case, source), written in zip(todo, held, strict=True):
        wanted = case.expected()
        for key, data in written.items():
            want = wanted[key]
            # f32 sums of at most 100 products of normal numbers; f16 results round to 11 bits
            tolerance = 2e-3 if want.dtype == np.float16 else 2e-5
            got = data.view(want.dtype)[: want.size]
            np.testing.assert_allclose(got, want, tolerance, tolerance, err_msg=f"{source.name}, {case.name}")
    return [source.name for _, source in todo]


async def verify_attentions(
    device: Any, kernels: Iterable[tuple[attention_cases.Case, Tile | None]], tolerance: float = 3e-5
) -> list[str]:
    """The same for attention kernels; elements behind the results are poisoned too."""
    todo = [(case, attention.generate(case.kernel, device.limits, tile=tile)) for case, tile in kernels]
    poisoned = [
        (
            case.name,
            source,
            {v: np.full(a.size + 4, np.nan, np.float32) for v, a in case.expected.items()} | case.arrays,
        )
        for case, source in todo
    ]
    held = await run_sources(device, poisoned)
    for (case, source), written in zip(todo, held, strict=True):
        for key, data in written.items():
            got, want = data.view(np.float32), case.expected[key]
            label = f"{source.name}, {case.name}, result {key.result}"
            assert np.isnan(got[want.size : want.size + 4]).all(), label
            # f32 sums of at most 200 products in another order, relative to the largest
            scale = float(np.abs(want[np.isfinite(want)]).max(initial=1.0))
            np.testing.assert_allclose(got[: want.size], want, tolerance, tolerance * scale, err_msg=label)
    return [source.name for _, source in todo]


async def verify_lines(device: Any, p: Program, shapes: Callable[[Kernel], Iterable[Shape]]) -> list[str]:
    """The same for the scans and sorts of a program, each in all its shapes; sums need whole numbers."""
    low = lowered(p)
    todo: list[tuple[str, Source, dict[Value, np.ndarray], dict[Value, np.ndarray]]] = []

    def watch(i: int, buffers: Mapping[int, np.ndarray]) -> None:
        kernel = low.kernels[i]
        if kernel.line is None:
            return
        held = {v: buffers[low.memory.where[v]][: low.graph.type(v).size].copy() for v in kernel.loads()}
        expected = {v: buffers[low.memory.where[v]][: low.graph.type(v).size].copy() for v in kernel.writes}
        value_of = {low.memory.where[v]: v for v in (*held, *expected)}
        for shape in shapes(kernel):
            spec = Writer(low, device.limits).write(kernel, shape)
            bindings = tuple((value_of[b.buffer], b.write) for b in spec.bindings)
            source = Source(f"{spec.name} {shape}", spec.wgsl, spec.threads, spec.workgroup_size, bindings)
            todo.append((str(kernel.vars), source, held, expected))

    with np.errstate(all="ignore"):
        interpret.run(low, with_initial(p), watch)
    poison = {v: np.full(a.size + 4, 0x7FC0BAD5, np.uint32) for *_, expected in todo for v, a in expected.items()}
    found = await run_sources(device, [(name, source, {**held, **poison}) for name, source, held, _ in todo])
    for (name, source, _, expected), written in zip(todo, found, strict=True):
        for key, data in written.items():
            want = expected[key].astype(np.uint32) if expected[key].dtype == bool else expected[key]
            label = f"{source.name}, {name}"
            assert (data.view(np.uint32)[want.size : want.size + 4] == 0x7FC0BAD5).all(), label
            np.testing.assert_array_equal(data.view(want.dtype)[: want.size], want, err_msg=label)
    return [source.name for _, source, *_ in todo]


async def run_sources(
    device: Any, items: Sequence[tuple[str, Source, Mapping[Value, np.ndarray]]]
) -> list[dict[Value, np.ndarray]]:
    """The bytes of every buffer that each kernel writes."""
    dispatches, written = [], []
    for name, source, given in items:
        arrays = [np.ascontiguousarray(given[key]) for key, _ in source.bindings]
        arrays = [a.astype(np.uint32) if a.dtype == bool else a for a in arrays]
        # whole vectors of four: a kernel may bind an operand as such
        sizes = [-(-a.nbytes // 16) * 16 for a in arrays]
        handles = await device.alloc([(name, size) for size in sizes])
        for handle, array, size in zip(handles, arrays, sizes, strict=True):
            data = np.zeros(size, np.uint8)
            data[: array.nbytes] = array.view(np.uint8)
            device.write(Slice(handle, 0, size), data)
        bound = tuple(
            Bound(Slice(handle, 0, size), write)
            for handle, size, (_, write) in zip(handles, sizes, source.bindings, strict=True)
        )
        spec = KernelSpec(source.name, 0, source.wgsl, (), source.threads, source.workgroup_size)
        dispatches.append(Dispatch(f"{source.name}: {name}", source.wgsl, bound, spec.workgroups))
        written.append({key: b.range for b, (key, write) in zip(bound, source.bindings, strict=True) if write})
    recorded = await device.compile(Recording("kernels", (), tuple(dispatches)))
    results = iter(await recorded.run(tuple(s for ranges in written for s in ranges.values())))
    return [{key: next(results) for key in ranges} for ranges in written]


# Rows of the table --------------------------------------------------------------------------


def in_one(cases: Sequence[Case]) -> Program:
    """One program of all the cases: each one's value, and the gradients of a weighted sum of it."""
    inputs = [np.asarray(a) for case in cases for a in case.inputs]

    def fn(*leaves: Tensor) -> list[Tensor]:
        found: list[Tensor] = []
        start = 0
        for case in cases:
            own = leaves[start : start + len(case.inputs)]
            start += len(own)
            y = case.fn(*own)
            found.append(y)
            if case.grads:
                found += append_grad(weighted(y), [own[n] for n in case.grads])
        return found

    return program(fn, inputs)


def _labels(cases: Sequence[Case]) -> list[tuple[str, bool]]:
    named: list[tuple[str, bool]] = []
    for case in cases:
        named.append((case.name, False))
        named += [(f"{case.name}: gradient {n}", True) for n in case.grads]
    return named


async def verify_row(backend: WebGPU, row: Row) -> None:
    """All cases of a row and their gradients, in one program."""
    p = in_one(row.cases)
    wanted = on_numpy(p)
    found, _ = await on_gpu(p, backend)
    rtol, atol, _ = row.tolerance
    problems = []
    for a, b, (name, is_gradient) in zip(found, wanted, _labels(row.cases), strict=True):
        if is_gradient:
            scale = float(np.abs(b).max(initial=1e-30))
            loose = (10 * rtol + 1e-6, 10 * atol + 2e-6 * scale)
        else:
            loose = (rtol, atol)
        try:
            assert_close(a, b, *loose, name)
        except AssertionError as error:
            problems.append(str(error))
    assert not problems, "\n".join(problems)
