"""Chromium for the tests: where it is, how it is started, and a thread that drives it.

Playwright's asyncio interface runs in a thread of its own. Its synchronous interface
would leave an event loop running in pytest's thread, where no test could call
`asyncio.run` any more, nor another plugin start a second Playwright.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page, Playwright

T = TypeVar("T")

CHROMIUM_NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)

CHROMIUM_FLAGS = (
    "--no-sandbox",  # the sandbox does not start as root, as in most containers
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
    "--enable-unsafe-webgpu",
)

SOFTWARE_ADAPTER = "--use-webgpu-adapter=swiftshader"
"""Chromium's own software implementation: the same results on every machine, no GPU needed."""

QUICK_SHADERS = "--enable-dawn-features=disable_workgroup_init"
"""Workgroup memory is not set to zero. SwiftShader compiles the zeroing word by word, seconds for a kernel with 16 KB
of it; the library's kernels write that memory before they read it, which is tested so as well."""


class BrowserError(Exception):
    """The browser is missing, did not start, or stopped."""


def find_chromium(configured: str | None = None) -> str:
    """The path of a Chromium: the configured one, `$TENSORGRAD_CHROMIUM`, or the first that is installed.

    Raises:
        BrowserError: there is none. The message says how to get one.
    """
    wanted = os.environ.get("TENSORGRAD_CHROMIUM") or configured
    if wanted:
        found = shutil.which(os.path.expanduser(wanted))
        if found is None:
            raise BrowserError(f"the configured browser {wanted!r} is not an executable file")
        return found
    for name in CHROMIUM_NAMES:
        found = shutil.which(name)
        if found is not None:
            return found
    raise BrowserError(
        "no Chromium was found. Install one (Debian: `apt-get install chromium-headless-shell`, elsewhere "
        "Chromium or Google Chrome), or set `tensorgrad_chromium` in pytest's configuration, or the "
        "environment variable TENSORGRAD_CHROMIUM, to the path of its executable."
    )


class BrowserThread:
    """A Chromium and the thread in which Playwright drives it.

    Every method may be called from any other thread and waits for its result, at most
    for the given time.
    """

    def __init__(self, executable: str, flags: tuple[str, ...]) -> None:
        self._executable = executable
        self._flags = flags
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tensorgrad-browser", daemon=True)
        self._thread.start()
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None

    def call(self, work: Coroutine[Any, Any, T], timeout: float = 30.0) -> T:
        """Run a coroutine in the browser's thread and return its result.

        Raises:
            BrowserError: it failed in the browser, or took longer than `timeout` seconds.
        """
        from playwright.async_api import Error

        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout)
        except TimeoutError:
            future.cancel()
            raise BrowserError(f"the browser did not answer within {timeout:g} s") from None
        except Error as error:
            raise BrowserError(error.message) from None

    def open(self, url: str, on_message: Callable[[Any], None], on_crash: Callable[[], None]) -> Page:
        """Open a page. `window.tensorgradEmit(value)` in it calls `on_message` in the browser's thread."""
        return self.call(self._open(url, on_message, on_crash), timeout=60.0)

    async def _open(self, url: str, on_message: Callable[[Any], None], on_crash: Callable[[], None]) -> Page:
        if self._browser is None or not self._browser.is_connected():
            await self._launch()
        assert self._browser is not None
        page = await self._browser.new_page()
        page.on("crash", lambda _: on_crash())
        await page.expose_function("tensorgradEmit", on_message)
        await page.goto(url)
        return page

    async def _launch(self) -> None:
        from playwright.async_api import Error, async_playwright

        if self._playwright is None:
            self._playwright = await async_playwright().start()
        try:
            self._browser = await self._playwright.chromium.launch(
                executable_path=self._executable, args=list(self._flags), handle_sigint=False
            )
        except Error as error:
            raise BrowserError(f"{self._executable} did not start: {error.message}") from None

    def close_page(self, page: Page) -> None:
        """Close a page; where it does not answer, the whole browser (the next `open` starts another)."""
        try:
            self.call(page.close(), timeout=10.0)
        except BrowserError:
            self.close_browser()

    def close_browser(self) -> None:
        """End the browser process; the next `open` starts another."""
        browser, self._browser = self._browser, None
        if browser is not None:
            with suppress(BrowserError):  # one that is gone already
                self.call(browser.close(), timeout=20.0)

    def close(self) -> None:
        """End the browser, Playwright and the thread."""
        try:
            self.close_browser()
            if self._playwright is not None:
                self.call(self._playwright.stop(), timeout=20.0)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10.0)
            if not self._thread.is_alive():
                self._loop.close()


def is_url(place: str | Path) -> bool:
    """Whether a configured place is a web address and not a folder."""
    return str(place).startswith(("http://", "https://"))
