"""The matmul kernel for CPUs: no workgroup memory, no barriers.

Where a "GPU" is a CPU (SwiftShader, llvmpipe), a barrier costs as much as a hundred multiplications
and workgroup memory is no faster than any other. Four invocations, a quad, are the lanes of one instruction.
SwiftShader takes about 15 ns for each load, since it does the lanes one by one, 4 for `sum += product`, as it
stores the sum under a mask, 1 for each further product of the same sum, and 1 for a swap of lanes. So

- a thread computes a block of many rows and columns, with a sum of some steps of k at a time;
- what the four threads of a quad need in common, each loads a quarter of, and gets the rest from the others.
"""

from __future__ import annotations

from typing import NamedTuple

from tensorgrad.lower.index import Index, Var
from tensorgrad.lower.kernel import Matmul
from tensorgrad.wgsl.matmul_access import Affine, affine, quarter_of, show_part
from tensorgrad.wgsl.matmul_load import Element, Read, Side

SWAPS = ("", "quadSwapX", "quadSwapY", "quadSwapDiagonal")
"""What gives lane `l` of a quad the value of lane `l ^ i`."""

LANES = len(SWAPS)


class Reading(NamedTuple):
    """How a thread reads its rows of the left operand, or its columns of the right one.

    Attributes:
        setup: what stands before the loop.
        lines: for each four of them what reads them at the steps from `k` on.
        singles: for each step their names.
        fours: for each step the names of four together, as a vec4.
    """

    setup: list[str]
    lines: list[list[str]]
    singles: list[list[str]]
    fours: list[list[str]]


def steps_of(inner: Matmul, most: int) -> int:
    """How many steps of k are added up at a time, `most` or another number that divides all of them.

    What takes more than an address takes long to compile: it is not written out.
    """
    if most == 1:
        return 1
    for e, axis in ((inner.a, inner.m), (inner.b, inner.n)):
        access = affine(e, (inner.batch, axis, inner.k))
        if access is None or access.guards:
            return 1
    return next(n for n in (most, 5, 3, 2, 1) if inner.k.size % n == 0)


def operand(side: Side, count: int, steps: int, shared: bool, read: Read, element: Element) -> Reading:
    """The text that reads `count` rows.

    Args:
        steps: of k, at a time.
        shared: whether the lanes of a quad have the same rows; then lane `l` calls row `i ^ 4 * l` its row `i`.
        read: of an address, four elements where the side's mode has vectors, else one.
        element: any element, for operands that are no plain load.
    """
    x, own = side.letter, count // LANES if shared else count
    reading = Reading(_rows(side, own, shared), [], [[] for _ in range(steps)], [[] for _ in range(steps)])
    moving, codes = _loads(side, own, steps, reading.setup, read, element)
    for first in range(0, own, 4):
        four = range(first, min(first + 4, own))
        lines = [*(moving if first == 0 else []), *(f"let {name} = {code};" for i in four for name, code in codes[i])]
        for lane, swap in enumerate(SWAPS if shared else SWAPS[:1]):
            end = f"_{lane}" if lane else ""
            if lane:
                lines += [f"let {name}{end} = {swap}({name});" for i in four for name, _ in codes[i]]
            for u in range(steps):
                if side.mode == "across":
                    fours = f"{x}{first}u{u}{end}"
                    singles = [f"{fours}.{c}" for c in "xyzw"]
                else:
                    singles = [
                        f"{x}{i}v{end}.{'xyzw'[u]}" if side.mode == "along" else f"{x}{i}u{u}{end}" for i in four
                    ]
                    fours = f"vec4<f32>({', '.join(singles)})"
                reading.singles[u].extend(singles)
                reading.fours[u].append(fours)
        reading.lines.append(lines)
    return reading


def _loads(
    side: Side, own: int, steps: int, setup: list[str], read: Read, element: Element
) -> tuple[list[str], list[list[tuple[str, str]]]]:
    """What all rows need at the steps from `k` on, and for each row (name, code) of what it loads then.

    What no step changes goes to `setup`.
    """
    x, access = side.letter, side.access
    if access is None:
        return [], [
            [(f"{x}{i}u{u}", element("vb", f"{x}r{i}", _later("k", u))) for u in range(steps)] for i in range(own)
        ]
    sums, axis, row, along = [(c, p) for c, p, _ in access.sums], side.axis, "{}", {side.k: "k"}
    if side.mode == "across":
        sums, axis, row = [access.quarter(axis)], quarter_of(axis), "({} / 4u)"
    elif side.mode == "along":
        sums, along = [access.quarter(side.k)], {quarter_of(side.k): "(k / 4u)"}
    ((var, now),) = along.items()
    times = [("v", now)] if side.mode == "along" else [(f"u{u}", _later(now, u)) for u in range(steps)]
    moving = [
        f"let {x}k{n}{name} = {show_part(parts.get(var, Index(())), {var: at})};"
        for n, (_, parts) in enumerate(sums)
        for name, at in times
    ]
    loads: list[list[tuple[str, str]]] = [[] for _ in range(own)]
    for i in range(0, own, 4 if side.mode == "across" else 1):
        for n, (const, parts) in enumerate(sums):
            setup.append(f"let {x}p{n}_{i} = {_fixed(side, const, parts, axis, row.format(f'{x}r{i}'))};")
        for name, _ in times:
            addresses = [f"{x}p{n}_{i} + {x}k{n}{name}" for n in range(len(sums))]
            loads[i].append((f"{x}{i}{name}", _guarded(read(addresses[0]), addresses[1:], access)))
    return moving, loads


def _guarded(code: str, compared: list[str], access: Affine) -> str:
    """A load, or 0 where a comparison fails. `&` takes no branch, which would take long to compile."""
    tests = [f"({sum_} < {guard.size}u)" for sum_, guard in zip(compared, access.guards, strict=True)]
    return f"select(0.0, {code}, {' & '.join(tests)})" if tests else code


def _later(name: str, steps: int) -> str:
    return f"({name} + {steps}u)" if steps else name


def _rows(side: Side, own: int, shared: bool) -> list[str]:
    """The numbers of a thread's own rows; at the edge it reads the last rows again rather than others' memory."""
    x, across, ragged = side.letter, side.mode == "across", side.axis.size % side.extent
    last = side.axis.size - (4 if across else 1)
    lines = []
    for i in range(0, own, 4 if across else 1):
        row = f"{x}first + {i // 4 * 4 * LANES}u + lane * 4u + {i % 4}u" if shared else f"{x}first + {i}u"
        lines.append(f"let {x}r{i} = {f'min({row}, {last}u)' if ragged else row};")
    return lines


def _fixed(side: Side, const: int, parts: dict[Var, Index], axis: Var, row: str) -> str:
    """The part of an address that no step changes."""
    nothing = Index(())
    batch = show_part(parts.get(side.batch, nothing) + const, {side.batch: "vb"})
    return f"{batch} + {show_part(parts.get(axis, nothing), {axis: row})}"


def products(rows: Reading, columns: Reading) -> list[str]:
    """Some steps of k: reads both and adds their products to `sums`, row by row."""
    lines = [line for four in rows.lines for line in four]
    each, steps = len(columns.fours[0]) // len(columns.lines), range(len(rows.singles))
    for g, step in enumerate(columns.lines):
        # few values are alive at a time: a CPU's shader compiler takes much longer over many
        lines += step
        for j in range(g * each, (g + 1) * each):
            lines += [f"let q{u}_{j} = {columns.fours[u][j]};" for u in steps]
            for i in range(len(rows.singles[0])):
                terms = " + ".join(f"{rows.singles[u][i]} * q{u}_{j}" for u in steps)
                lines.append(f"sums[{i * len(columns.fours[0]) + j}] += {terms};")
    return lines
