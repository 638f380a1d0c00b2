"""Contractions by the names of axes, as matrix products of views.

Two operands are contracted at a time. Of their axes, those that both have and that are needed afterwards count the
matrices, those that nobody needs afterwards are the inner axis, and what is left of each operand are its rows and
columns. So `bhqd,bhkd->bhqk` is one batched product, which reads its operands in place. Where nothing is summed,
or the matrices would have one row and one column, elements are multiplied instead, which fuses.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple, NoReturn

from tensorgrad.dtypes import Shape
from tensorgrad.ops.arrange import diagonal
from tensorgrad.ops.core import TensorLike, broadcast_to, meet
from tensorgrad.ops.matmul import matmul
from tensorgrad.ops.reduce import sum as sum_
from tensorgrad.ops.views import movedim, permute, reshape
from tensorgrad.shape import check_axis, fail, one_or_more, shape_size, show_shape, whole
from tensorgrad.tensor import Tensor


class Term(NamedTuple):
    """A tensor and the names of its axes, each once."""

    x: Tensor
    names: str


def einsum(equation: str, *operands: TensorLike) -> Tensor:
    """A sum of products, by the names of axes: NumPy's and PyTorch's `einsum`.

    Args:
        equation: for each operand the letters of its axes, then perhaps `->` and those of the result; else the result
            has the letters that occur once, in alphabetical order. Letters that the result lacks are summed; one that
            an operand has twice is its diagonal; `...` stands for axes that broadcast. Sizes of 1 broadcast too.
        operands: any number; the pair whose product takes least is contracted first.

    Raises:
        ShapeError: with the equation, where it does not fit the operands.

    >>> import tensorgrad as tg
    >>> def scores():
    ...     q, k = (tg.tensor_input(name, (2, 4, 16, 8)) for name in "qk")
    ...     return tg.einsum("bhqd,bhkd->bhqk", q, k)
    >>> tg.trace(scores).type(tg.trace(scores).outputs[0])
    f32[2, 4, 16, 16]
    """
    _, tensors = meet(*operands) if operands else (None, [])
    inputs, output = _parsed(equation, tensors)
    terms = [_distinct(x, names) for x, names in zip(tensors, inputs, strict=True)]
    sizes = _sizes(equation, terms)
    terms = [_unspread(term, sizes) for term in terms]
    while len(terms) > 1:
        pairs = itertools.combinations(range(len(terms)), 2)
        a, b = min(pairs, key=lambda pair: _cost(terms[pair[0]], terms[pair[1]], sizes))
        rest = [term for n, term in enumerate(terms) if n not in (a, b)]
        needed = output + "".join(term.names for term in rest)
        terms = [*rest, _contracted(terms[a], terms[b], needed)]
    x, names = _summed(terms[0], output)
    held = [n for n in output if n in names]
    x = permute(x, *(names.index(n) for n in held))
    shape = tuple(sizes[n] if n in names else 1 for n in output)
    return broadcast_to(reshape(x, shape), tuple(sizes[n] for n in output))


def tensordot(a: TensorLike, b: TensorLike, dims: int | Sequence[Sequence[int]] = 2) -> Tensor:
    """The sum of products over several axes at once.

    Args:
        dims: how many of the last axes of `a` meet as many of the first of `b`; or the axes of each, in pairs.
    """
    _, (a, b) = meet(a, b)
    if not isinstance(dims, Iterable):
        count = whole("tensordot", "dims", dims)
        pairs = [(a.ndim - count + n, n) for n in range(count)]
    else:
        left, right = (one_or_more(d) for d in dims)
        if len(left) != len(right):
            fail(f"tensordot: {left} and {right} name different numbers of axes")
        pairs = list(zip(left, right, strict=True))
    met = [(check_axis("tensordot", i, a.ndim), check_axis("tensordot", j, b.ndim)) for i, j in pairs]
    for i, j in met:
        if a.shape[i] != b.shape[j]:
            fail(f"tensordot: axis {i} of {a.type} and axis {j} of {b.type} differ in size")
    letters = map(chr, itertools.count(ord("A")))
    first = [next(letters) for _ in range(a.ndim)]
    second = [next((first[i] for i, k in met if k == j), None) or next(letters) for j in range(b.ndim)]
    output = [n for n in first + second if (first + second).count(n) == 1]
    x, names = _contracted(Term(a, "".join(first)), Term(b, "".join(second)), "".join(output))
    return permute(x, *(names.index(n) for n in output))


# Reading an equation -----------------------------------------------------------------------------


def _wrong(equation: str, what: str) -> NoReturn:
    fail(f"einsum {equation!r}: {what}")


def _parsed(equation: str, tensors: Sequence[Tensor]) -> tuple[list[str], str]:
    """The names of every operand's axes and of the result's; axes under `...` are named by digits, the last is 0."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(tensors):
        _wrong(equation, f"{len(inputs)} terms for {len(tensors)} operands")
    for part in (*inputs, right):
        letters = part.replace("...", "", 1)
        if not all(c.isalpha() and c.isascii() for c in letters):
            _wrong(equation, f"{part!r} is not made of letters and at most one '...'")
    named, most = [], 0
    for part, x in zip(inputs, tensors, strict=True):
        free = x.ndim - len(part.replace("...", ""))
        if free < 0 or (free and "..." not in part):
            _wrong(equation, f"{part!r} does not name the {x.ndim} axes of {x.type}")
        most = max(most, free)
        named.append(part.replace("...", _hidden(free)))
    counts = Counter("".join(inputs))
    once = "".join(sorted(c for c in counts if c.isalpha() and counts[c] == 1))
    output = (right if arrow else "..." + once).replace("...", _hidden(most))
    for name in output:
        if output.count(name) > 1:
            _wrong(equation, f"the result names {name!r} twice")
        if name not in "".join(named):
            _wrong(equation, f"the result names {name!r}, which no operand has")
    if most and arrow and "..." not in right:
        _wrong(equation, "operands have axes under '...' and the result has none; sum them by naming them")
    return named, output


def _hidden(count: int) -> str:
    """Names for axes under `...`, aligned at the last."""
    return "".join(chr(ord("0") + n) for n in reversed(range(count)))


def _distinct(x: Tensor, names: str) -> Term:
    """The operand without repeated names: of those it is the diagonal."""
    for name in dict.fromkeys(names):
        while names.count(name) > 1:
            i = names.index(name)
            j = names.index(name, i + 1)
            if x.shape[i] != x.shape[j]:
                fail(f"einsum: the axes {name!r} of {show_shape(x.shape)} differ in size, so they have no diagonal")
            x = movedim(diagonal(x, 0, i, j), -1, i)
            names = names[:j] + names[j + 1 :]
    return Term(x, names)


def _sizes(equation: str, terms: Sequence[Term]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for x, names in terms:
        for n, name in zip(x.shape, names, strict=True):
            known = sizes.setdefault(name, n)
            if 1 not in (n, known) and n != known:
                where = "an axis under '...'" if name.isdigit() else repr(name)
                _wrong(equation, f"{where} is {known} and {n}")
            sizes[name] = n if known == 1 else known
    return sizes


def _unspread(term: Term, sizes: dict[str, int]) -> Term:
    """Without the axes of size 1 that broadcast: the product has them from the others."""
    kept = [n for n, name in enumerate(term.names) if term.x.shape[n] == sizes[name]]
    names = "".join(term.names[n] for n in kept)
    return Term(reshape(term.x, tuple(sizes[name] for name in names)), names)


# Contracting -------------------------------------------------------------------------------------


def _cost(a: Term, b: Term, sizes: dict[str, int]) -> int:
    """The multiplications of a pair's product."""
    return shape_size([sizes[n] for n in {*a.names, *b.names}])


def _summed(term: Term, needed: str) -> Term:
    """Summed over the axes that nobody needs."""
    gone = tuple(n for n, name in enumerate(term.names) if name not in needed)
    return Term(sum_(term.x, gone), "".join(n for n in term.names if n in needed)) if gone else term


def _contracted(a: Term, b: Term, needed: str) -> Term:
    """The product of two terms, summed over the names that both have and nobody needs."""
    a, b = _summed(a, needed + b.names), _summed(b, needed + a.names)
    inner = "".join(n for n in a.names if n in b.names and n not in needed)
    batch = "".join(n for n in a.names if n in b.names and n in needed)
    rows, columns = ("".join(n for n in t.names if n not in batch + inner) for t in (a, b))
    sizes = dict(zip(a.names + b.names, a.x.shape + b.x.shape, strict=True))

    def shape(names: str) -> Shape:
        return tuple(sizes[n] for n in names)

    out = batch + rows + columns
    if not inner or shape_size(shape(rows)) == shape_size(shape(columns)) == 1:
        left, right = (_laid(t, out + inner, sizes) for t in (a, b))
        product = left * right
        return Term(sum_(product, tuple(range(len(out), len(out + inner)))) if inner else product, out)
    count = [shape_size(shape(batch))] if batch else []
    m, k, n = (shape_size(shape(names)) for names in (rows, inner, columns))
    left = reshape(_ordered(a, batch + rows + inner), *count, m, k)
    right = reshape(_ordered(b, batch + inner + columns), *count, k, n)
    return Term(reshape(matmul(left, right), shape(out)), out)


def _ordered(term: Term, names: str) -> Tensor:
    return permute(term.x, *(term.names.index(n) for n in names))


def _laid(term: Term, names: str, sizes: dict[str, int]) -> Tensor:
    """With an axis for every name, of size 1 for those that it lacks."""
    own = [n for n in names if n in term.names]
    return reshape(_ordered(term, "".join(own)), tuple(sizes[n] if n in own else 1 for n in names))
