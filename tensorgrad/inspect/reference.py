"""What a kernel should have stored, and whether what it stored is that.

A kernel is judged by itself: the reference computes its stored values from the very
numbers that the device read, so that no rounding of earlier kernels adds up, and the
first kernel that differs is the one at fault.

The reference is the primitives' own rules in float64. Numbers agree to a tolerance for
their dtype. Where they do not, the reference is computed again in float32 and from
inputs moved by a few units in the last place: what changes a lot under that (a
difference of nearly equal numbers, a comparison of computed ones) may differ as much.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tensorgrad.dtypes import DType, f16
from tensorgrad.graph import Graph, Node, Value
from tensorgrad.inspect.work import computed
from tensorgrad.lower.compose import LEAVES
from tensorgrad.lower.kernel import Kernel
from tensorgrad.primitive import REGISTRY

Arrays = Mapping[Value, np.ndarray]
Read = Callable[[Value], np.ndarray]

MOVED = 5
"""References from moved inputs."""

_ULPS = 8
"""How far inputs are moved, in units of the last place."""

_SPREAD = 4
"""How many times the references' spread a result may be off."""


class Tolerance(NamedTuple):
    """`|got - expected| <= relative * |expected| + small * (a small element of the tensor) + tiny`."""

    relative: float
    small: float
    tiny: float


# exp, pow and division of the device are good to some 100 ulp for the largest arguments; sums
# of some thousand terms to some 100 ulp of their terms. f16 keeps 11 bits of mantissa.
_TOLERANCES = {"f32": Tolerance(1e-4, 3e-5, 1e-37), "f16": Tolerance(8e-3, 4e-3, 1e-7)}


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a stored value differs.

    Attributes:
        value: the graph's value.
        index: the element that is worst.
        got, expected: its numbers.
        allowed: how far they might be apart.
        count, size: elements that differ, of how many.
    """

    value: Value
    index: tuple[int, ...]
    got: float
    expected: float
    allowed: float
    count: int
    size: int


class Judged(NamedTuple):
    """The worst of a kernel's values: its first difference, or None, and how much of the tolerance was used."""

    difference: Difference | None
    used: float


def judge(graph: Graph, kernel: Kernel, read: Read, stored: Arrays) -> Judged:
    """Compares what a kernel stored with the reference.

    Args:
        read: the array of a value that the kernel loads, as it was on the device; of a leaf too.
        stored: the kernel's values as the device has them.
    """
    rule = Rule(graph, kernel, read)
    exact = rule(np.float64)
    used = 0.0
    for value, got in stored.items():
        type_ = graph.type(value)
        wanted = _narrow(exact[value], type_.dtype)
        bad, share = _compare(got, wanted, type_.dtype, None)
        if bad.any():
            others = [_narrow(r[value], type_.dtype) for r in rule.others()]
            same = np.zeros(got.shape, bool)
            for other in others:
                same |= ~_compare(got, other, type_.dtype, None)[0]
            spread = _spread(wanted, others)
            bad = _compare(got, wanted, type_.dtype, spread)[0] & ~same
            if bad.any():
                return Judged(_worst(value, got, wanted, bad, type_.dtype), 1.0)
        used = max(used, share)
    return Judged(None, min(used, 1.0))


class Rule:
    """The reference of one kernel: from what it loads to what it stores, by the primitives' own rules."""

    def __init__(self, graph: Graph, kernel: Kernel, read: Read) -> None:
        self.graph, self.kernel, self.read = graph, kernel, read
        known = kernel.loads()
        self.nodes = computed(graph, kernel.writes, known.__contains__)
        self.inputs: dict[Value, np.ndarray] = {}
        inside = {v for node in self.nodes for v in node.values}
        for node in self.nodes:
            for value in node.inputs:
                if value in known or (value not in inside and graph.node(value).op in LEAVES):
                    self.inputs[value] = read(value)
        self._others: list[dict[Value, np.ndarray]] | None = None

    def __call__(
        self, dtype: Any, noise: np.random.Generator | None = None, *, rounds: bool = True
    ) -> dict[Value, np.ndarray]:
        """The stored values, computed with floats of this width, from inputs moved by `noise`.

        Args:
            rounds: whether what becomes f16 on the way is rounded.
        """
        known = {value: _widen(array, dtype, noise) for value, array in self.inputs.items()}
        found: dict[Value, np.ndarray] = {}
        with np.errstate(all="ignore"):
            for node in self.nodes:
                values = [known[v] if v in known else found[v] for v in node.inputs]
                if node.op == "bitcast":  # its bits are those of the declared width
                    values = [values[0].astype(self.graph.type(node.inputs[0]).dtype.numpy)]
                results = values if not rounds and _narrows(node) else _results(node, values)
                found.update(zip(node.values, results, strict=True))
        return {value: found[value] for value in self.kernel.writes}

    def others(self) -> list[dict[Value, np.ndarray]]:
        """The references that show how well the result is determined."""
        if self._others is None:
            noise = np.random.default_rng(0)
            self._others = [self(np.float32), *(self(np.float64, noise) for _ in range(MOVED))]
            if any(map(_narrows, self.nodes)):
                # a shader compiler may keep all bits of a number that becomes f16 and f32 again
                self._others.append(self(np.float64, rounds=False))
        return self._others


def _narrows(node: Node) -> bool:
    return node.op == "cast" and node.type.dtype is f16


def _results(node: Node, values: Sequence[np.ndarray]) -> list[np.ndarray]:
    results: Any = REGISTRY[node.op].eval(np, *values, **node.attrs)
    return [np.asarray(r) for r in (results if len(node.types) > 1 else (results,))]


def _widen(array: np.ndarray, dtype: Any, noise: np.random.Generator | None) -> np.ndarray:
    if array.dtype.kind != "f":
        return array
    unit = float(np.finfo(array.dtype).eps) * _ULPS
    wide = array.astype(dtype if array.dtype.itemsize <= np.dtype(dtype).itemsize else array.dtype)
    if noise is None:
        return wide
    with np.errstate(all="ignore"):
        return wide * (1 + unit * noise.uniform(-1, 1, wide.shape))


def _narrow(array: np.ndarray, dtype: DType) -> np.ndarray:
    """The reference as the stored dtype's range has it: too large is infinite."""
    if not dtype.is_float:
        return array.astype(dtype.numpy)
    with np.errstate(all="ignore"):
        overflows = np.isinf(array.astype(dtype.numpy))
        return np.where(overflows, np.copysign(np.inf, array), array)


def _spread(wanted: np.ndarray, others: Sequence[np.ndarray]) -> np.ndarray:
    with np.errstate(all="ignore"):
        apart = [np.abs(np.subtract(o, wanted, dtype=np.float64)) for o in others]
    return _SPREAD * np.max([np.where(np.isfinite(a), a, 0) for a in apart], axis=0)


def _compare(got: np.ndarray, wanted: np.ndarray, dtype: DType, spread: np.ndarray | None) -> tuple[np.ndarray, float]:
    """Where two arrays differ, and the largest part of the tolerance that is used where they do not."""
    with np.errstate(all="ignore"):
        off = np.abs(np.subtract(got, wanted, dtype=np.float64))
        allowed = _allowed(wanted, dtype) if dtype.is_float else np.zeros(wanted.shape)
        if spread is not None:
            allowed = allowed + spread
        same = got == wanted
        if dtype.is_float:
            same |= np.isnan(got) & np.isnan(wanted)
        bad = ~same & ~((off <= allowed) & np.isfinite(wanted))
        ratio = np.where(same | bad, 0, off / np.maximum(allowed, 1e-300))
    return bad, float(ratio.max(initial=0.0))


def _allowed(wanted: np.ndarray, dtype: DType) -> np.ndarray:
    relative, small, tiny = _TOLERANCES[dtype.name]
    size = np.abs(wanted)
    counted = size[np.isfinite(size) & (size > 0)]
    # not the largest: one of 1e9 (a mask, say) would excuse everything
    typical = float(np.quantile(counted, 0.25)) if counted.size else 0.0
    return relative * size + (small * typical + tiny)


def _worst(value: Value, got: np.ndarray, wanted: np.ndarray, bad: np.ndarray, dtype: DType) -> Difference:
    with np.errstate(all="ignore"):
        off = np.abs(np.subtract(got, wanted, dtype=np.float64))
        off = np.where(bad, np.where(np.isfinite(off), off, np.inf), -1)
    index = np.unravel_index(int(off.argmax()), got.shape)
    place = tuple(int(i) for i in index)
    allowed = float(_allowed(wanted, dtype)[place]) if dtype.is_float else 0.0
    return Difference(value, place, got[place].item(), wanted[place].item(), allowed, int(bad.sum()), bad.size)
