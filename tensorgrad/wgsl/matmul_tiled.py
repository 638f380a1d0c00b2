"""Multiplying two tiles in workgroup memory.

Each thread has `tm` rows and `tn` columns of its workgroup's block, which are spread over the block so that
neighbours in a warp read neighbours in workgroup memory: thread `ty` has the vec4s of rows `ty`, `ty + down`, ...,
thread `tx` the vec4s of columns `tx`, `tx + across`, ... (where a tile is kept in rows, single rows instead).
Its sums are variables `c<row>_<vec4 of columns>`, so that they stay in registers.

The arrays in workgroup memory have two dimensions for a reason: a shader compiler that keeps indices in bounds
then works on a column that is the same in all steps, and leaves addresses that differ by constants.
"""

from __future__ import annotations

from collections.abc import Callable

from tensorgrad.wgsl.matmul_load import Side
from tensorgrad.wgsl.matmul_tiles import Tile

_XYZW = "xyzw"


def storage(tile: Tile, sides: tuple[Side, Side]) -> str:
    """The declarations of workgroup memory."""
    text = ""
    for side in sides:
        outer, inner = (side.extent, side.steps // 4) if side.mode == "rows" else (side.steps, side.extent // 4)
        text += f"var<workgroup> tile_{side.letter}: array<array<vec4<f32>, {inner}>, {outer}>;\n"
    if tile.slices > 1:
        text += f"var<workgroup> parts: array<vec4<f32>, {tile.slices // 2 * tile.m * tile.n // 4}>;\n"
    return text


def sums(tile: Tile) -> list[str]:
    """The names of a thread's sums, row by row."""
    return [f"c{i}_{j}" for i in range(tile.tm) for j in range(tile.tn // 4)]


def row_of(tile: Tile, a: Side, i: int) -> str:
    """The row of the block that a thread's row `i` is."""
    down = tile.m // tile.tm
    if a.mode == "rows":
        return f"ty + {i * down}u"
    return f"(ty + {i // 4 * down}u) * 4u + {i % 4}u"


def multiply(tile: Tile, a: Side, b: Side) -> list[str]:
    """Adds all products of the two tiles to the sums."""
    steps = tile.k // tile.slices
    if "rows" in (a.mode, b.mode):
        step = f"slice * {steps // 4}u + kk" if tile.slices > 1 else "kk"
        return [f"for (var kk = 0u; kk < {steps // 4}u; kk++) {{", *_indent(_four_steps(tile, a, b, step)), "}"]
    step = f"slice * {steps}u + kk" if tile.slices > 1 else "kk"
    body = [*_left(tile, step), *_right(tile, step), *_products(tile, lambda i: f"p{i // 4}.{_XYZW[i % 4]}")]
    return [f"for (var kk = 0u; kk < {steps}u; kk++) {{", *_indent(body), "}"]


def _left(tile: Tile, step: str, suffix: str = "") -> list[str]:
    """A thread's rows at one step, in vec4s."""
    down = tile.m // tile.tm
    return [f"let p{suffix}{g} = tile_a[{step}][ty + {g * down}u];" for g in range(tile.tm // 4)]


def _right(tile: Tile, step: str) -> list[str]:
    """A thread's columns at one step."""
    across = tile.n // tile.tn
    return [f"let q{j} = tile_b[{step}][tx + {j * across}u];" for j in range(tile.tn // 4)]


def _products(tile: Tile, left: Callable[[int], str]) -> list[str]:
    """The products of one step's rows and columns."""
    return [
        f"c{i}_{j} = fma(vec4<f32>({left(i)}), q{j}, c{i}_{j});" for i in range(tile.tm) for j in range(tile.tn // 4)
    ]


def _four_steps(tile: Tile, a: Side, b: Side, step: str) -> list[str]:
    """Four steps at once, where a tile that is kept in rows has vec4s of four steps."""
    lines: list[str] = []

    def at(u: int) -> str:
        return f"({step}) * 4u + {u}u"

    def left(u: int) -> Callable[[int], str]:
        if a.mode == "rows":
            return lambda i: f"p{i}.{_XYZW[u]}"
        return lambda i: f"p{u}_{i // 4}.{_XYZW[i % 4]}"

    if a.mode == "rows":
        down = tile.m // tile.tm
        lines += [f"let p{i} = tile_a[ty + {i * down}u][{step}];" for i in range(tile.tm)]
    elif b.mode == "rows":
        lines += [line for u in range(4) for line in _left(tile, at(u), f"{u}_")]
    if b.mode != "rows":
        for u in range(4):
            lines += ["{", *_indent([*_right(tile, at(u)), *_products(tile, left(u))]), "}"]
        return lines
    across, quarter = tile.n // tile.tn, tile.n // 4
    for j in range(tile.tn // 4):
        # row c * quarter + n of the tile is column 4 * n + c
        block = [f"let r{c} = tile_b[tx + {c * quarter + j * across}u][{step}];" for c in range(4)]
        for u in range(4):
            block.append(f"let q{u} = vec4<f32>({', '.join(f'r{c}.{_XYZW[u]}' for c in range(4))});")
            block += [f"c{i}_{j} = fma(vec4<f32>({left(u)(i)}), q{u}, c{i}_{j});" for i in range(tile.tm)]
        lines += ["{", *_indent(block), "}"]
    return lines


def reduce(tile: Tile) -> list[str]:
    """Adds up the slices' sums, half of them to the other half until one is left."""
    group = tile.m * tile.n // (tile.tm * tile.tn)
    names = sums(tile)
    lines = [f"let own = ty * {tile.n // tile.tn}u + tx;"]
    half = tile.slices // 2
    while half:
        cell = f"({{}}) * {len(names) * group}u + {{}}u + own"
        sends = [f"parts[{cell.format(f'slice - {half}u', v * group)}] = {n};" for v, n in enumerate(names)]
        takes = [f"{n} += parts[{cell.format('slice', v * group)}];" for v, n in enumerate(names)]
        lines += ["workgroupBarrier();", f"if (slice >= {half}u && slice < {2 * half}u) {{", *_indent(sends), "}"]
        lines += ["workgroupBarrier();", f"if (slice < {half}u) {{", *_indent(takes), "}"]
        half //= 2
    return [*lines, "if (slice > 0u) { return; }"]


def _indent(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]
