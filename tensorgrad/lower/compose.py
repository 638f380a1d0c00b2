"""From a graph to its finest kernels: which values own a buffer, and the expression of each.

What owns a buffer: leaves and constant arrays, what the host reads, results and operands
of matmuls, reductions, what is read at data-dependent places, and what several readers
need and is dear to compute. Everything else is composed into its readers. Fusion then
joins kernels and drops the buffers that nobody outside a kernel reads.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

from tensorgrad.dtypes import Shape, f16, f32, u32
from tensorgrad.graph import Graph, Node, Value
from tensorgrad.lower.expr import Expr, const, expr, load
from tensorgrad.lower.index import Index, Indices, Var, constant, dynamic, of_var, ravel, unravel
from tensorgrad.lower.kernel import Attention, AttentionPart, Kernel, Line, Matmul, Store
from tensorgrad.primitive import REGISTRY

REDUCTIONS = frozenset({"sum", "prod", "max", "min", "argmax", "argmin", "scatter_add", "fold"})
LEAVES = frozenset({"leaf", "array", "pack"})
"""What is in a buffer without a kernel that puts it there."""
FREE = frozenset({"const", "iota"})
SCANS = frozenset({"cumsum", "cumprod", "cummax", "cummin", "linear_scan"})
TEMPLATES = frozenset({"matmul", "attention", "attention_vjp", "sort", "unsort", *SCANS})
"""What is no expression of its operands' elements: a kernel template of its own, or a store where the data says."""
_ATTENTION = {"attention": 3, "attention_vjp": 4}
_IN_PLACE = {"gather": 1, "searchsorted": 1, **_ATTENTION, **dict.fromkeys(("sort", "unsort", *SCANS), 0)}
"""Operands that are read in place where it is not all of them; the rest is composed."""

_COSTS = {"div": 4, "sqrt": 4, "rsqrt": 4, "exp": 8, "log": 8, "sigmoid": 12, "pow": 24}
_COSTS |= dict.fromkeys(["expm1", "log1p", "sin", "cos", "tanh", "erf", "remainder", "floor_divide"], 20)
_COSTS |= {"gather": 40, "random_bits": 60, "searchsorted": 400}

LONGEST = 32
"""Operations and views, one on the result of the other, that are composed; composing them is recursive."""

CHEAP = 48
"""A value of at most this cost is computed again by each reader rather than stored (unless it reads much)."""


DEAR = 16
"""A slope (of GELU, say) of at least this cost is stored by the forward pass, not computed by the backward pass."""


class Costs(NamedTuple):
    """What composing a value costs its reader.

    Attributes:
        nodes: the operations that are computed again, each once.
        loads: the stored tensors that are read.
        waits: stored tensors that have to be there before, though they are not read.
    """

    nodes: frozenset[int]
    loads: frozenset[Value]
    waits: frozenset[Value] = frozenset()


class Composer:
    """Decides what is stored, and composes expressions over it.

    Args:
        graph: optimized; its nodes are lowered as they stand.
        recompute: False stores every multi-used value, True recomputes cheap ones in each reader.
        compose: False stores the result of every operation that is no view.
        max_buffers: storage buffers that a kernel may bind, its output included.

    Attributes:
        stored: the values that own a buffer.
        shown: stored value -> the shape in which it is seen after the kernels.
        reasons: why each of them does, leaves apart.
    """

    def __init__(self, graph: Graph, recompute: bool = True, max_buffers: int = 8, compose: bool = True) -> None:
        self.graph = graph
        self.recompute = recompute
        self.compose = compose
        self.max_buffers = max_buffers
        self.users = self._users()
        self.stored: set[Value] = set()
        self.reasons: dict[Value, str] = {}
        self.costs: dict[Value, Costs] = {}
        self.lengths: dict[Value, int] = {}
        self.shown: dict[Value, Shape] = {}
        self.elements: dict[tuple[Value, Indices], Expr] = {}
        self._choose()

    def _users(self) -> dict[Value, list[Node]]:
        users: dict[Value, list[Node]] = {}
        for node in self.graph.nodes:
            for value in dict.fromkeys(node.inputs):
                users.setdefault(value, []).append(node)
        return users

    # What is stored -------------------------------------------------------------------

    def _choose(self) -> None:
        graph = self.graph
        roots = set(graph.roots())
        readers = self._readers()
        for node in graph.nodes:
            if node.op in TEMPLATES or node.op in ("gather", "scatter_add", "searchsorted"):
                for operand in node.inputs[: _IN_PLACE.get(node.op)]:
                    self._store(self._operand_buffer(operand), f"a {node.op} reads it in place")
        for node in graph.nodes:
            value = Value(node.id)
            for result in roots.intersection(node.values):
                self.shown[result] = graph.type(result).shape
            if node.op in LEAVES or node.op in REDUCTIONS or node.op in TEMPLATES:
                for result in node.values:
                    self._store(result, f"it is the result of a {node.op}")
            elif node.op == "place":
                self._store(value, "it has a place of its own")
            elif value in roots and not self._is_alias(node):
                self._store(value, "it is read after the kernels")
            elif self._length(node) > LONGEST:
                self._store(value, f"it ends a chain of {LONGEST} operations")
            elif not REGISTRY[node.op].view and node.op not in FREE:
                cost = self._cost(node)
                if not self.compose:
                    self._store(value, "every operation is a kernel of its own")
                elif readers[value] > 1 and self._dear(node, cost):
                    self._store(value, f"{readers[value]} operations read it, which is dearer to compute than to read")
                elif self._expands(node, cost):
                    self._store(value, "its readers are so much larger that each element would be computed many times")
                for operand in node.inputs:
                    self._store_slope(node, self.base(operand))
            self._bound(node)
            self._count(node)

    def _store(self, value: Value, reason: str) -> None:
        self.stored.add(value)
        self.reasons.setdefault(value, reason)

    def _count(self, node: Node) -> None:
        for result in node.values:
            stored = result in self.stored
            self.lengths[result] = 0 if stored else self._length(node)
            self.costs[result] = Costs(frozenset(), frozenset({result})) if stored else self._cost(node)

    def _length(self, node: Node) -> int:
        """Operations in the longest chain of which it is the end."""
        return 1 + max((self.lengths[v] for v in node.inputs), default=0)

    def _store_late(self, value: Value, reason: str) -> None:
        """Stores a value that was counted as a part of its readers; they now read one tensor in place of it."""
        self._store(value, reason)
        self._count(self.graph.nodes[value.node])
        changed = {value}
        for node in self.graph.nodes[value.node + 1 :]:
            if Value(node.id) not in self.costs:
                return
            if not changed.isdisjoint(node.inputs):
                self._bound(node)
                self._count(node)
                changed.update(v for v in node.values if v not in self.stored)

    def _store_slope(self, node: Node, value: Value) -> None:
        """Stores what an operation of the backward pass needs of a product, if it is dear to compute.

        The product's own kernel can compute it, which then need not store the product.
        """
        cost = self._cost(self.graph.node(value))
        if value in self.stored or not self.recompute or self._ops(cost) < DEAR:
            return
        large = [v for v in cost.loads if self.graph.type(v).size == node.type.size]
        others = [v for operand in node.inputs for v in self.costs[operand].loads if v not in cost.loads]
        if (
            len(large) == 1
            and self.graph.node(large[0]).op == "matmul"
            and any(self.graph.node(v).op == "matmul" and self.graph.type(v).size == node.type.size for v in others)
        ):
            self._store_late(value, "the kernel of the product that it depends on computes it on the way")

    def _bound(self, node: Node) -> None:
        """Stores operands that read most until the node's kernel can bind all that it reads."""
        most = self.max_buffers - (2 if node.op in _ATTENTION else 1)
        while len(self._cost(node).loads) > most:
            widest = max(node.inputs, key=lambda v: len(self.costs[v].loads))
            if len(self.costs[widest].loads) < 2:
                return
            self._store_late(self.base(widest), f"its reader would else bind more than {self.max_buffers} buffers")

    def _dear(self, node: Node, cost: Costs) -> bool:
        """It is dearer to compute again than to read."""
        return not self.recompute or self._ops(cost) > CHEAP or self._large(cost, node) > 1

    def _ops(self, cost: Costs) -> int:
        return sum(_COSTS.get(self.graph.nodes[i].op, 1) for i in cost.nodes)

    def _large(self, cost: Costs, node: Node) -> int:
        """How many of the tensors that it reads are about as large as its result."""
        return sum(2 * self.graph.type(v).size > node.type.size for v in cost.loads)

    def _operand_buffer(self, value: Value) -> Value:
        """What to store so that a template reads an operand in place: the nearest value below affine views.

        A template widens f16 on the way, so a cast from it needs no buffer.
        """
        node = self.graph.node(value)
        while (REGISTRY[node.op].view and node.op != "pad") or self._widens(node):
            value = node.inputs[0]
            node = self.graph.node(value)
        return value

    def _widens(self, node: Node) -> bool:
        return node.op == "cast" and node.type.dtype is f32 and self.graph.type(node.inputs[0]).dtype is f16

    def _readers(self) -> Counter[Value]:
        """How many operations read a value, through views."""
        readers: Counter[Value] = Counter()
        for node in self.graph.nodes:
            if not REGISTRY[node.op].view:
                readers.update({self.base(v) for v in node.inputs})
        return readers

    def base(self, value: Value) -> Value:
        """The value whose elements a chain of views shows."""
        node = self.graph.node(value)
        while REGISTRY[node.op].view:
            value = node.inputs[0]
            node = self.graph.node(value)
        return value

    def _is_alias(self, node: Node) -> bool:
        """A reshape of a stored value that is no leaf: its buffer is the output, unless that is seen in two shapes."""
        if node.op not in ("reshape", "stop_gradient"):
            return False
        owner, shape = self.alias(Value(node.id)), node.type.shape
        return owner in self.stored and self.shown.setdefault(owner, shape) == shape

    def alias(self, value: Value) -> Value:
        """The value whose buffer holds this one's elements in the same order."""
        node = self.graph.node(value)
        while value not in self.stored and node.op in ("reshape", "stop_gradient"):
            value = node.inputs[0]
            node = self.graph.node(value)
        return value if node.op not in LEAVES else Value(-1)

    def _cost(self, node: Node) -> Costs:
        free = REGISTRY[node.op].view or node.op in FREE
        nodes, read = frozenset[int]() if free else frozenset({node.id}), frozenset[Value]()
        waits = frozenset[Value]()
        costs = [self.costs[value] for value in node.inputs]
        if node.op == "after":
            costs, others = costs[:1], costs[1:]
            waits = waits.union(*(cost.loads for cost in others))
        for cost in costs:
            nodes, read, waits = nodes | cost.nodes, read | cost.loads, waits | cost.waits
        return Costs(nodes, read, waits)

    def _expands(self, node: Node, cost: Costs) -> bool:
        """It is dear, and its readers are so much larger that each element would be computed many times."""
        if self._ops(cost) < 8:
            return False
        size = node.type.size
        return any(self._reader_size(user) >= 4 * max(size, 1) for user in self.users.get(Value(node.id), ()))

    def _reader_size(self, node: Node) -> int:
        if not REGISTRY[node.op].view:
            return node.type.size
        return max([node.type.size, *(self._reader_size(u) for u in self.users.get(Value(node.id), ()))])

    # Expressions ------------------------------------------------------------------------

    def element(self, value: Value, idx: Indices, inside: bool = False) -> Expr:
        """The scalar of a value at an index: a load where it is stored, else its rule over its operands.

        Args:
            inside: compose the value itself even if it is stored (it is being computed here).
        """
        node, type_ = self.graph.node(value), self.graph.type(value)
        if type_.size == 0:
            # there is nothing to read: padding asks, and takes its own value
            return const(0, type_.dtype)
        if value in self.stored and not inside:
            return load(value, ravel(idx, type_.shape), type_.dtype)
        # a value that is used twice is asked for twice by each that uses it: without the memo, work doubles a level
        found = self.elements.get((value, idx))
        if found is None:
            rule = REGISTRY[node.op].lower
            assert rule is not None, node.op
            found = rule(idx, *(Operand(self, v) for v in node.inputs), **node.attrs)
            self.elements[value, idx] = found
        return found

    def kernels(self) -> list[Kernel]:
        """One kernel a stored value, in topological order."""
        out = []
        for node in self.graph.nodes:
            value = Value(node.id)
            if value not in self.stored or node.op in LEAVES or node.type.size == 0:
                continue
            if node.op in _ATTENTION:
                made = self._attention(node)
            elif node.op == "sort" or node.op in SCANS:
                made = [self._line(node)]
            elif node.op == "unsort":
                made = [self._unsort(node)]
            else:
                made = [self._matmul(node) if node.op == "matmul" else self._kernel(value, node)]
            if waits := self._cost(node).waits:
                made = [replace(kernel, waits=waits) for kernel in made]
            out += made
        return out

    def _kernel(self, value: Value, node: Node) -> Kernel:
        var = Var("r", node.type.size)
        flat = of_var(var)
        body = self.element(value, unravel(flat, node.type.shape), inside=True)
        return Kernel(var, None, [Store(value, flat, body)], nodes={node.id})

    def _matmul(self, node: Node) -> Kernel:
        left, right = (self.graph.type(v) for v in node.inputs)
        lead = left.shape[:-2]
        batch = Var("b", node.type.size // max(1, left.shape[-2] * right.shape[-1]))
        m, n, k = Var("m", left.shape[-2]), Var("n", right.shape[-1]), Var("k", left.shape[-1])
        at = unravel(of_var(batch), lead)
        a = self.element(node.inputs[0], (*at, of_var(m), of_var(k)))
        b = self.element(node.inputs[1], (*at, of_var(k), of_var(n)))
        value = Value(node.id)
        index = ravel((*at, of_var(m), of_var(n)), node.type.shape)
        acc = expr("acc", (), node.type.dtype, value)
        inner = Matmul(node.id, batch, m, n, k, a, b, node.type.dtype)
        return Kernel(Var("r", node.type.size), None, [Store(value, index, acc)], inner, {node.id})

    def _line(self, node: Node) -> Kernel:
        from tensorgrad.ops.sorting import sort_key  # the operations read this module: no cycle at import

        *lead, columns = node.type.shape
        r, c = Var("r", math.prod(lead)), Var("c", columns)
        at = (*unravel(of_var(r), lead), of_var(c))
        operands = tuple(self.element(v, at) for v in node.inputs)
        if node.op == "sort":
            line = Line(node.id, node.op, (sort_key(operands[0], **node.attrs),))
        else:
            line = Line(node.id, node.op, operands, **node.attrs)
        value = Value(node.id)
        store = Store(value, ravel(at, node.type.shape), expr("acc", (), node.type.dtype, value))
        return Kernel(r, c, [store], nodes={node.id}, line=line)

    def _unsort(self, node: Node) -> Kernel:
        """A map whose elements go where the data says."""
        x, indices = node.inputs
        var = Var("r", node.type.size)
        at = unravel(of_var(var), node.type.shape)
        place = dynamic(expr("cast", (self.element(indices, at),), u32), node.type.shape[-1])
        index = ravel((*at[:-1], place), node.type.shape)
        return Kernel(var, None, [Store(Value(node.id), index, self.element(x, at))], nodes={node.id})

    def _attention(self, node: Node) -> list[Kernel]:
        """The kernel of an attention; of its gradient two, since dq sums over keys, dk and dv over queries."""
        forward = node.op == "attention"
        g, q, k, v, stats, *bias = (None, *node.inputs[:3], None, *node.inputs[3:]) if forward else node.inputs
        assert q is not None
        assert k is not None
        assert v is not None
        *lead, length, size = self.graph.type(q).shape
        *_, keys, width = self.graph.type(v).shape
        b, i, j, e, f = (
            Var(name, n) for name, n in zip("bijef", (math.prod(lead), length, keys, size, width), strict=True)
        )
        at = unravel(of_var(b), lead)

        def operand(value: Value | None, *indices: Index) -> Expr | None:
            return None if value is None else self.element(value, (*at, *indices))

        rows, columns = of_var(i), of_var(j)
        lse, delta = (operand(stats, rows, constant(n)) for n in (0, 1))
        terms = {
            "q": self.element(q, (*at, rows, of_var(e))),
            "k": self.element(k, (*at, columns, of_var(e))),
            "v": self.element(v, (*at, columns, of_var(f))),
            "bias": operand(bias[0] if bias else None, rows, columns),
            "g": operand(g, rows, of_var(f)),
            "lse": lse,
            "delta": delta,
        }
        parts: list[tuple[AttentionPart, tuple[int, ...]]] = [("dkv", (1, 2)), ("dq", (0,))]
        if forward:
            parts = [("out", (0, 1))]
        kernels = []
        for part, numbers in parts:
            inner = Attention(part, node.id, b, i, j, e, f, **terms, **node.attrs)
            stores = []
            for value in (Value(node.id, n) for n in numbers):
                shape, (_, row, *column) = self.graph.type(value).shape, inner.space(value.result)
                index = (at[0], of_var(row), at[1], of_var(column[0])) if column else (*at, of_var(row))
                stores.append(Store(value, ravel(index, shape), expr("acc", (), self.graph.type(value).dtype, value)))
            rows_ = Var("r", b.size * i.size * j.size)
            kernels.append(Kernel(rows_, None, stores, nodes={node.id}, attention=inner))
        return kernels


class Operand:
    """A node's operand as lowering rules see it: called with an index, it gives the scalar there."""

    __slots__ = ("composer", "dtype", "shape", "value")

    def __init__(self, composer: Composer, value: Value) -> None:
        self.composer, self.value = composer, value
        self.shape, self.dtype = composer.graph.type(value)

    def __call__(self, idx: Indices) -> Expr:
        return self.composer.element(self.value, idx)
