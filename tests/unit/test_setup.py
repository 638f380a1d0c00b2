"""What set-up and the tests have to agree on."""

from __future__ import annotations

import system
from tensorgrad.testing import browser


def test_set_up_looks_for_the_browsers_that_the_tests_look_for() -> None:
    assert system.CHROMIUM_NAMES == browser.CHROMIUM_NAMES
