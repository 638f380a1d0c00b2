"""The hooks of the machine's pytest: marked tests are run in the page, the others here."""

from __future__ import annotations

import sys
import time
import warnings
from contextlib import nullcontext
from typing import Any

import pytest
from _pytest.runner import CallInfo

from tensorgrad.testing.asynchronous import pytest_fixture_setup, pytest_pyfunc_call, pytest_unconfigure
from tensorgrad.testing.browser import BrowserError, is_url
from tensorgrad.testing.files import FilesError
from tensorgrad.testing.options import add_options, page_config, timeout_of
from tensorgrad.testing.session import Message, PageError, PageSession, PageTimeout

__all__ = [
    "pytest_addoption",
    "pytest_configure",
    "pytest_fixture_setup",
    "pytest_pyfunc_call",
    "pytest_runtest_protocol",
    "pytest_sessionfinish",
    "pytest_unconfigure",
]

_runner_key = pytest.StashKey["PageRunner"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the plugin's options."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark."""
    config.addinivalue_line(
        "markers", "webgpu(timeout=None): run the test in Pyodide in a headless browser that has WebGPU."
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a marked test in the page; leave the others to pytest."""
    if not _marked(item):
        return None
    runner = item.config.stash.get(_runner_key, None)
    if runner is None:
        runner = item.config.stash[_runner_key] = PageRunner(item.session)
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    runner.run(item)
    _tear_down_here(item, nextitem)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the browser."""
    runner = session.config.stash.get(_runner_key, None)
    if runner is not None:
        runner.close()


class PageRunner:
    """Runs the marked tests of a session in a page, which starts with the first of them."""

    def __init__(self, session: pytest.Session) -> None:
        self._items = [item for item in session.items if _marked(item)]
        self._next = {item.nodeid: after.nodeid for item, after in zip(self._items, self._items[1:], strict=False)}
        self._config = session.config
        self._page: PageSession | None = None
        self._broken: str | None = None

    def run(self, item: pytest.Item) -> None:
        """Run a test there and hand its reports to pytest; whatever goes wrong becomes a report."""
        if self._broken is not None:
            _report(item, "setup", "failed", self._broken)
            return
        started = time.monotonic()
        try:
            page = self._started_page(item)
        except (PageError, BrowserError, FilesError, pytest.UsageError) as error:
            late = isinstance(error, PageTimeout)
            why = "it had no answer within `tensorgrad_start_timeout`" if late else str(error)
            self._broken = f"The page for the tests marked webgpu did not start: {why}{self._pyodide_hint()}"
            _report(item, "setup", "failed", self._broken, time.monotonic() - started)
            return
        if item.nodeid not in page.tests:
            _report(item, "setup", *_why_not_collected(item, page.problems))
            return
        self._run_in(page, item)

    def _pyodide_hint(self) -> str:
        """What to do where the page could not reach an address that it loads Pyodide from."""
        if self._page is None or not is_url(self._page.pyodide):
            return ""
        return (
            f"\nPyodide is loaded from {self._page.pyodide}. Without a network, name a folder that has it, or "
            "another address, as `tensorgrad_pyodide` in pytest's configuration or in TENSORGRAD_PYODIDE."
        )

    def _run_in(self, page: PageSession, item: pytest.Item) -> None:
        timeout = timeout_of(item)
        started = time.monotonic()
        phase = "setup"
        try:
            for message in page.run(item.nodeid, self._next.get(item.nodeid), timeout):
                phase = self._handle(item, message) or phase
        except (PageError, BrowserError) as error:
            page.abandon()
            text = str(error)
            if isinstance(error, PageTimeout):
                text = (
                    f"{item.nodeid} did not end within {timeout:g} s in the page, in its {phase} phase. "
                    "The page was closed; the next test gets a new one. If the test needs longer, mark it "
                    "`webgpu(timeout=seconds)` or raise `tensorgrad_timeout`."
                )
            _report(item, phase, "failed", text, time.monotonic() - started)

    def _handle(self, item: pytest.Item, message: Message) -> str | None:
        """Pass on a report or a piece of output; return the phase that comes after a report."""
        if message["kind"] == "output":
            stream = sys.stdout if message["stream"] == "stdout" else sys.stderr
            stream.write(message["text"])
            stream.flush()
        elif message["kind"] == "report":
            hook = self._config.hook
            report: Any = hook.pytest_report_from_serializable(config=self._config, data=message["report"])
            if report.skipped and isinstance(report.longrepr, list):  # JSON has no tuples
                path, line, reason = report.longrepr
                report.longrepr = self._here(path), line, reason
            item.ihook.pytest_runtest_logreport(report=report)
            return {"setup": "call", "call": "teardown"}.get(report.when)
        elif message["kind"] == "warning":
            self._config.hook.pytest_warning_recorded.call_historic(
                kwargs={"warning_message": self._warning(message), **message["arguments"]}
            )
        return None

    def _warning(self, message: Message) -> warnings.WarningMessage:
        """A warning from the page; of its category where this process knows it too."""
        module, name = message["category"]
        category = getattr(sys.modules.get(module), name, UserWarning)
        path, line = message["place"]
        return warnings.WarningMessage(category(message["text"]), category, self._here(path), line)

    def _here(self, path: str) -> str:
        """The path of a file of the page on this machine."""
        return path.replace("/project", str(self._config.rootpath), 1) if path.startswith("/project/") else path

    def _started_page(self, item: pytest.Item) -> PageSession:
        if self._page is None:
            self._page = PageSession(page_config(self._config, self._items))
        if not self._page.running:
            # all of them: pytest-xdist may give its workers the files in any order
            self._page.start([marked.nodeid for marked in self._items])
        return self._page

    def close(self) -> None:
        """End the page and the browser."""
        if self._page is not None:
            self._page.close()


def _marked(item: pytest.Item) -> bool:
    return sys.platform != "emscripten" and item.get_closest_marker("webgpu") is not None


def _why_not_collected(item: pytest.Item, problems: dict[str, tuple[str, str]]) -> tuple[str, str]:
    """Outcome and text for a test that pytest in the page does not have."""
    parents = {parent.nodeid for parent in item.listchain()} | {""}
    for nodeid, (outcome, text) in problems.items():
        if nodeid in parents:
            return (
                outcome,
                text if outcome == "skipped" else f"Collecting {nodeid} in the page failed:\n{text}",
            )
    return "failed", (
        f"pytest in the page did not find {item.nodeid}: the test is made differently there. Parameters and "
        "their ids have to be the same on every platform."
    )


def _report(item: pytest.Item, when: str, outcome: str, text: str, duration: float = 0.0) -> None:
    """Tell pytest of something that happened to a test outside of it."""
    longrepr: Any = (str(item.path), (item.location[1] or 0) + 1, text) if outcome == "skipped" else text
    now = time.time()
    report = pytest.TestReport(
        item.nodeid,
        item.location,
        dict.fromkeys(item.keywords, 1),
        outcome,  # type: ignore[arg-type]
        longrepr,
        when,  # type: ignore[arg-type]
        duration=duration,
        start=now - duration,
        stop=now,
    )
    item.ihook.pytest_runtest_logreport(report=report)


def _tear_down_here(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End the fixtures of earlier tests of this process that the next test has no part in.

    pytest does it in the teardown of a test, which one that runs in the page has not got here.
    """
    capture: Any = item.config.pluginmanager.getplugin("capturemanager")
    with capture.item_capture("teardown", item) if capture is not None else nullcontext():
        call = CallInfo.from_call(lambda: item.session._setupstate.teardown_exact(nextitem), "teardown")
    if call.excinfo is not None:
        report = item.ihook.pytest_runtest_makereport(item=item, call=call)
        item.ihook.pytest_runtest_logreport(report=report)
