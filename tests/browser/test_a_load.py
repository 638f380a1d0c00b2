"""How long a reader waits for the first trained step, cold and warm.

By its name this file comes first, and alone: `bench/LOAD.md` has the figures of a machine that does nothing else.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

from playwright.sync_api import sync_playwright

from measure_load import FIRST_STEP, measure
from paths import SITE

RUNS = 5
COLD, WARM = 5.0, 2.5
"""Seconds that a reader may have to wait with the site on the same machine, on two cores."""
SLACK = 2
"""For machines slower than that; what doubles the time is found nevertheless."""


def test_a_reader_soon_trains(record_property: Callable[[str, object], None]) -> None:
    with sync_playwright() as playwright:
        cold, warm = zip(*(measure(playwright, SITE) for _ in range(RUNS)), strict=True)
    waits = [statistics.median(load.stages[FIRST_STEP] for load in loads) for loads in (cold, warm)]
    record_property(
        "measured",
        f"to the first trained step, medians of {RUNS}: cold {waits[0]:.2f} s (at most {COLD}), warm {waits[1]:.2f} s"
        f" (at most {WARM})",
    )
    assert waits[0] < SLACK * COLD
    assert waits[1] < SLACK * WARM
