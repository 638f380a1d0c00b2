"""`<tensor-grad>` in a page of another origin, which has its own style sheet and knows nothing of ours."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, expect

from lesson_driver import READY
from page_driver import PHONE, START, SUB_PATH, WIDE, Repl, screenshot, violations, write_code
from tensorgrad.testing.server import ISOLATION, StaticServer

pytestmark = pytest.mark.page

FOLDER = Path(__file__).parents[2] / "host"


class Post:
    """A page with cells, as its reader sees it."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.problems = page, list[str]()
        self.asked: list[str] = []
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", self._heard)
        page.on("request", lambda request: self.asked.append(request.url))
        page.goto(url)
        expect(self.cell("own").get_by_role("button", name="Run")).to_be_visible(timeout=START)

    def _heard(self, said: ConsoleMessage) -> None:
        if said.type == "error" and "404" not in said.text:  # the file of the cell "lost"
            self.problems.append(said.text)

    def cell(self, name: str) -> Locator:
        return self.page.locator(f"tensor-grad#{name}")

    def write(self, name: str, source: str) -> None:
        self.cell(name).scroll_into_view_if_needed()
        expect(self.editor(name)).to_be_visible(timeout=START)
        write_code(self.cell(name), source)

    def editor(self, name: str) -> Locator:
        return self.cell(name).locator(".cm-content")

    def press(self, name: str, button: str) -> None:
        self.cell(name).get_by_role("button", name=button).click()

    def ends(self, name: str, state: str) -> str:
        """Wait until it has ended like that and return what it says."""
        expect(self.cell(name).locator(".cell-state")).to_contain_text(state, timeout=READY)
        return self.output(name)

    def output(self, name: str) -> str:
        return self.cell(name).locator(".cell-output").inner_text()

    def code(self, name: str) -> str:
        return self.cell(name).locator(".code-frame > textarea").input_value()

    def playground(self, name: str) -> Locator:
        return self.cell(name).get_by_role("link", name="Open in the playground")

    def shared(self, name: str) -> str:
        """The program that the link to the playground holds."""
        self.playground(name).hover()  # then it is made
        self.page.wait_for_timeout(200)
        with self.page.expect_popup() as opening:
            self.playground(name).click()
        packed = opening.value.url.partition("#code=")[2]
        opening.value.close()
        return zlib.decompress(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), -15).decode()

    def top(self, name: str) -> float:
        return self.page.evaluate("name => document.getElementById(name).getBoundingClientRect().y + scrollY", name)

    def style(self, name: str, part: str, property: str) -> str:
        script = "(element, property) => getComputedStyle(element)[property]"
        return self.cell(name).locator(part).first.evaluate(script, property)


@pytest.fixture
def open_post(browser: Browser, server: StaticServer) -> Iterator[Callable[..., Post]]:
    contexts = []
    servers = []

    def open_one(headers: dict[str, str], **options: Any) -> Post:
        text = (FOLDER / "post.html").read_text(encoding="utf-8").replace("SITE", server.url + SUB_PATH.rstrip("/"))
        files = {"/post.html": text.encode(), "/post.css": (FOLDER / "post.css").read_bytes()}
        servers.append(StaticServer(files, headers=headers))
        servers[-1].__enter__()
        contexts.append(browser.new_context(**options))
        return Post(contexts[-1].new_page(), servers[-1].url + "/post.html")

    yield open_one
    for context in contexts:
        context.close()
    for running in servers:
        running.__exit__()


def test_cells_of_a_foreign_page_share_a_python_that_is_loaded_when_one_runs(open_post: Callable[..., Post]) -> None:
    post = open_post({}, viewport=WIDE)
    page = post.page
    assert not page.evaluate("crossOriginIsolated")
    assert [url for url in post.asked if "/pyodide/" in url or "worker" in url] == []
    before = post.top("below")
    # The page's type, colours and padding end at the cell.
    assert post.style("fit", ".cm-line", "fontSize") == "14px"
    assert post.style("fit", "button.primary", "textTransform") == "none"
    assert post.style("fit", ".cell", "backgroundColor") == "rgb(255, 255, 255)"
    # The fit needs the data, which run first. Nothing moves while curves, a picture and text come.
    post.press("fit", "Run")
    assert "loss below 0.01: True" in post.ends("fit", "✓ done")
    assert post.output("data") == "points: 16\n"
    expect(post.cell("fit").locator(".legend li")).to_have_attribute("data-points", "60")
    expect(post.cell("fit").get_by_role("img", name="4 × 4")).to_be_visible()
    assert post.top("below") == before
    screenshot(page, "embed-desktop-light")
    # The link to the playground takes along what shares its Python and comes before it, as it is now; others do not.
    data, fit = post.code("data"), post.code("fit")
    post.write("data", "changed = 1\n" + data)
    assert post.shared("fit") == f"# The data\nchanged = 1\n{data.strip()}\n\n# The fit\n{fit.strip()}\n"
    post.press("data", "Reset")
    # What is out of sight runs when it is scrolled to; its code is the text of a script element.
    assert post.output("auto") == ""
    post.cell("auto").scroll_into_view_if_needed()
    assert post.ends("auto", "✓ done") == "True\n"
    assert post.shared("own") == "x"
    # A file that is not there is said in the cell, which has its text instead.
    assert "lost.py could not be loaded: 404" in post.output("lost")
    expect(post.editor("lost").locator(".cm-line")).to_have_text("x")
    # An error shows the lines of the cell alone.
    post.write("data", "x = 1\nx / 0")
    post.editor("data").press("Control+Enter")
    said = post.ends("data", "✗ error")
    assert "line 2, in <module>\n    x / 0" in said
    assert "ZeroDivisionError" in said
    assert "pyodide" not in said
    expect(post.cell("data").locator(".cm-line.cm-wrong-line")).to_have_text("x / 0")
    # Stop ends what awaits, and names stay.
    post.write("data", "import asyncio\nawait asyncio.sleep(1000)")
    post.press("data", "Run")
    expect(post.cell("data").locator(".cell-state")).to_have_text("running")
    post.press("data", "Stop")
    assert "KeyboardInterrupt" in post.ends("data", "◼ stopped")
    # Without isolation a busy loop ends by a restart; what a cell needs then runs again.
    post.write("data", "while True: pass")
    post.press("data", "Run")
    expect(post.cell("data").locator(".cell-state")).to_have_text("running")
    post.press("data", "Stop")
    assert "Python was restarted" in post.ends("data", "↻ restarted")
    post.press("data", "Reset")
    post.press("fit", "Run")
    assert "loss below 0.01: True" in post.ends("fit", "✓ done")
    # Each run of a cell begins new curves.
    post.write("fit", "for n in range(3): plot(n)")
    post.press("fit", "Run")
    expect(post.cell("fit").locator(".legend li")).to_have_attribute("data-points", "3")
    assert post.problems == []


def test_a_cell_is_accessible_at_every_width_in_light_and_dark(open_post: Callable[..., Post]) -> None:
    post = open_post({}, viewport=WIDE, color_scheme="dark")
    page = post.page
    # The page has no dark scheme: neither have the cells, whatever the system prefers.
    assert post.style("fit", ".cell", "backgroundColor") == "rgb(255, 255, 255)"
    assert violations(page) == []
    page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    assert violations(page) == []
    page.evaluate("document.documentElement.style.colorScheme = 'light dark'")
    assert post.style("fit", ".cell", "backgroundColor") == "rgb(26, 30, 33)"
    page.evaluate("document.body.style.background = '#111', document.body.style.color = '#eee'")
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    screenshot(page, "embed-phone-dark")
    # The way by keyboard: from the code, Escape and Tab lead on.
    post.editor("fit").focus()
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    focused = "document.activeElement.shadowRoot.activeElement.getAttribute('aria-label')"
    assert page.evaluate(focused) == "The fit: output"
    # Cells that need each other say so, where they would wait for ever.
    page.evaluate("document.getElementById('data').setAttribute('needs', 'fit')")
    post.press("data", "Run")
    assert 'This cell needs "fit", which needs "data", and that is this cell' in post.ends("data", "✗ error")
    assert post.problems == []


def test_the_page_about_it_is_accessible(open_page: Callable[..., Repl], server: StaticServer) -> None:
    repl = open_page(ready=False, url=f"{server.url}{SUB_PATH}embed.html", viewport=PHONE, color_scheme="dark")
    page = repl.page
    expect(page.locator("tensor-grad .cm-content").first).to_be_visible(timeout=START)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert repl.problems == []


def test_in_an_isolated_page_stop_interrupts_and_a_cell_can_have_its_own_python(
    open_post: Callable[..., Post], server: StaticServer
) -> None:
    site = server.url
    policy = f"default-src 'none'; script-src {site} 'wasm-unsafe-eval'; connect-src 'self' {site}; "
    policy += (
        f"worker-src blob: {site}; img-src data:; style-src 'self'"  # what the docs say, and the page's own style sheet
    )
    post = open_post({**ISOLATION, "Content-Security-Policy": policy}, viewport=WIDE)
    assert post.page.evaluate("crossOriginIsolated")
    post.write("data", "x = [1, 2]\nwhile True: pass")
    post.press("data", "Run")
    expect(post.cell("data").locator(".cell-state")).to_have_text("running", timeout=READY)
    post.press("own", "Run")
    post.press("data", "Stop")
    said = post.ends("data", "◼ stopped")
    assert "line 2" in said
    assert "KeyboardInterrupt" in said
    post.write("data", "x")
    post.press("data", "Run")
    assert post.ends("data", "✓ done") == "[1, 2]\n"
    assert "NameError: name 'x' is not defined" in post.ends("own", "✗ error")
    # A cell that goes takes its Python along, and nothing complains.
    post.page.evaluate("document.getElementById('own').remove()")
    assert post.problems == []
