"""The half of the plugin that runs in the page: pytest there, steered by pytest here.

pytest in the page collects the same files and then, instead of its own loop, runs what
it is told, one test at a time, and sends each report as pytest serializes it. So
fixtures live as long as they would anywhere, and the machine's pytest stays in charge of
order, selection and when to stop.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from typing import Any

import pytest

from tensorgrad import cache
from tensorgrad.testing import asynchronous


def main(text: str) -> int:
    """Run pytest in the page until it is told to stop.

    Args:
        text: JSON with `args` and `options` for pytest, `ini` for its configuration file,
            `cwd`, and `wanted`, the ids of the tests that may be asked for.
    """
    config = json.loads(text)
    sys.path.remove("/packages")
    sys.path.append("/packages")
    os.chdir(config["cwd"])
    cache.enable(False)  # no test depends on what another has compiled
    with open("/project.ini", "w") as file:
        file.write(config["ini"])
    return int(pytest.main(config["args"], plugins=[asynchronous, Bridge(config["options"], config["wanted"])]))


class Bridge:
    """The plugin that takes the place of pytest's loop and of its terminal report."""

    def __init__(self, options: dict[str, Any], wanted: list[str]) -> None:
        self.options = options
        self.wanted = set(wanted)
        self.problems: dict[str, tuple[str, str]] = {}
        self.running = False
        self.config: pytest.Config

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Take over the machine's options about how failures are shown."""
        self.config = config
        for name, value in self.options.items():
            setattr(config.option, name, value)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Remember what could not be imported here."""
        if report.failed:
            self.problems[report.nodeid] = ("failed", report.longreprtext)
        elif report.skipped and isinstance(report.longrepr, tuple):
            self.problems[report.nodeid] = ("skipped", report.longrepr[2])

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the tests that the machine's pytest selected."""
        items[:] = [item for item in items if item.nodeid in self.wanted]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run one test after the other as they are asked for."""
        from pyodide.ffi import run_sync
        from tensorgrad_harness import receive

        signal.signal(signal.SIGINT, self.interrupt)
        items = {item.nodeid: item for item in session.items}
        _send(kind="collected", tests=list(items), problems=self.problems)
        while (message := json.loads(run_sync(receive())))["kind"] == "run":
            item = items[message["test"]]
            self.running = True
            item.ihook.pytest_runtest_protocol(item=item, nextitem=items.get(message["next"]))
            self.running = False
            _send(kind="done", test=item.nodeid)
        return True

    def interrupt(self, *_: object) -> None:
        """Fail the test that has taken too long, where it is. Its traceback shows what it was doing."""
        __tracebackhide__ = True
        if self.running:
            pytest.fail("the test was still here when its time was over (see `tensorgrad_timeout`)")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send a report."""
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        _send(kind="report", report=data)

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        """Send a warning for the summary."""
        category = warning_message.category
        _send(
            kind="warning",
            text=str(warning_message.message),
            category=[category.__module__, category.__qualname__],
            place=[warning_message.filename, warning_message.lineno],
            arguments={"when": when, "nodeid": nodeid, "location": location},
        )


def _send(**message: Any) -> None:
    from tensorgrad_harness import send

    send(json.dumps(message, default=str))
