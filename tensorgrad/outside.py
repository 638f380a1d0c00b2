"""Indices and class numbers out of range: found where a result came back as NaN, and named.

On the device there is nobody to raise an error, so an index outside a table, or a label outside the classes, gives NaN.
The host still has the inputs. Which of them are used as positions, and how many those are, is noted by the trace
(`trace.expect_index`). While results are finite, only those inputs are looked at of which a wrong number gives no NaN:
what is out of range is left out of a `one_hot` or a `scatter_add`, and integers read 0.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tensorgrad.callsite import warn
from tensorgrad.device.base import LOSS_RING
from tensorgrad.graph import Graph, IndexRange, Value

_SAME_NUMBERS = frozenset({"broadcast_to", "cast", "flip", "permute", "reshape", "slice", "stop_gradient"})
"""Operations whose result has no other numbers than their operand."""

HELD = 2**24
"""Bytes of labels and indices that are held of queued steps."""


class Positions:
    """The inputs of a function that it uses as positions.

    Args:
        graph: as it was traced.
    """

    def __init__(self, graph: Graph) -> None:
        found = ((_origin(graph, expected.value), expected) for expected in graph.ranges)
        self._expected = [(name, expected) for name, expected in found if name is not None]
        self._silent = [(name, expected) for name, expected in self._expected if expected.silent]

    def of(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Those among the inputs."""
        return {name: inputs[name] for name, _ in self._expected if name in inputs}

    def wrong(self, inputs: Mapping[str, Any]) -> str | None:
        """What is wrong with the first input that holds a position out of range, or None.

        Args:
            inputs: by name, as the user gave them; a leading axis of batches does not matter.
        """
        return _wrong(self._expected, inputs)

    def look(self, inputs: Mapping[str, Any]) -> None:
        """Warns of a position out of range that gives no NaN: of the first one, which then need not be told again."""
        if self._silent and (why := _wrong(self._silent, inputs)):
            self._silent = []
            warn(f"what is out of range counts for nothing: {why}")

    def explain(self, inputs: Mapping[str, Any], results: Iterable[np.ndarray]) -> None:
        """Warns where an input holds a position out of range, of which results are NaN, or which is silent."""
        self.look(inputs)
        bad = self._expected and any(array.dtype.kind == "f" and np.isnan(array).any() for array in results)
        if bad and (why := self.wrong(inputs)):
            warn(f"the result holds NaN: {why}")


class Held:
    """Of the last steps that were queued the inputs that are positions, to explain a loss that is not finite.

    Args:
        sizes: bytes of a step's inputs, by name.
    """

    def __init__(self, positions: Positions, sizes: Mapping[str, int]) -> None:
        each = sum(positions.of(sizes).values())
        self._positions = positions
        self._given: deque[dict[str, Any]] = deque(maxlen=min(LOSS_RING, HELD // max(1, each)))

    def add(self, inputs: Mapping[str, Any]) -> None:
        """Those of one step more."""
        self._given.append(self._positions.of(inputs))

    def blamed(self, losses: np.ndarray) -> dict[str, Any] | None:
        """Those of the first step that they have made NaN, of all steps queued and their losses; forgets them."""
        newest = zip(reversed(self._given), reversed(losses), strict=False)
        bad = [given for given, loss in newest if not np.isfinite(loss)]
        self._given.clear()
        return next(filter(self._positions.wrong, reversed(bad)), None)


def _wrong(ranges: Iterable[tuple[str, IndexRange]], inputs: Mapping[str, Any]) -> str | None:
    for name, expected in ranges:
        array = np.asarray(inputs.get(name, ()))
        if array.dtype.kind not in "iu":
            continue
        wrong = (array < expected.first) | (array >= expected.size)
        if expected.ignored is not None:
            wrong &= array != expected.ignored
        if wrong.any():
            number, places = array[wrong].flat[0], f"{expected.first} to {expected.size - 1}"
            return f"input {name!r} holds {number}, but {expected.what}, {places} (at {expected.site})"
    return None


def _origin(graph: Graph, value: Value) -> str | None:
    """The leaf of which these are the numbers, or some of them."""
    node = graph.node(value)
    while node.op in _SAME_NUMBERS:
        node = graph.node(node.inputs[0])
    return node.attrs["name"] if node.op == "leaf" else None
