"""Attention kernels with data and the results they must give, for the tests of the template."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from programs import lowered, program, with_initial
from tensorgrad import ops
from tensorgrad.autodiff import append_grad
from tensorgrad.device import interpret
from tensorgrad.device.base import Limits
from tensorgrad.graph import Value
from tensorgrad.lower.kernel import Kernel
from tensorgrad.lower.lowering import Lowered
from tensorgrad.tensor import Tensor
from tensorgrad.wgsl import attention
from tensorgrad.wgsl.attention_tiles import fits
from tensorgrad.wgsl.matmul_tiles import Tile
from tensorgrad.wgsl.shader import Source


@dataclass
class Case:
    """A kernel, what it reads and what it must store, by value and flat."""

    name: str
    kernel: Kernel
    arrays: dict[Value, np.ndarray]
    expected: dict[Value, np.ndarray]

    @property
    def part(self) -> str:
        assert self.kernel.attention
        return self.kernel.attention.part


@dataclass(frozen=True)
class Sizes:
    """Of an attention: batch, heads, queries, keys, and a head's size in q and k and in v."""

    batch: int
    heads: int
    length: int
    keys: int
    size: int
    width: int

    def __str__(self) -> str:
        return "x".join(map(str, (self.batch, self.heads, self.length, self.keys, self.size, self.width)))


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def mask_of(kind: str, s: Sizes) -> np.ndarray | None:
    """No mask, bools of which one query has no True, or numbers of all scores, of each key, or of each head."""
    if kind == "bools":
        mask = normal(s.length, s.keys, seed=9) < 0.5
        mask[s.length // 2] = False
        return mask
    shapes = {"scores": (s.batch, s.heads, s.length, s.keys), "keys": (s.batch, 1, 1, s.keys), "heads": (s.heads, 1, 1)}
    return normal(*shapes[kind], seed=9) if kind in shapes else None


def lower(
    s: Sizes, layout: str, mask: str = "", causal: bool = False, magnitude: float = 1.0, spoilt: bool = False
) -> tuple[Lowered, dict]:
    """A lowered attention with its gradient.

    Args:
        layout: how q, k and v lie in memory: `heads` (by head as they are), `split` (by position, as heads are
            split), `packed` (beside each other in one tensor), `turned` (the last axis is not the unit stride),
            `loose` (between NaNs, and no run of four is aligned), `computed` (rows of 16 of a wider
            tensor, read as rows of a size that does not divide them: no sum of strides).
        magnitude: of q and k.
        spoilt: q has a NaN in the first head and an infinity in the last.
    """
    shapes = ((s.length, s.size), (s.keys, s.size), (s.keys, s.width))
    arrays = [normal(s.batch, s.heads, *shape, seed=n) for n, shape in enumerate(shapes)]
    arrays = [a * np.float32(magnitude) if n < 2 else a for n, a in enumerate(arrays)]
    if spoilt:
        arrays[0][0, 0, 1, 2], arrays[0][-1, -1, 3, 0] = np.nan, np.inf
    arrays, view = {
        "heads": lambda: (arrays, lambda x: x),
        "split": lambda: ([a.transpose(0, 2, 1, 3).copy() for a in arrays], lambda x: x.permute(0, 2, 1, 3)),
        "turned": lambda: ([a.swapaxes(2, 3).copy() for a in arrays], lambda x: x.permute(0, 1, 3, 2)),
        "packed": lambda: ([np.stack(arrays, 1)], None),
        "loose": lambda: (
            [np.pad(a, [(0, 0), (0, 0), (1, 2), (3, 2)], constant_values=np.nan) for a in arrays],
            lambda x: x[:, :, 1:-2, 3:-2],
        ),
        "computed": lambda: (
            [np.pad(a.reshape(*a.shape[:2], -1, 16), [(0, 0)] * 3 + [(1, 0)], constant_values=np.nan) for a in arrays],
            lambda x: x[:, :, :, 1:].reshape(*x.shape[:2], -1, s.size),
        ),
    }[layout]()
    inputs = [*arrays]
    given = mask_of(mask, s)
    inputs += [] if given is None else [given]
    inputs.append(normal(s.batch, s.length, s.heads, s.width, seed=8))

    def fn(*leaves: Tensor) -> list[Tensor]:
        *operands, weights = leaves
        bias = operands.pop() if given is not None else None
        q, k, v = (operands[0][:, n] for n in range(3)) if view is None else map(view, operands)
        y = ops.scaled_dot_product_attention(q, k, v, bias, is_causal=causal).permute(0, 2, 1, 3)
        return [y, *append_grad(ops.sum(y * weights), operands)]

    p = program(fn, inputs)
    return lowered(p), with_initial(p)


def cases(name: str, low: Lowered, values: Mapping[str, np.ndarray]) -> list[Case]:
    """The attention kernels of a program, with what the interpreter says that they read and store."""
    found: list[Case] = []

    def watch(i: int, buffers: Mapping[int, np.ndarray]) -> None:
        kernel = low.kernels[i]
        if kernel.attention:
            sizes = {v: low.graph.type(v).size for v in (*kernel.loads(), *kernel.writes)}
            held = {v: buffers[low.memory.where[v]][:size].copy() for v, size in sizes.items()}
            arrays, expected = ({v: held[v] for v in values_} for values_ in (kernel.loads(), kernel.writes))
            found.append(Case(f"{kernel.attention.part} {name}", kernel, arrays, expected))

    with np.errstate(all="ignore"):
        interpret.run(low, values, watch)
    return found


def make(s: Sizes, layout: str, mask: str = "", causal: bool = False, **options: Any) -> list[Case]:
    """The three kernels of an attention and its gradient."""
    name = f"{s} {layout}{f' mask {mask}' if mask else ''}{' causal' if causal else ''}"
    return cases(name, *lower(s, layout, mask, causal, **options))


HEADS = {4: 4, 12: 4, 20: 36, 32: 32, 64: 32, 100: 100, 128: 128}
"""Sizes of a head in q and k, and in v."""
LAYOUTS = ("heads", "split", "turned", "packed", "loose", "computed")
MASKS = ("bools", "scores", "keys", "heads")


def in_layout(layout: str) -> Sizes:
    """Sizes that every way to lie in memory can have."""
    return Sizes(2, 3, 20, 20 if layout == "packed" else 24, 12, 12)


def variants(tiles: Iterable[Tile], limits: Limits) -> Iterator[tuple[str, Source]]:
    """The kernels of each size of head with all tiles that fit, of each layout and mask with some; without data."""
    tiles = tuple(tiles)
    programs = [(Sizes(1, 1, 19, 21, size, width), "split", "", size % 8 == 4) for size, width in HEADS.items()]
    programs += [(in_layout(layout), layout, "", False) for layout in LAYOUTS]
    programs += [(Sizes(2, 2, 18, 35, 8, 8), "split", mask, False) for mask in MASKS]
    for n, program_ in enumerate(programs):
        low, _ = lower(*program_)
        for kernel, tile in itertools.product(low.kernels, tiles if n < len(HEADS) else tiles[n % 4 :: 4]):
            if kernel.attention and fits(tile, kernel.attention, limits):
                source = attention.generate(kernel, limits, tile=tile)
                yield f"{source.name}, {' '.join(map(str, program_))}", source
