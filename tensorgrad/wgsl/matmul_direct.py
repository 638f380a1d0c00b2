"""The matmul kernel for CPUs: no workgroup memory, no barriers.

Where a "GPU" is a CPU (SwiftShader, llvmpipe), a barrier costs as much as a hundred multiplications
and workgroup memory is no faster than any other. What pays there is few loads for many products and
sums that stay in registers: a thread computes a large block, one step of k after the other. Writing
four steps out takes four times as long to compile and is no faster.
"""

from __future__ import annotations

from typing import NamedTuple

from tensorgrad.lower.index import Index, Var
from tensorgrad.wgsl.matmul_access import quarter_of, show_part
from tensorgrad.wgsl.matmul_load import Element, Read, Side


class Reading(NamedTuple):
    """How a thread reads its rows of the left operand, or its columns of the right one.

    Attributes:
        setup: what stands before the loop.
        step: for each four of them what reads them at step `k`.
        singles: their names in a step.
        fours: the names of four together, as a vec4.
    """

    setup: list[str]
    step: list[list[str]]
    singles: list[str]
    fours: list[str]


def operand(side: Side, count: int, read: Read, element: Element) -> Reading:
    """The text that reads `count` rows.

    Args:
        read: of an address, four elements where four rows are adjacent, else one.
        element: any element, for operands that are no plain load.
    """
    x, setup, fours = side.letter, _rows(side, count), range(count // 4)
    if side.mode == "across":
        assert side.access
        const, parts = side.access.quarter(side.axis)
        axis = quarter_of(side.axis)
        setup += [f"let {x}p{g} = {_fixed(side, const, parts, axis, f'({x}r{4 * g} / 4u)')};" for g in fours]
        moving = show_part(parts.get(side.k, Index(())), {side.k: "k"})
        names = [f"{x}v{g}" for g in fours]
        step = [[f"let {name} = {read(f'{x}p{g} + {moving}')};"] for g, name in enumerate(names)]
        return Reading(setup, step, [f"{name}.{c}" for name in names for c in "xyzw"], names)
    if side.access and _plain(side):
        setup += [
            f"let {x}p{i} = {_fixed(side, side.access.const, side.access.parts, side.axis, f'{x}r{i}')};"
            for i in range(count)
        ]
        moving = show_part(side.access.part(side.k), {side.k: "k"})
        codes = [read(f"{x}p{i} + {moving}") for i in range(count)]
    else:
        codes = [element("vb", f"{x}r{i}", "k") for i in range(count)]
    singles = [f"{x}{i}" for i in range(count)]
    lines = [f"let {name} = {code};" for name, code in zip(singles, codes, strict=True)]
    groups = [singles[i : i + 4] for i in range(0, count, 4)]
    whole = [f"vec4<f32>({', '.join(group)})" for group in groups]
    return Reading(setup, [lines[i : i + 4] for i in range(0, count, 4)], singles, whole)


def _plain(side: Side) -> bool:
    """Whether an address is a multiple of the row plus one of the step: others take long to compile if unrolled."""
    access = side.access
    return access is not None and not access.guards and None not in map(access.stride, (side.axis, side.k))


def _rows(side: Side, count: int) -> list[str]:
    """The row numbers; a thread at the edge reads the last rows again rather than others' memory."""
    last = side.axis.size - (4 if side.mode == "across" else 1)
    x, ragged = side.letter, side.axis.size % side.extent
    if side.mode == "across":
        at = [f"{x}first + {i - i % 4}u" for i in range(count)]
        return [f"let {x}r{i} = {f'min({row}, {last}u)' if ragged else row} + {i % 4}u;" for i, row in enumerate(at)]
    at = [f"{x}first + {i}u" for i in range(count)]
    return [f"let {x}r{i} = {f'min({row}, {last}u)' if ragged else row};" for i, row in enumerate(at)]


def _fixed(side: Side, const: int, parts: dict[Var, Index], axis: Var, row: str) -> str:
    """The part of an address that no step changes."""
    nothing = Index(())
    batch = show_part(parts.get(side.batch, nothing) + const, {side.batch: "vb"})
    return f"{batch} + {show_part(parts.get(axis, nothing), {axis: row})}"


def products(rows: Reading, columns: Reading) -> list[str]:
    """A step of k: reads both and adds their products to the sums `c<row>_<vec4 of columns>`."""
    lines = [line for four in rows.step for line in four]
    for g, step in enumerate(columns.step):
        # few values are alive at a time: a CPU's shader compiler takes much longer over many
        lines += step
        lines += [f"c{i}_{g} += {row} * {columns.fours[g]};" for i, row in enumerate(rows.singles)]
    return lines
