"""`docs/coverage.md` is what the tests cover, without a gap."""

from __future__ import annotations

import re

import coverage
import tensorgrad as tg


def test_the_page_is_up_to_date() -> None:
    assert coverage.PAGE.read_text(encoding="utf-8") == coverage.page(), (
        "run PYTHONPATH=tests .venv/bin/python tools/coverage.py --write"
    )


def test_nothing_public_is_left_out() -> None:
    assert list(coverage.gaps()) == []


def test_whatever_is_tested_elsewhere_is_named_there() -> None:
    for name, file in coverage.ELSEWHERE.items():
        assert re.search(rf"\b{name}\b", (coverage.ROOT / file).read_text(encoding="utf-8")), f"{name}: {file}"


def test_reasons_are_of_functions_that_there_are() -> None:
    assert {name for names in coverage.UNDIFFERENTIABLE.values() for name in names.split()} <= set(tg.ops.__all__)
