"""Matmuls that share an operand become one: a large matmul fills a GPU better than several small ones.

Three linear layers that read the same values, the queries, keys and values of attention say, are three times
three matmuls in a training step, and become three:

- `y_i = x @ w_i`: a batch of matmuls, with `x` in each. The weights are read where they lie in the optimizer's
  arena, at equal distances. What is done alike to each `y_i`, adding a bias say, is done to all at once.
- `dw_i = dy_i.T @ x` likewise. The `dy_i` are computed into an arena of their own, and the results into their
  slots in the arena of the gradients, which lie side by side.
- `dx = sum of dy_i @ w_i` is one matmul over the inner size of all.

So nothing is copied; what would have to be is left as it is. `stacks` knows what can be read as one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import NamedTuple

from tensorgrad.device.base import Limits
from tensorgrad.graph import Graph, Node, Value
from tensorgrad.passes.autocast import is_half
from tensorgrad.passes.split import BANDWIDTH, DISPATCH, fastest
from tensorgrad.passes.stacks import Members, Stacks, moves_along
from tensorgrad.passes.unite import unite
from tensorgrad.primitive import REGISTRY


class Sum(NamedTuple):
    """A sum in which some terms are products that become one.

    Attributes:
        terms: the others.
        products: of each of these matmuls, the products.
    """

    terms: tuple[Value, ...]
    products: tuple[Members, ...]


def merge(graph: Graph, limits: Limits) -> Graph:
    """The graph with matmuls that share an operand computed together, where that is faster."""
    merger = _Merger(graph, limits)
    merger.find()
    return unite(graph, merger.stacks, merger.sums) if merger.stacks.joint or merger.sums else graph


class _Merger:
    """Finds what to merge."""

    def __init__(self, graph: Graph, limits: Limits) -> None:
        self.graph, self.limits = graph, limits
        self.stacks = Stacks(graph)
        self.sums: dict[int, Sum] = {}

    def find(self) -> None:
        matmuls = [node for node in self.graph.nodes if node.op == "matmul"]
        for side, nodes in _sharing(self.graph, matmuls):
            for run in self._runs(nodes, lambda node, side=side: self._leaf(node.inputs[1 - side])):
                self._attempt(run, self._forward)
            if not self.graph.grads:
                for run in self._runs(nodes, self._slot):
                    self._attempt(run, lambda members, side=side: self._gradient(members, 1 - side))
        for node in self.graph.nodes:
            if node.op == "add" and not self._inner(Value(node.id)):
                self._sum(node)

    def _attempt(self, members: Members, rule: Callable[[Members], bool]) -> None:
        """Joins members if the rule says so; else everything is as it was."""
        stacks = self.stacks
        joint, placed = dict(stacks.joint), dict(stacks.placed)
        if not (self._holds(members) and stacks.free(members) and rule(members)):
            stacks.joint, stacks.placed = joint, placed

    def _forward(self, members: Members) -> bool:
        nodes = [self.stacks.node(v) for v in members]
        if not all(map(self.stacks.fits, zip(*(node.inputs for node in nodes), strict=True))):
            return False
        self.stacks.join(members)
        # what is left of the epilogues becomes kernels
        left = sum(self._maps_left(v) for v in members)
        return self._gain(nodes[0], len(nodes)) > left * (DISPATCH + 2 * nodes[0].type.nbytes / BANDWIDTH)

    def _gradient(self, members: Members, side: int) -> bool:
        nodes = [self.stacks.node(v) for v in members]
        operands = tuple(node.inputs[side] for node in nodes)
        placed = self.stacks.put(operands) if self._holds(operands) else None
        if placed is None or not self.stacks.fits(operands):
            return False
        self.stacks.join(members)
        # what sums up the operands goes along: it is summed up on the side
        self.stacks.follow(placed)
        found = [Value(user.id) for value in placed for user in self._uses(value) if user.op == "sum"]
        sums = {self.stacks.joint.get(value) for value in found}
        if None in sums or not self._reaches_place(members):
            return False
        # sums that do not lie side by side in the arena are copied into it, all in one kernel
        copied = not all(self._reaches_place(values) for values in sums if values)
        return self._gain(nodes[0], len(nodes)) > DISPATCH * copied

    def _uses(self, value: Value) -> Iterator[Node]:
        """What reads a value, through views."""
        for user in self.stacks.users.get(value, ()):
            yield from self._uses(Value(user.id)) if REGISTRY[user.op].view else (user,)

    def _maps_left(self, value: Value) -> bool:
        """Whether an elementwise operation reads the value, or what is joined after it, which is not joined."""
        users = list(self._uses(value))
        if any(moves_along(user, self.graph) and Value(user.id) not in self.stacks.joint for user in users):
            return True
        return any(Value(user.id) in self.stacks.joint and self._maps_left(Value(user.id)) for user in users)

    def _reaches_place(self, members: Members) -> bool:
        """Whether the results are computed into their slots together."""
        uses = list(self._uses(members[0]))
        return len(uses) == 1 and uses[0].op == "place" and Value(uses[0].id) in self.stacks.joint

    # Which belong together --------------------------------------------------------------------

    def _leaf(self, value: Value) -> Value:
        """The leaf of which a value is a view, or is computed element by element."""
        node = self.stacks.node(value)
        while len(node.inputs) == 1 and moves_along(node, self.graph):
            (value,) = node.inputs
            node = self.stacks.node(value)
        return value

    def _slot(self, node: Node) -> Value:
        """The `place` that stores a node's result, through views; the result itself where there is none."""
        value = Value(node.id)
        while len(users := self.stacks.users.get(value, ())) == 1 and users[0].op in ("reshape", "permute", "place"):
            value = Value(users[0].id)
        return value

    def _runs(self, nodes: Iterable[Node], where: Callable[[Node], Value]) -> Iterator[Members]:
        """The results of nodes of one type that belong to values at equal distances in a pack, in their order there."""
        packs: dict[Hashable, dict[int, Value]] = {}
        for node in nodes:
            pack, offset = self.stacks.slots.get(where(node), (None, 0))
            if pack:
                packs.setdefault((pack, *map(self.graph.type, node.inputs)), {})[offset] = Value(node.id)
        for found in packs.values():
            run: list[int] = []
            for offset in [*sorted(found), -1]:
                if len(run) > 1 and offset - run[-1] != run[1] - run[0]:
                    yield tuple(found[i] for i in run)
                    run = []
                run.append(offset)

    def _holds(self, members: Members) -> bool:
        """Whether the device can bind all results at once."""
        return 0 < len(members) * self.graph.type(members[0]).nbytes <= self.limits.binding_size

    def _gain(self, node: Node, count: int) -> float:
        """Nanoseconds that `count` matmuls like this one take less if they are one."""
        (*lead, m, k), n = self.graph.type(node.inputs[0]).shape, node.type.shape[-1]
        batch = math.prod(lead)
        half = all(is_half(self.graph, operand) for operand in node.inputs)
        alone, together = (fastest(b, m, n, k, self.limits, half).nanoseconds for b in (batch, batch * count))
        return count * alone + (count - 1) * DISPATCH - together

    # Sums ----------------------------------------------------------------------------------

    def _inner(self, value: Value) -> bool:
        """Whether a sum, or a product, is a term of one sum and nothing else."""
        users = self.stacks.users.get(value, ())
        return len(users) == 1 and users[0].op == "add" and value not in self.stacks.roots

    def _sum(self, root: Node) -> None:
        terms = list(self._terms(root))
        products = {v: product for v in terms if (product := self._product(v)) is not None}
        if len(products) < 2:
            return
        term_of = {product.id: v for v, product in products.items()}
        merged: list[Members] = []
        for side in (0, 1):
            left = [node for node in products.values() if not any(Value(node.id) in run for run in merged)]
            for run in self._runs(left, lambda node, side=side: self._leaf(node.inputs[side])):
                nodes = [self.stacks.node(v) for v in run]
                one, other = (tuple(node.inputs[i] for node in nodes) for i in (side, 1 - side))
                if self._holds(other) and self.stacks.fits(one) and self.stacks.put(other):
                    merged.append(run)
        if merged:
            done = {term_of[v.node] for run in merged for v in run}
            self.sums[root.id] = Sum(tuple(v for v in terms if v not in done), tuple(merged))

    def _terms(self, node: Node) -> Iterator[Value]:
        for value in node.inputs:
            if self.stacks.node(value).op == "add" and self._inner(value):
                yield from self._terms(self.stacks.node(value))
            else:
                yield value

    def _product(self, value: Value) -> Node | None:
        """The matmul of which a term is a reshape, if nobody else reads it."""
        if not self._inner(value):
            return None
        node = self.stacks.node(value)
        while node.op == "reshape" and len(self.stacks.users[node.inputs[0]]) == 1:
            node = self.stacks.node(node.inputs[0])
        fits = node.op == "matmul" and len(node.type.shape) == 2 and Value(node.id) not in self.stacks.joint
        return node if fits else None


def _sharing(graph: Graph, matmuls: Iterable[Node]) -> Iterator[tuple[int, list[Node]]]:
    """Matmuls of one shape with one left (0), or right (1) operand."""
    found: dict[tuple[object, ...], list[Node]] = {}
    for node in matmuls:
        for side in (0, 1):
            key = side, node.inputs[side], graph.type(node.inputs[1 - side])
            found.setdefault(key, []).append(node)
    for (side, *_), nodes in found.items():
        if len(nodes) > 1:
            assert isinstance(side, int)
            yield side, nodes
