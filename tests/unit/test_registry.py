"""Every primitive has its row in the table, its rules, and its place in the passes."""

from __future__ import annotations

import pytest

from table import Row
from table_rows import TABLE
from tensorgrad.lower.compose import LEAVES, TEMPLATES
from tensorgrad.passes.simplify import _FOLDABLE
from tensorgrad.primitive import REGISTRY, primitive

ROWS = {row.op for row in TABLE}


def test_every_primitive_has_a_row_and_every_row_a_primitive() -> None:
    assert REGISTRY.keys() - ROWS == set(), "primitives without a row of the table"
    assert ROWS - REGISTRY.keys() == set(), "rows of no primitive"


def test_names_are_their_keys() -> None:
    assert all(name == record.name for name, record in REGISTRY.items())


def test_whatever_is_no_leaf_and_no_template_has_a_lowering() -> None:
    # a pass replaces a checkpoint by its operands
    assert {name for name, p in REGISTRY.items() if p.lower is None} == {*LEAVES, *TEMPLATES, "checkpoint"}


def test_a_differentiable_row_is_of_a_primitive_with_a_gradient() -> None:
    for row in TABLE:
        wanted = any(case.grads for case in row.cases)
        # a gradient may flow through what surrounds the operation: leaves, constants, random numbers
        if wanted and REGISTRY[row.op].grad is None:
            assert row.op in {*LEAVES, "const", "iota"}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.cases[0].name.split(":")[0])
def test_rows_say_why_and_run_the_shapes(row: Row) -> None:
    assert row.tolerance.why
    sizes = [max((a.size for a in case.inputs), default=0) for case in row.cases]
    shapes = [a.shape for case in row.cases for a in case.inputs]
    assert len(row.cases) >= 2
    if len(row.cases) >= 8 and row.op not in ("const", "array", "leaf", "iota", "random_bits"):
        assert max(sizes) > 999, "a long operand"
        assert any(0 in shape for shape in shapes) or row.op in ("argmax", "argmin", "slice"), "an empty operand"


def test_what_is_folded_exists() -> None:
    assert REGISTRY.keys() >= _FOLDABLE


def test_declaring_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="'add' is declared twice"):
        primitive("add", shape=lambda a, b: a, eval=lambda xp, a, b: a)
