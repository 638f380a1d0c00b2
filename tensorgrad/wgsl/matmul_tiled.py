"""Multiplying two tiles in workgroup memory.

Each thread has `tm` rows and `tn` columns of its workgroup's block, which are spread over the block so that
neighbours in a warp read neighbours in workgroup memory: thread `ty` has the vec4s of rows `ty`, `ty + down`, ...,
thread `tx` the vec4s of columns `tx`, `tx + across`, ... Its sums are variables `c<row>_<vec4 of columns>`, so that
they stay in registers.

With 32 products a step or more the inner loop is fastest written out (`tensorgrad/wgsl/unroll.py`); with 16 the plain
loop is faster. The arrays in workgroup memory have two dimensions, so that a shader compiler which keeps indices in
bounds works on a column that is the same in all steps, and addresses differ by constants.
"""

from __future__ import annotations

from tensorgrad.wgsl.matmul_load import Side
from tensorgrad.wgsl.matmul_tiles import Tile
from tensorgrad.wgsl.unroll import loop

_XYZW = "xyzw"


def storage(tile: Tile, sides: tuple[Side, Side]) -> str:
    """The declarations of workgroup memory."""
    text = ""
    for side in sides:
        row = side.extent // 4 + (side.padded and side.by_steps)
        text += f"var<workgroup> tile_{side.letter}: array<array<vec4<f32>, {row}>, {side.steps}>;\n"
    if tile.slices > 1:
        text += f"var<workgroup> parts: array<vec4<f32>, {tile.slices // 2 * tile.m * tile.n // 4}>;\n"
    return text


def sums(tile: Tile) -> list[str]:
    """The names of a thread's sums, row by row."""
    return [f"c{i}_{j}" for i in range(tile.tm) for j in range(tile.tn // 4)]


def row_of(tile: Tile, i: int) -> str:
    """The row of the block that a thread's row `i` is."""
    return f"(ty + {i // 4 * (tile.m // tile.tm)}u) * 4u + {i % 4}u"


def multiply(tile: Tile) -> list[str]:
    """Adds all products of the two tiles to the sums."""
    steps = tile.k // tile.slices
    down, across = tile.m // tile.tm, tile.n // tile.tn
    step = f"slice * {steps}u + kk" if tile.slices > 1 else "kk"
    reads = [f"let p{g} = tile_a[{step}][ty + {g * down}u];" for g in range(tile.tm // 4)]
    reads += [f"let q{j} = tile_b[{step}][tx + {j * across}u];" for j in range(tile.tn // 4)]
    products = [
        f"c{i}_{j} = fma(vec4<f32>(p{i // 4}.{_XYZW[i % 4]}), q{j}, c{i}_{j});"
        for i in range(tile.tm)
        for j in range(tile.tn // 4)
    ]
    return loop(steps, reads, products, tile.tm * tile.tn >= 32)


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
