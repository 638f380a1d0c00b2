"""Moving tiles of a matmul's operands from global to workgroup memory.

In workgroup memory a tile is k-major: for each step k, the `vec4`s along the tile's other axis
(`m` of the left operand, `n` of the right one; here the `axis`). How a thread gets there depends
on how the operand lies in memory:

- across: four values of the axis are adjacent: a vec4 is copied.
- along: four values of k are adjacent: four vec4s of four rows are transposed in registers.
- single: neither; four elements are read one by one, each after its comparisons if it has any.

Reading is split in two, `fetch` into registers and `put` into workgroup memory, so that the next
tile is on its way while the present one is multiplied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tensorgrad.lower.expr import Expr
from tensorgrad.lower.index import Index, Var
from tensorgrad.wgsl.matmul_access import Affine, quarter_of, show_part


class Side(NamedTuple):
    """One operand of a tiled matmul.

    Attributes:
        letter: `a` or `b`; every name in the text that belongs to this side starts with it.
        expr: the operand.
        access: how it is loaded where it is an affine load.
        batch, axis, k: its variables.
        extent: values of the axis in a tile.
        steps: values of k in a tile.
        threads: of the workgroup.
        padded: rows of the tile in workgroup memory are one vec4 longer than needed, against bank conflicts.
        vectors: whether the buffer is an array of vectors.
        last: give the last threads the work if there is less of it than threads.
        run: numbers that are moved at once: 4, or 8 of f16 as four words.
    """

    letter: str
    expr: Expr
    access: Affine | None
    batch: Var
    axis: Var
    k: Var
    extent: int
    steps: int
    threads: int
    padded: bool
    vectors: bool
    last: bool
    run: int = 4

    @property
    def mode(self) -> str:
        if self.access and self.vectors:
            if self.access.in_fours(self.axis):
                return "across"
            if self.access.in_fours(self.k):
                return "along"
        return "single"

    @property
    def by_steps(self) -> bool:
        """Whether neighbouring threads read neighbouring steps, and so write to different rows of the tile."""
        if self.mode == "single" and self.access:
            return self.access.run(self.k) > self.access.run(self.axis)
        return self.mode == "along"


class Loading:
    """The text of one side.

    Attributes:
        setup: before the loop: addresses.
        fetch: reads the tile that starts at step `k0` into registers.
        put: writes the registers to workgroup memory.
        registers: the names of these registers.
    """

    def __init__(self) -> None:
        self.setup: list[str] = []
        self.fetch: list[str] = []
        self.put: list[str] = []
        self.registers: list[str] = []


Element = Callable[[str, str, str], str]
"""Code of an operand's element at the named batch, axis and k."""

Read = Callable[[str], str]
"""Code that reads the operand's buffer at an address, as f32 or vec4<f32>."""


def loading(side: Side, read: Read, element: Element) -> Loading:
    """The text that moves one side's tiles.

    Args:
        read: of the buffer, for affine loads.
        element: any element, for the others.
    """
    out = Loading()
    rows, columns = side.extent // 4, side.steps
    total = rows * columns // 4 if side.mode == "along" else rows * columns
    for unit in range(-(-total // side.threads)):
        _unit(side, out, unit, total, read, element)
    return out


def _unit(side: Side, out: Loading, unit: int, total: int, read: Read, element: Element) -> None:
    x, u = side.letter, unit
    first = unit * side.threads
    spare = side.threads - total if side.last and total < side.threads else 0
    shift = first - spare
    out.setup.append(f"let {x}e{u} = lid{f' + {shift}u' if shift > 0 else f' - {-shift}u' if shift else ''};")
    # a thread without work: an index that wrapped below zero is refused by the same comparison
    guards = [f"{x}e{u} < {total}u"] if total % side.threads and first + side.threads > total else []
    out.setup += place_of(side, f"{x}e{u}", f"{x}t{u}", f"{x}k{u}", u > 0)
    bounds = [f"k0 + {x}k{u} < {side.k.size}u"] if side.k.size % side.steps else []
    moving: dict[str, str] = {}
    registers = addresses(side, out, u, read, element, moving)
    condition = " && ".join([*guards, *bounds])
    out.registers += [name for name, _ in registers]
    for name, _ in registers:
        out.setup.append(f"var {name} = vec4<f32>();")
    if bounds:
        out.fetch += [f"{name} = vec4<f32>();" for name, _ in registers]
    out.fetch += [f"let {name} = {code};" for code, name in moving.items()]
    body = [f"{name} = {code};" for name, code in registers]
    out.fetch += [f"if ({condition}) {{", *(f"  {line}" for line in body), "}"] if condition else body
    tile, names = f"tile_{x}", [name for name, _ in registers]
    if side.mode == "along":
        puts = [
            f"{tile}[{x}k{u} + {i}u][{x}t{u}] = vec4<f32>({', '.join(f'{n}.{c}' for n in names)});"
            for i, c in enumerate("xyzw")
        ]
    else:
        puts = [f"{tile}[{x}k{u}][{x}t{u}] = {names[0]};"]
    out.put += [f"if ({guards[0]}) {{", *(f"  {line}" for line in puts), "}"] if guards else puts


def place_of(side: Side, e: str, t: str, k: str, again: bool) -> list[str]:
    """Which vec4 of the axis (`t`) and which step (`k`) the work item `e` is.

    Args:
        again: it is not the first of its thread; where all of them have one vec4, or one step, it is said so.
    """
    rows, quarters = side.extent // 4, side.steps // 4
    if side.mode == "along":
        # Neighbours read adjacent memory, four of them 64 bytes: fewer rows in a load are fewer cache lines. But they
        # write to rows of workgroup memory that are four apart: only with padding are these in different banks.
        fast = min(quarters, 4 if side.padded else 2)
        step = f"{e} % {fast}u * 4u"
        if fast < quarters:
            step += f" + {e} / {fast * rows}u * {4 * fast}u"
        return [f"let {t} = {e} / {fast}u % {rows}u;", f"let {k} = {step};"]
    if side.by_steps:
        same = again and side.threads % side.steps == 0
        return [
            f"let {t} = {e} / {side.steps}u;",
            f"let {k} = {f'{side.letter}k0' if same else f'{e} % {side.steps}u'};",
        ]
    same = again and side.threads % rows == 0
    return [f"let {t} = {f'{side.letter}t0' if same else f'{e} % {rows}u'};", f"let {k} = {e} / {rows}u;"]


def addresses(
    side: Side, out: Loading, u: int, read: Read, element: Element, moving: dict[str, str]
) -> list[tuple[str, str]]:
    """Sets up addresses; gives (register, code of its value) for each vec4 that a work item reads.

    Args:
        moving: gets what all rows add to their addresses at a step: code -> name.
    """
    x = side.letter
    first = f"{x}0"
    size = side.axis.size
    clamped = size % side.extent != 0
    if side.mode == "across":
        assert side.access
        row = f"{first} / 4u + {x}t{u}"
        row = f"min({row}, {size // 4 - 1}u)" if clamped else row
        out.setup.append(f"let {x}r{u} = {row};")
        const, parts = side.access.quarter(side.axis)
        axis = quarter_of(side.axis)
        address = address_of(side, out, moving, f"{x}p{u}", const, parts, axis, f"{x}r{u}", side.k, f"{x}k{u}")
        return [(f"{x}v{u}", read(address))]
    rows = [f"{x}r{u}_{i}" for i in range(4)]
    for i, name in enumerate(rows):
        row = f"{first} + {x}t{u} * 4u + {i}u"
        out.setup.append(f"let {name} = {f'min({row}, {size - 1}u)' if clamped else row};")
    if side.mode == "along":
        places = [address_along(side, out, moving, u, f"{x}p{u}_{i}", row) for i, row in enumerate(rows)]
        return [(f"{x}v{u}_{i}", read(place)) for i, place in enumerate(places)]
    if side.access is None:
        values = [element("vb", row, f"k0 + {x}k{u}") for row in rows]
    else:
        access = side.access
        values = []
        for i, row in enumerate(rows):
            sums = (
                address_of(side, out, moving, f"{x}p{u}_{i}_{n}", const, parts, side.axis, row, side.k, f"{x}k{u}")
                for n, (const, parts, _) in enumerate(access.sums)
            )
            values.append(guarded(read, list(sums), access))
    return [(f"{x}v{u}", f"vec4<f32>({', '.join(values)})")]


def guarded(read: Read, sums: list[str], access: Affine) -> str:
    """Code of a load, or of 0 where a comparison fails; `sums` is the code of `access.sums`."""
    address, *compared = sums
    tests = [f"{code} < {guard.size}u" for code, guard in zip(compared, access.guards, strict=True)]
    return f"select(0.0, {read(address)}, {' && '.join(tests)})" if tests else read(address)


def address_along(
    side: Side, out: Loading, moving: dict[str, str], u: int, name: str, row: str, length: int = 4
) -> str:
    """The address of the vector of four (or `length`) steps in a row."""
    assert side.access
    const, parts = side.access.quarter(side.k, length)
    k, step = quarter_of(side.k, length), f"({side.letter}k{u} / {length}u)"
    return address_of(side, out, moving, name, const, parts, side.axis, row, k, step, f"k0 / {length}u")


def address_of(
    side: Side,
    out: Loading,
    moving: dict[str, str],
    name: str,
    const: int,
    parts: dict[Var, Index],
    axis: Var,
    row: str,
    k: Var,
    step: str,
    origin: str = "k0",
) -> str:
    """Code of an address; what does not change from tile to tile goes into the variable `name` before the loop."""
    nothing = Index(())
    fixed = [
        show_part(parts.get(side.batch, nothing) + const, {side.batch: "vb"}),
        show_part(parts.get(axis, nothing), {axis: row}),
    ]
    index = parts.get(k, nothing)
    stride = _stride(index, k)
    if stride is None:
        code = show_part(index, {k: f"({origin} + {step})"})
        # the digits of k are the same for all rows
        change = moving.setdefault(code, f"{name}m")
    else:
        fixed.append(f"{step} * {stride}u")
        change = f"{origin} * {stride}u" if stride != 1 else origin
    out.setup.append(f"let {name} = {' + '.join(f for f in fixed if f != '0u') or '0u'};")
    return f"{name} + {change}"


def _stride(index: Index, var: Var) -> int | None:
    if not index.terms:
        return 0
    stride = Affine.stride(Affine(None, None, 0, {var: index}), var)  # type: ignore[arg-type]
    return stride if stride is None or stride >= 0 else None
