"""The matmul kernel for CPUs: no workgroup memory, no barriers.

Where a "GPU" is a CPU (SwiftShader, llvmpipe), a barrier costs as much as a hundred multiplications
and workgroup memory is no faster than any other. What pays there is few loads for many products and
sums that stay in registers for long: a thread computes a large block, and for four steps of k at once,
so that each sum is read and written once for four products.
"""

from __future__ import annotations

from tensorgrad.lower.index import Index, Var
from tensorgrad.wgsl.matmul_access import quarter_of, show_part
from tensorgrad.wgsl.matmul_load import Element, Read, Side

_XYZW = "xyzw"


def operand(side: Side, count: int, read: Read, element: Element) -> tuple[list[str], list[str], list[str]]:
    """The text that reads `count` rows (of the left operand; columns of the right one).

    Returns:
        what stands before the loop; what gives the vec4s `a0`, `a1`, ... (`b0`, ...) of the steps
        `k` to `k + 3`; and what gives their single elements at step `k`.
    """
    if side.mode == "across":
        return _across(side, count, read, element)
    x, setup = side.letter, _rows(side, count)
    singles = [f"let {x}{i} = {element('vb', f'{x}r{i}', 'k')};" for i in range(count)]
    if side.mode == "single":
        fours = [
            f"let {x}{i} = vec4<f32>({', '.join(element('vb', f'{x}r{i}', f'k + {u}u') for u in range(4))});"
            for i in range(count)
        ]
        return setup, fours, singles
    assert side.access
    const, parts = side.access.quarter(side.k)
    setup += [f"let {x}p{i} = {_fixed(side, const, parts, side.axis, f'{x}r{i}')};" for i in range(count)]
    moving = show_part(parts.get(quarter_of(side.k), Index(())), {quarter_of(side.k): "(k / 4u)"})
    return setup, [f"let {x}{i} = {read(f'{x}p{i} + {moving}')};" for i in range(count)], singles


def _across(side: Side, count: int, read: Read, element: Element) -> tuple[list[str], list[str], list[str]]:
    assert side.access
    x, setup, fours = side.letter, _rows(side, count), []
    const, parts = side.access.quarter(side.axis)
    axis = quarter_of(side.axis)
    for g in range(count // 4):
        setup.append(f"let {x}p{g} = {_fixed(side, const, parts, axis, f'({x}r{4 * g} / 4u)')};")
        for u in range(4):
            moving = show_part(parts.get(side.k, Index(())), {side.k: f"(k + {u}u)"})
            fours.append(f"let {x}v{g}_{u} = {read(f'{x}p{g} + {moving}')};")
        fours += [
            f"let {x}{4 * g + i} = vec4<f32>({', '.join(f'{x}v{g}_{u}.{c}' for u in range(4))});"
            for i, c in enumerate(_XYZW)
        ]
    return setup, fours, [f"let {x}{i} = {element('vb', f'{x}r{i}', 'k')};" for i in range(count)]


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


def products(rows: int, columns: int, steps: list[str], fours: bool) -> list[str]:
    """Reads the columns and adds their products with the rows, four columns after each other.

    Args:
        steps: the text that reads the columns, as many lines for each four of them.
        fours: whether four steps of k were read.
    """
    lines, share = [], len(steps) * 4 // columns
    for g in range(columns // 4):
        # few values are alive at a time: a CPU's shader compiler takes much longer over many
        lines += steps[g * share : (g + 1) * share]
        for i in range(rows):
            term = "dot(a{}, b{})" if fours else "a{} * b{}"
            terms = ", ".join(term.format(i, 4 * g + l) for l in range(4))
            lines.append(f"sums[{i * columns // 4 + g}] += vec4<f32>({terms});")
    return lines
