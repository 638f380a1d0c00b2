"""A browser with the site open, shared by the tests that drive the page as a person would."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

from page_driver import SITE, SUB_PATH, Repl, launched
from tensorgrad.testing.browser import CHROMIUM_FLAGS, SOFTWARE_ADAPTER
from tensorgrad.testing.server import StaticServer


@pytest.fixture(scope="package")
def server() -> Iterator[StaticServer]:
    """The site under a sub-path, as a project page on a static host has it."""
    if not (SITE / "index.html").is_file():
        pytest.fail("build/site is not there: `make test` builds it first")
    with StaticServer({SUB_PATH: SITE}) as running:
        yield running


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    # Not for the whole session: while it runs, this thread has an event loop, and other tests want their own.
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    with launched(playwright, *CHROMIUM_FLAGS, SOFTWARE_ADAPTER) as running:
        yield running


@pytest.fixture(scope="package")
def shared(browser: Browser, server: StaticServer) -> Iterator[Repl]:
    """One page for the tests that leave it usable, of all files."""
    context = browser.new_context(
        service_workers="block"
    )  # it has tests of its own, and would hide requests from others
    yield Repl(context.new_page(), server.url + SUB_PATH)
    context.close()


@pytest.fixture
def repl(shared: Repl) -> Iterator[Repl]:
    shared.prompt.fill("")
    shared.problems.clear()
    yield shared
    assert shared.problems == []


@pytest.fixture
def open_page(browser: Browser, server: StaticServer) -> Iterator[Callable[..., Repl]]:
    """Opens a page of its own, in a browser profile of its own."""
    contexts = []

    def open_one(
        prepare: Callable[[Page], object] = lambda page: None, ready: bool = True, url: str = "", **options: Any
    ) -> Repl:
        contexts.append(browser.new_context(service_workers="block", **options))
        page = contexts[-1].new_page()
        prepare(page)
        return Repl(page, url or server.url + SUB_PATH, ready=ready)

    yield open_one
    for context in contexts:
        context.close()
