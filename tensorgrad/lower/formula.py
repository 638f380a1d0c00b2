"""A kernel's stores as formulas, with names for what occurs in them more than once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tensorgrad.lower.expr import Expr, walk
from tensorgrad.lower.index import dynamics
from tensorgrad.lower.kernel import Attention, Kernel, Line
from tensorgrad.lower.show import Formulas, Names
from tensorgrad.lower.totals import total_of

_WORTH = 24
"""Characters from which on a repeated part gets a name."""


def formula(kernel: Kernel, names: Names) -> str:
    """What a kernel computes: named parts first, then a line a store.

    Args:
        names: what a stored value is called.
    """
    printer = Formulas(names)
    lines: list[str] = []
    if kernel.matmul:
        m = kernel.matmul
        batch = "b, " if m.batch.size > 1 else ""
        lines.append(f"acc[{batch}m, n] = sum_k {printer.text(m.a)[0]} * {printer.text(m.b)[0]}")
        if total := total_of(kernel):
            axis = total.expr.data
            lines.append(f"total_{axis.name}[{batch}{axis.name}] = sum_k {printer.text(m.of(axis))[0]}")
    if kernel.attention:
        lines += _attention(printer, kernel.attention)
    named = 0
    if kernel.line:
        lines += _named(printer, kernel.line.operands)
        named = len(lines)
        lines.append(_line(printer, kernel.line))
    lines += _named(printer, [e for s in kernel.stores for e in (s.expr, *dynamics(s.index))], named)
    for store in kernel.stores:
        lines.append(f"{names(store.value)}[{printer.index(store.index)}] = {printer.text(store.expr)[0]}")
    return "\n".join(lines)


def _line(printer: Formulas, line: Line) -> str:
    """A scan's running result, or the columns in the order of a key."""
    operands = ", ".join(printer.text(e)[0] for e in line.operands)
    name = {"sort": "argsort"}.get(line.op, line.op)
    return f"acc[r, c] = {name}_c{' from the last' if line.reverse else ''}({operands})"


def _attention(printer: Formulas, a: Attention) -> list[str]:
    """The scores, their softmax, and what is summed up with it."""
    at = "b, i, j" if a.batch.size > 1 else "i, j"
    q, k, v, *_ = (printer.text(e)[0] for e in a.operands)
    bias = f" + {printer.text(a.bias)[0]}" if a.bias else ""
    causal = " where j <= i" if a.causal else ""
    lines = [f"s[{at}] = sum_e({q} * {k}) * {a.scale:.9g}{bias}{causal}"]
    if not (a.g and a.lse and a.delta):
        return [*lines, f"acc = sum_j(softmax_j(s) * {v}), log(sum_j(exp(s)))"]
    g, lse, delta = (printer.text(e)[0] for e in (a.g, a.lse, a.delta))
    lines += [f"p[{at}] = exp(s - {lse})", f"d[{at}] = p * (sum_f({g} * {v}) - {delta}) * {a.scale:.9g}"]
    return [*lines, f"acc = sum_j(d * {k})" if a.part == "dq" else f"acc = sum_i(d * {q}), sum_i(p * {g})"]


def _named(printer: Formulas, roots: Sequence[Expr], first: int = 0) -> list[str]:
    """Gives names, from number `first` on, to the parts that occur more than once, inner ones first; their lines."""
    uses: Counter[int] = Counter(map(id, roots))
    order: list[Expr] = []
    seen: set[int] = set()
    for root in roots:
        for e in walk(root, seen):
            order.append(e)
            uses.update({id(c) for c in e.children})
    lines: list[str] = []
    for e in order:
        if uses[id(e)] > 1 and e.op not in ("load", "const", "index", "acc"):
            text = printer.text(e)[0]
            if len(text) >= _WORTH:
                name = f"v{first + len(lines)}"
                lines.append(f"{name} = {text}")
                printer.name(e, name)
    return lines
