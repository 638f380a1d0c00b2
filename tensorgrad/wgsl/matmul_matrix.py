"""Multiplying f16 tiles with subgroup matrices: 16x16 by 16x16, added up in f32, by all lanes of a subgroup together.

A subgroup has `tm` rows and `tn` columns of its workgroup's block, as matrices that stay in registers. Operands go
through workgroup memory as they do for `matmul_tiled`, but in the order in which they lie in global memory, since a
matrix can be loaded either way: k-major where the axis is contiguous, axis-major where k is. Nothing is widened or
transposed on the way; eight numbers move at once where they lie side by side.

A matrix cannot be looked into. So the sums go through workgroup memory too, and from there to `finish` four columns
at a time, as those of the other tiles do: one matrix of each subgroup at a time (with four at once, a product of 2048
takes 136 us for 90). The sum of an operand over k is its product with a matrix of ones.

The extension is Chromium's `chromium_experimental_subgroup_matrix`
(https://dawn.googlesource.com/dawn/+/refs/heads/main/docs/dawn/features/subgroup_matrix.md). A pointer to an array of
vectors is allowed, whose offset and stride then count vectors.
"""

from __future__ import annotations

from collections.abc import Callable

from tensorgrad.dtypes import f16
from tensorgrad.lower.expr import Expr, widened
from tensorgrad.lower.kernel import Matmul
from tensorgrad.wgsl.matmul_access import quarter_of
from tensorgrad.wgsl.matmul_load import Element, Loading, Read, Side, address_along, address_of, addresses, place_of
from tensorgrad.wgsl.matmul_tiles import PAD, UNIT, Tile

ENABLES = (
    "enable f16;",
    "enable subgroups;",
    "enable chromium_experimental_subgroup_matrix;",
    # subgroups of one workgroup take different parts of it, which the compiler cannot tell from a fault
    "diagnostic(off, chromium.subgroup_matrix_uniformity);",
)

LEFT, RIGHT = (f"subgroup_matrix_{side}<f16, {UNIT}, {UNIT}>" for side in ("left", "right"))
SUM = f"subgroup_matrix_result<f32, {UNIT}, {UNIT}>"

STAGE = UNIT * UNIT // 4
"""Vectors of a matrix in workgroup memory."""


def multiplies_halves(inner: Matmul) -> bool:
    """Whether both operands are numbers of f16, which matrices take without a loss."""
    return _is_half(inner.a) and _is_half(inner.b)


def _is_half(e: Expr) -> bool:
    if e.op == "where":
        return all(_is_half(x) or (x.op == "const" and x.data == 0) for x in e.args[1:])
    return e.dtype is f16 or widened(e).dtype is f16


def storage(tile: Tile, sides: tuple[Side, Side]) -> str:
    """The declarations of workgroup memory."""
    text = ""
    for side in sides:
        rows, row = _shape(side)
        cell = "vec4<u32>" if side.run == 8 else "vec4<f16>"
        text += f"var<workgroup> tile_{side.letter}: array<{cell}, {rows * row // side.run}>;\n"
    return text + f"var<workgroup> stage: array<vec4<f32>, {tile.subgroups * STAGE}>;\n"


def _shape(side: Side) -> tuple[int, int]:
    """Rows of a tile in workgroup memory, and numbers in each."""
    rows, row = (side.extent, side.steps) if side.mode == "along" else (side.steps, side.extent)
    return rows, row + PAD


def loading(side: Side, read: Read, element: Element) -> Loading:
    """The text that moves one side's tiles as they are.

    Args:
        read: of the buffer, for affine loads: raw vectors of the side's run, or single numbers in f32.
        element: any element, for the others.
    """
    out = Loading()
    cells = side.extent * side.steps // side.run
    for unit in range(-(-cells // side.threads)):
        _unit(side, out, unit, cells, read, element)
    return out


def _unit(side: Side, out: Loading, u: int, cells: int, read: Read, element: Element) -> None:
    x, run, size = side.letter, side.run, side.axis.size
    first = u * side.threads
    out.setup.append(f"let {x}e{u} = lid{f' + {first}u' if first else ''};")
    guards = [f"{x}e{u} < {cells}u"] if first + side.threads > cells else []
    moving: dict[str, str] = {}
    name, clamped = f"{x}v{u}", size % side.extent != 0
    if side.mode == "along":
        row = f"{x}0 + {x}t{u}"
        out.setup += [
            f"let {x}t{u} = {x}e{u} / {side.steps // run}u;",
            f"let {x}k{u} = {x}e{u} % {side.steps // run}u * {run}u;",
            f"let {x}r{u} = {f'min({row}, {size - 1}u)' if clamped else row};",
        ]
        code = read(address_along(side, out, moving, u, f"{x}p{u}", f"{x}r{u}", run))
        at = f"{x}t{u} * {_shape(side)[1] // run}u + {x}k{u} / {run}u"
    elif side.mode == "across":
        assert side.access
        row = f"{x}0 / {run}u + {x}t{u}"
        out.setup += [
            f"let {x}t{u} = {x}e{u} % {side.extent // run}u;",
            f"let {x}k{u} = {x}e{u} / {side.extent // run}u;",
            f"let {x}r{u} = {f'min({row}, {size // run - 1}u)' if clamped else row};",
        ]
        const, parts = side.access.quarter(side.axis, run)
        axis = quarter_of(side.axis, run)
        code = read(address_of(side, out, moving, f"{x}p{u}", const, parts, axis, f"{x}r{u}", side.k, f"{x}k{u}"))
        at = f"{x}k{u} * {_shape(side)[1] // run}u + {x}t{u}"
    else:
        out.setup += place_of(side, f"{x}e{u}", f"{x}t{u}", f"{x}k{u}", u > 0)
        ((_, code),) = addresses(side, out, u, read, element, moving)
        code = f"vec4<f16>({code})"
        at = f"{x}k{u} * {_shape(side)[1] // run}u + {x}t{u}"
    cell = "vec4<u32>" if run == 8 else "vec4<f16>"
    out.setup.append(f"var {name} = {cell}();")
    bounds = [f"k0 + {x}k{u} < {side.k.size}u"] if side.k.size % side.steps else []
    if bounds:
        out.fetch.append(f"{name} = {cell}();")
    out.fetch += [f"let {moved} = {text};" for text, moved in moving.items()]
    condition = " && ".join([*guards, *bounds])
    out.fetch.append(f"if ({condition}) {{ {name} = {code}; }}" if condition else f"{name} = {code};")
    put = f"tile_{x}[{at}] = {name};"
    out.put.append(f"if ({guards[0]}) {{ {put} }}" if guards else put)


def place(tile: Tile) -> list[str]:
    """Which rows and columns of the block this subgroup has."""
    across = tile.n // tile.tn
    return [f"let am = subgroup / {across}u * {tile.tm}u;", f"let bn = subgroup % {across}u * {tile.tn}u;"]


def _counts(tile: Tile) -> tuple[range, range]:
    """A subgroup's matrices, down and across."""
    return range(tile.tm // UNIT), range(tile.tn // UNIT)


def declare(tile: Tile, total: str | None) -> list[str]:
    """The sums; `total` is the letter of the operand that is summed too."""
    down, across = _counts(tile)
    lines = [f"var c{i}_{j} = {SUM}();" for i in down for j in across]
    if total:
        lines.append(f"let ones = {RIGHT if total == 'a' else LEFT}(f16(1.0));")
        lines += [f"var s{i} = {SUM}();" for i in (down if total == "a" else across)]
    return lines


def multiply(tile: Tile, sides: tuple[Side, Side], total: str | None) -> list[str]:
    """Adds all products of the two tiles to the sums."""
    down, across = _counts(tile)
    a, b = sides
    lines = []
    for step in range(0, tile.k, UNIT):
        block = [f"let q{j} = {_load(RIGHT, b, f'bn + {UNIT * j}u', step)};" for j in across]
        for i in down:  # one left matrix at a time: there are few registers beside the sums
            products = [f"let p = {_load(LEFT, a, f'am + {UNIT * i}u', step)};"]
            products += [f"c{i}_{j} = subgroupMatrixMultiplyAccumulate(p, q{j}, c{i}_{j});" for j in across]
            if total == "a":
                products.append(f"if (b0 == 0u) {{ s{i} = subgroupMatrixMultiplyAccumulate(p, ones, s{i}); }}")
            block += ["{", *_indent(products), "}"]
        if total == "b":
            sums = [f"s{j} = subgroupMatrixMultiplyAccumulate(ones, q{j}, s{j});" for j in across]
            block += ["if (a0 == 0u) {", *_indent(sums), "}"]
        lines += ["{", *_indent(block), "}"]
    return lines


def _load(kind: str, side: Side, at: str, step: int) -> str:
    """A matrix of a tile: rows or columns from `at` on, and the steps from `step` on."""
    along, row = side.mode == "along", _shape(side)[1] // side.run
    offset = f"({at}) * {row}u + {step // side.run}u" if along else f"{step * row}u + ({at}) / {side.run}u"
    order = "row_major" if along == (kind == LEFT) else "col_major"
    return f"subgroupMatrixLoad<{kind}, {order}>(&tile_{side.letter}, {offset}, {row}u)"


def results(tile: Tile, rows: int, finish: Callable[[str, str, str], list[str]]) -> list[str]:
    """Hands the sums to `finish`, which gets a row, a run of four columns and their sums.

    Args:
        rows: of the whole result.
    """
    down, across = _counts(tile)
    lines = []
    for i in down:
        for j in across:
            body = [
                f"let row = a0 + am + {UNIT * i}u + e / 4u;",
                *finish("row", f"(b0 + bn + {UNIT * j}u) / 4u + e % 4u", f"stage[subgroup * {STAGE}u + e]"),
            ]
            if rows % tile.m:
                body[1:] = [f"if (row < {rows}u) {{", *_indent(body[1:]), "}"]
            lines += _staged(f"c{i}_{j}")
            lines += [f"for (var e = lane; e < {STAGE}u; e += {tile.lanes}u) {{", *_indent(body), "}"]
    return lines


def _staged(name: str) -> list[str]:
    """Puts a matrix into workgroup memory."""
    store = f"subgroupMatrixStore<row_major>(&stage, subgroup * {STAGE}u, {name}, {UNIT // 4}u);"
    return ["workgroupBarrier();", store, "workgroupBarrier();"]


def totals(tile: Tile, side: Side) -> list[str]:
    """Stores the sums of an operand: each column of a product with ones on the right, each row of one on the left."""
    left = side.letter == "a"
    first, own, other = ("am", "a0", "b0") if left else ("bn", "b0", "a0")
    beside = "bn" if left else "am"
    cell = "stage[own + lane * 4u].x" if left else "stage[own + lane / 4u][lane % 4u]"
    lines = [f"let own = subgroup * {STAGE}u;"]
    for i in range((tile.tm if left else tile.tn) // UNIT):
        at = f"{own} + {first} + {UNIT * i}u + lane"
        guards = [f"{beside} == 0u", f"lane < {UNIT}u"]
        guards += [f"{at} < {side.axis.size}u"] if side.axis.size % side.extent else []
        lines += _staged(f"s{i}")
        lines.append(f"if ({' && '.join(guards)}) {{ finish_total(vb, {at}, {cell}); }}")
    return [f"if ({other} == 0u) {{", *_indent(lines), "}"]


def _indent(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]
