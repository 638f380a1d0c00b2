"""What set-up and the tests have to agree on."""

from __future__ import annotations

import re

import system
from paths import ROOT
from tensorgrad.testing import browser


def test_set_up_looks_for_the_browsers_that_the_tests_look_for() -> None:
    assert system.CHROMIUM_NAMES == browser.CHROMIUM_NAMES


def test_nothing_is_skipped_for_the_lack_of_what_set_up_brings() -> None:
    """A test may be skipped for what the adapter or the browser cannot do, and for weights that have to be fetched."""
    told = re.compile(r"""(importorskip|unittest\.skip|(?:pytest|mark)\.skip(?:if)?\()(.*)""")
    allowed = re.compile(r"the real model|(this|the) adapter|nothing can wait inside a trace here")
    found = {
        f"{file.relative_to(ROOT)}: {line.strip()}"
        for file in (ROOT / "tests").rglob("*.py")
        if file.name not in ("test_setup.py", "test_harness.py")  # the harness's tests write tests, which skip
        for line in file.read_text(encoding="utf-8").splitlines()
        if (skip := told.search(line)) and not allowed.search(skip[2])
    }
    assert found == set()
