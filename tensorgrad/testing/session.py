"""pytest's side of the page: starts it, asks it for tests, and ends it when it hangs."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from tensorgrad.testing.browser import BrowserThread, is_url
from tensorgrad.testing.server import StaticServer

Message = dict[str, Any]


class PageError(Exception):
    """The page did not start, or stopped; the text says why."""


class PageTimeout(PageError):
    """The page did not answer in time."""


GRACE = 5.0
"""Seconds that a test has after its time is over to fail by itself, with a traceback."""


@dataclass(frozen=True)
class PageConfig:
    """What a page is started with.

    Attributes:
        pyodide: a folder, or the address of one, with Pyodide in it.
        pyodide_packages: loaded from there before the tests.
        executable, flags: the browser.
        start_timeout: seconds that a page may take until it has collected the tests.
        archive: the files to unpack in it.
        pytest: what pytest in the page is given (see `inpage.main`), but for `wanted`.
    """

    pyodide: str
    pyodide_packages: tuple[str, ...]
    executable: str
    flags: tuple[str, ...]
    start_timeout: float
    archive: bytes
    pytest: dict[str, Any]


class PageSession:
    """One browser for a whole run, and in it one page, replaced when it breaks."""

    def __init__(self, config: PageConfig) -> None:
        self._config, self.pyodide = config, config.pyodide
        self._messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._stack = ExitStack()
        here = files("tensorgrad.testing")
        mounts: dict[str, Path | bytes] = {
            "/harness.html": (here / "harness.html").read_bytes(),
            "/harness.mjs": (here / "harness.mjs").read_bytes(),
            "/files.zip": config.archive,
            "/favicon.ico": b"",
        }
        if not is_url(config.pyodide):
            mounts["/pyodide/"] = Path(config.pyodide)
        self._server = self._stack.enter_context(StaticServer(mounts))
        self._browser = BrowserThread(config.executable, config.flags)
        self._stack.callback(self._browser.close)
        self._page: Any = None
        self.tests: set[str] = set()
        self.problems: dict[str, tuple[str, str]] = {}
        self.starts = 0

    @property
    def running(self) -> bool:
        """Whether there is a page that waits for tests."""
        return self._page is not None

    def start(self, wanted: list[str]) -> None:
        """Open a page, start pytest in it and wait until it has collected.

        Raises:
            PageError: it did not come so far.
        """
        self.starts += 1
        self._messages = messages = queue.SimpleQueue()
        self._page = self._browser.open(
            self._server.url + "/harness.html",
            lambda message: messages.put(message),
            lambda: messages.put({"kind": "crash"}),
        )
        pyodide = self._config.pyodide.rstrip("/") if is_url(self._config.pyodide) else f"{self._server.url}/pyodide"
        self._send(
            kind="start",
            pyodideURL=pyodide + "/",
            packages=list(self._config.pyodide_packages),
            filesURL=f"{self._server.url}/files.zip",
            config={**self._config.pytest, "wanted": wanted},
        )
        log = []
        for message in self._until(time.monotonic() + self._config.start_timeout, "starting"):
            if message["kind"] == "collected":
                self.tests = set(message["tests"])
                self.problems = {name: (kind, text) for name, (kind, text) in message["problems"].items()}
                return
            if message["kind"] == "output":
                log.append(message["text"])
            elif message["kind"] == "exit":
                self.abandon()
                raise PageError(f"pytest in the page ended with exit status {message['code']}:\n{''.join(log)}")

    def run(self, test: str, following: str | None, timeout: float) -> Iterator[Message]:
        """Run a test there; give its reports and its uncaptured output as they come.

        Raises:
            PageError: the test did not end within `timeout` seconds, or broke the page, which is gone then.
        """
        self._send(kind="run", test=test, next=following)
        for message in self._until(time.monotonic() + timeout, f"running {test}", grace=GRACE):
            if message["kind"] == "done":
                return
            if message["kind"] == "exit":
                self.abandon()
                raise PageError(f"pytest in the page ended with exit status {message['code']} during {test}")
            yield message

    def _until(self, deadline: float, doing: str, grace: float = 0.0) -> Iterator[Message]:
        """Messages until the deadline; what ends a page raises.

        At the deadline Python in the page is interrupted and gets `grace` seconds to end what it does.
        """
        while True:
            try:
                message = self._messages.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                if grace > 0.0:
                    deadline, grace = time.monotonic() + grace, 0.0
                    self._browser.call(self._page.evaluate("window.tensorgradInterrupt()"))
                    continue
                self.abandon()
                raise PageTimeout from None
            if message["kind"] == "crash":  # such a page cannot be closed by itself
                self._page = None
                self._browser.close_browser()
                raise PageError(f"the page crashed while {doing}")
            if message["kind"] == "fatal":
                self.abandon()
                raise PageError(message["message"])
            yield message

    def _send(self, **message: Any) -> None:
        self._browser.call(self._page.evaluate("message => window.tensorgradSend(message)", message))

    def abandon(self) -> None:
        """Close the page, whatever it does."""
        page, self._page = self._page, None
        if page is not None:
            self._browser.close_page(page)

    def close(self) -> None:
        """Let pytest in the page end its fixtures, then end the browser and the server."""
        try:
            if self.running:
                self._send(kind="stop")
                for message in self._until(time.monotonic() + 30.0, "stopping"):
                    if message["kind"] == "exit":
                        break
        finally:
            self._page = None
            self._stack.close()
