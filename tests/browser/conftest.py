"""Puts measurements that tests record as `measured` into the report of the run."""

from __future__ import annotations

from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    measured = [
        value
        for report in terminalreporter.stats.get("passed", [])
        for name, value in report.user_properties
        if name == "measured"
    ]
    if measured:
        terminalreporter.section("measured")
        for value in measured:
            terminalreporter.write_line(value)
