"""The graph: a list of frozen operation nodes in single-assignment form.

A node's inputs are `Value`s, each the result of an earlier node, so the list is in
topological order as it stands. A graph is plain data: passes read one and build
another. `print(graph)` shows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple, NoReturn

from tensorgrad.callsite import CallSite
from tensorgrad.dtypes import DType, Shape
from tensorgrad.errors import ArgumentError

Role = Literal["param", "input", "state"]


class Value(NamedTuple):
    """One result of one node."""

    node: int
    result: int = 0

    def __str__(self) -> str:
        return f"%{self.node}" if self.result == 0 else f"%{self.node}.{self.result}"


class TensorType(NamedTuple):
    """The static shape and dtype of a value."""

    shape: Shape
    dtype: DType

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __call__(self, *dtype: Any) -> NoReturn:
        raise ArgumentError("a tensor's type is its shape and dtype; x.astype(tg.i32) is the tensor in another dtype")

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    __repr__ = __str__


class Node(NamedTuple):
    """One operation: `op` names its primitive, `attrs` are its static arguments (hashable values).

    A named tuple, because each pass makes all of them anew, and a frozen dataclass takes three times as long.
    """

    id: int
    op: str
    inputs: tuple[Value, ...]
    attrs: Mapping[str, Any]
    types: tuple[TensorType, ...]
    site: CallSite | None = None

    @property
    def type(self) -> TensorType:
        return self.types[0]

    @property
    def values(self) -> tuple[Value, ...]:
        if len(self.types) == 1:
            return (Value(self.id),)
        return tuple(Value(self.id, i) for i in range(len(self.types)))

    def __str__(self) -> str:
        from tensorgrad.inspect.graphs import show_call, show_results  # printers read graphs: no cycle at import

        return f"{show_results(self)} = {show_call(self)}"


def show_attr(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(show_attr, value))}]"
    if callable(value):
        return getattr(value, "__name__", repr(value))
    return str(value)


class IndexRange(NamedTuple):
    """Where integers are used as positions, and how many there are.

    Attributes:
        value: the integers.
        first, size: they should be from the first to below the size.
        what: has so many places, in words.
        ignored: a number that is allowed too.
        silent: another number gives no NaN, and so does not tell of itself.
        site: the user's line.
    """

    value: Value
    first: int
    size: int
    what: str
    ignored: int | None
    silent: bool
    site: CallSite | None


@dataclass(slots=True, eq=False)
class Graph:
    """Nodes, what they return, and which states they replace.

    Attributes:
        nodes: in topological order; `nodes[i].id == i`.
        outputs: the returned values, in order.
        leaves: name -> value of every parameter, input and state.
        updates: leaf value -> the value that replaces it once all kernels have run.
        captures: name -> a value that the user asked to see.
        grads: parameter name -> the value of its gradient, where gradients were appended.
        packs: state that belongs to a pack of parameters (their momenta, say) -> the pack's value.
        slots: host number (a learning rate, say) -> its place in the row that every step sends.
        ranges: of integers that are used as positions. Passes leave them behind.
    """

    nodes: list[Node] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    leaves: dict[str, Value] = field(default_factory=dict)
    updates: dict[Value, Value] = field(default_factory=dict)
    captures: dict[str, Value] = field(default_factory=dict)
    grads: dict[str, Value] = field(default_factory=dict)
    packs: dict[str, Value] = field(default_factory=dict)
    slots: dict[str, int] = field(default_factory=dict)
    ranges: list[IndexRange] = field(default_factory=list)

    def add(
        self,
        op: str,
        inputs: Iterable[Value],
        attrs: Mapping[str, Any],
        types: tuple[TensorType, ...],
        site: CallSite | None = None,
    ) -> Node:
        node = Node(len(self.nodes), op, tuple(inputs), attrs, types, site)
        self.nodes.append(node)
        return node

    def copy(self) -> Graph:
        """A graph to which more can be added; the nodes are shared."""
        return Graph(**{part.name: copy(getattr(self, part.name)) for part in fields(self)})

    def node(self, value: Value) -> Node:
        return self.nodes[value.node]

    def type(self, value: Value) -> TensorType:
        return self.nodes[value.node].types[value.result]

    def roots(self) -> Iterator[Value]:
        """Every value that somebody outside the graph sees."""
        yield from self.outputs
        yield from self.updates.values()
        yield from self.captures.values()
        yield from self.grads.values()

    def leaf_name(self, value: Value) -> str | None:
        node = self.node(value)
        return node.attrs["name"] if node.op == "leaf" else None

    def names_by_role(self, role: Role) -> dict[str, Value]:
        return {name: v for name, v in self.leaves.items() if self.node(v).attrs["role"] == role}

    def __str__(self) -> str:
        from tensorgrad.inspect.graphs import show_graph

        return show_graph(self)

    def __repr__(self) -> str:
        return f"<Graph of {len(self.nodes)} nodes; print it to read them>"

    def _repr_html_(self) -> str:
        from tensorgrad.inspect.graphs import graph_html

        return graph_html(self)
