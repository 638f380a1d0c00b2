"""`docs/coverage.md`: every public name, where it runs, its gradient, and what its numbers are compared with.

`PYTHONPATH=tests python tools/coverage.py --write` writes the page from what the tests run: the table of primitives
and the stored numbers of PyTorch. A name that neither knows stands in `ELSEWHERE`, with the test that does.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from paths import ROOT
from reference.stored import pytorch
from table_rows import TABLE
from tensorgrad import nn, ops, optim

PAGE = ROOT / "docs" / "coverage.md"

OPERATORS = {
    "Add": "add", "Sub": "sub", "Mult": "mul", "Div": "div", "MatMult": "matmul", "Pow": "pow", "Mod": "remainder",
    "FloorDiv": "floor_divide", "USub": "neg", "Lt": "less", "LtE": "less_equal",
    "Gt": "greater", "GtE": "greater_equal", "Eq": "equal", "NotEq": "not_equal", "BitAnd": "bitwise_and",
    "BitOr": "bitwise_or", "BitXor": "bitwise_xor", "LShift": "left_shift", "RShift": "right_shift",
    "Subscript": "getitem",
}  # fmt: skip
"""Names of what expressions write with operators."""

PRIMITIVES = {
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "shl": "left_shift", "shr": "right_shift",
    "not": "logical_not", "array": "tensor", "const": "full", "slice": "narrow",
}  # fmt: skip
"""Public names of primitives that have others."""

FILES = {
    "tests/draw_cases.py": "alpha_dropout bernoulli categorical dropout dropout1d dropout2d gumbel_softmax multinomial "
    "normal permutation rand rand_like randint randn randn_like randperm uniform",
    "tests/unit/test_optim.py": "Lion",
    "tests/unit/test_schedules.py": "LambdaLR WarmupCosineLR",
    "tests/unit/test_modules.py": "ParameterDict ParameterList",
    "tests/unit/test_trace.py": "step_scalar",
    "tests/unit/test_autodiff.py": "cast",
}
ELSEWHERE = {name: file for file, names in FILES.items() for name in names.split()}
"""Names that are tested by a test of their own, since PyTorch has other draws, or no such thing: name -> its file."""

UNDIFFERENTIABLE = {
    "true or false": "all allclose any equal greater greater_equal isclose isfinite isinf isnan isneginf isposinf "
    "less less_equal logical_and logical_not logical_or logical_xor not_equal signbit",
    "whole numbers": "argmax argmin argsort bitcast bitwise_and bitwise_not bitwise_or bitwise_xor bucketize "
    "count_nonzero floor_divide left_shift one_hot randint random_bits randperm right_shift searchsorted",
    "of no operand": "arange empty eye full iota linspace logspace ones rand randn step_scalar zeros",
    "of its operand's shape": "empty_like full_like ones_like rand_like randn_like zeros_like",
    "a draw": "bernoulli categorical multinomial normal permutation uniform",
    "steps": "ceil floor round sign trunc",
}
"""Why a function has no gradient, or one that is zero."""


class Entry(NamedTuple):
    """A line of the page.

    Attributes:
        names: the name, and its aliases.
        runs: cases that run; the page's headings say where.
        gradient: how many of them compare gradients, or why there are none.
        pytorch: how many of them are PyTorch's numbers.
    """

    names: str
    runs: str
    gradient: str
    pytorch: str


def used(expression: str) -> set[str]:
    """The functions that an expression calls, operators included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(expression.strip())):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Subscript):
            found.add("getitem")
        elif isinstance(node, ast.operator | ast.unaryop | ast.cmpop):
            found.add(OPERATORS.get(type(node).__name__, ""))
    return found


@functools.cache
def functions() -> list[Entry]:
    """The functions of `tg`, each with its aliases."""
    groups: dict[int, list[str]] = {}
    for name in ops.__all__:
        if callable(fn := getattr(ops, name)) and not isinstance(fn, type):
            groups.setdefault(id(fn), []).append(name)
    stored = [(used(case["expr"]), "grads" in case) for case in pytorch()["operations"]]
    why = {name: reason for reason, names in UNDIFFERENTIABLE.items() for name in names.split()}
    found = []
    for aliases in groups.values():
        names = set(aliases)
        cases = [grad for called, grad in stored if called & names]
        rows = [bool(case.grads) for row in TABLE if PRIMITIVES.get(row.op, row.op) in names for case in row.cases]
        elsewhere = next((ELSEWHERE[name] for name in aliases if name in ELSEWHERE), "")
        graded = sum(cases) + sum(rows)
        reason = next((why[name] for name in aliases if name in why), "")
        found.append(
            Entry(
                ", ".join(f"`{name}`" for name in sorted(aliases)),
                str(len(cases) + len(rows)) if cases or rows else elsewhere,
                reason or (str(graded) if graded else elsewhere),
                str(len(cases)) if cases else "",
            )
        )
    return sorted(found)


@functools.cache
def modules() -> list[Entry]:
    """The modules of `tg.nn`, with the cases that compare each with PyTorch's."""
    stored = pytorch()
    cases = [case for kind in ("forwards", "called", "statistics") for case in stored[kind]]
    found = []
    for name in nn.__all__:
        if isinstance(kind := getattr(nn, name), type) and issubclass(kind, nn.Module) and kind is not nn.Module:
            own = [case for case in cases if name in used(case["module"])]
            graded = sum("grads" in case for case in own)
            count, elsewhere = str(len(own) or ""), ELSEWHERE.get(name, "")
            found.append(Entry(f"`{name}`", count or elsewhere, str(graded or elsewhere), count))
    return sorted(found)


@functools.cache
def training() -> list[Entry]:
    """Optimizers and schedules."""
    stored = pytorch()
    cases = [case["name"] for case in (*stored["optimizers"], *stored["schedules"])]
    cases += [name for case in stored["sequences"] for name in ("SequentialLR", *(s[0] for s in case["schedulers"]))]
    found = []
    for name in optim.__all__:
        kind = getattr(optim, name)
        if isinstance(kind, type) and not issubclass(kind, tuple) and name not in ("Optimizer", "Rule", "Schedule"):
            count = str(cases.count(name) or "")
            found.append(Entry(f"`{name}`", count or ELSEWHERE.get(name, ""), "-", count))
    return sorted(found)


def gaps() -> Iterator[str]:
    """Names that no test knows, or whose gradient none compares."""
    for entry in (*functions(), *modules(), *training()):
        if not entry.runs or not entry.gradient:
            yield entry.names


def page() -> str:
    """The page's text."""
    lines = [
        "# Coverage",
        "",
        "Made by `tools/coverage.py` from what the tests run; a test says when it is out of date. A number counts",
        "cases. They run on the numpy device, under `interpret` and, in headless Chromium, on WebGPU; those of",
        "primitives are compared with finite differences, too. Cases of functions with PyTorch's numbers compare",
        "values to `1e-6 + 1e-5 |y|` and gradients to `3e-6 + 5e-5 |y|`, those of modules on WebGPU to",
        "`3e-6 + 1e-5 |y|` and `9e-6 + 3e-5 |y|`; those of primitives are compared with float64, as each row of the",
        "table says. Schedules are functions of the host. A file's name is that of a test with assertions of another",
        "kind; those in `tests/unit` run without a browser.",
    ]
    both = "numpy and WebGPU"
    for title, where, entries in (
        ("Functions", both, functions()),
        ("Modules", both, modules()),
        ("Training", f"{both}, schedules on the host", training()),
    ):
        lines += ["", f"## {title}", ""]
        lines += [f"| name | {where} | gradient | PyTorch's numbers |", "|---|---|---|---|"]
        lines += [f"| {' | '.join(entry)} |" for entry in entries]
    return "\n".join(lines) + "\n"


def main(arguments: list[Any]) -> None:
    """Print what is missing, or write the page."""
    if "--write" in arguments:
        PAGE.write_text(page(), encoding="utf-8")
    for names in gaps():
        print(f"not covered: {names}")


if __name__ == "__main__":
    main(sys.argv[1:])
