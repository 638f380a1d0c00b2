"""Drives the page as a person would; used by `browser/page`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Playwright, Route, ViewportSize, expect

from tensorgrad.testing.browser import find_chromium

AXE = Path(__file__).parents[1] / "build" / "npm" / "node_modules" / "axe-core" / "axe.min.js"
CONTROLS = "button checkbox combobox link listbox radio searchbox separator slider spinbutton switch tab textbox"
UNNAMED = re.compile(rf"^\s*- (?:{CONTROLS.replace(' ', '|')})\b(?! \").*$", re.M)
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
SITE = Path(__file__).parents[1] / "build" / "site"
START = 60_000
TRAIN = 120_000
WIDE: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 800}
Scheme = Literal["light", "dark"]
SUB_PATH = "/some/where/"


@contextmanager
def launched(playwright: Playwright, *flags: str) -> Iterator[Browser]:
    browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(flags))
    try:
        yield browser
    finally:
        browser.close()


class Repl:
    """The page as seen by somebody who uses it."""

    def __init__(self, page: Page, url: str, *, ready: bool = True) -> None:
        self.page = page
        self.problems: list[str] = []
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", self._heard)
        page.goto(url)
        if ready:
            self.wait_ready(START)
            expect(self.editor).to_be_visible(timeout=START)

    def _heard(self, message: ConsoleMessage) -> None:
        # On an insecure address Chromium remarks that it ignores the isolation headers.
        if message.type == "error" and "Opener-Policy header has been ignored" not in message.text:
            self.problems.append(message.text)

    def wait_ready(self, timeout: float = 30_000) -> None:
        """Until nothing runs any more."""
        expect(self.page.locator("#status")).to_have_attribute("data-state", "ready", timeout=timeout)
        expect(self.page.locator("#stop")).to_be_disabled(timeout=timeout)

    @property
    def prompt(self) -> Locator:
        return self.page.locator("#prompt")

    @property
    def editor(self) -> Locator:
        """The program, once CodeMirror shows it."""
        return self.page.locator(".cm-content")

    @property
    def text(self) -> Locator:
        """The text area that holds the program's text, shown or not."""
        return self.page.locator("#program")

    def entry(self) -> Locator:
        """The last entry of the transcript."""
        return self.page.locator(".entry").last

    def type(self, line: str) -> None:
        """Type one line with real keys and press Enter."""
        self.prompt.press_sequentially(line)
        self.prompt.press("Enter")

    def run(self, source: str, timeout: float = 30_000) -> str:
        """Put a block into the prompt, run all of it, and return what it printed."""
        count = self.page.locator(".entry").count()
        self.prompt.fill(source)
        self.prompt.press("Control+Enter")
        expect(self.page.locator(".entry")).to_have_count(count + 1, timeout=timeout)
        expect(self.entry().locator(".entry-time")).not_to_be_empty(timeout=timeout)
        return self.entry().locator(".entry-body").inner_text().rstrip("\n")

    def program(self, source: str) -> None:
        """Put a program into the editor and run it."""
        self.write(source)
        self.page.click("#run-program")

    def write(self, source: str) -> None:
        """Put a program into the editor in place of what is there."""
        write_code(self.page.locator(".program"), source)

    def example(self, file: str = "first.py") -> None:
        """Take an example, as it came, and run it."""
        shown = self.text.input_value()
        self.page.select_option("#examples", file)
        # The first example is there from the start.
        if not (file == "first.py" and "Two spirals" in shown):
            expect(self.text).not_to_have_value(shown)
        if self.page.locator("#as-it-came").is_visible():
            self.page.click("#as-it-came")
        self.page.click("#run-program")

    def start(self, source: str) -> None:
        """Start something that goes on."""
        count = self.page.locator(".entry").count()
        self.prompt.fill(source)
        self.prompt.press("Control+Enter")
        expect(self.page.locator(".entry")).to_have_count(count + 1)
        expect(self.page.locator("#stop")).to_be_enabled()

    def points(self, name: str = "loss") -> int:
        """How many points a curve has got, 0 where there is none."""
        item = self.page.locator(f"#legend li:has([data-part=name]:text-is('{name}'))")
        return int(item.get_attribute("data-points") or 0) if item.count() else 0


def write_code(place: Locator, source: str) -> None:
    """Put a text in place of what an editor holds, in its text area or in CodeMirror."""
    area, editor = place.locator(".code-frame > textarea"), place.locator(".cm-content")
    if area.is_visible():
        area.fill(source)
        return
    editor.press("Control+a")
    editor.press("Delete")
    if source:
        paste(editor, source)
    expect(area).to_have_value(source)


def paste(into: Locator, text: str) -> None:
    """As the clipboard does it; headless Chromium lets no page read the real one."""
    into.focus()
    into.evaluate(
        """(element, text) => {
            const data = new DataTransfer();
            data.setData('text/plain', text);
            const event = new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true});
            const focused = element.getRootNode().activeElement;
            if (focused.dispatchEvent(event)) document.execCommand('insertText', false, text);
        }""",
        text,
    )


def screenshot(page: Page, name: str) -> None:
    """Kept in `out/page`, to be looked at."""
    out = SITE.parents[1] / "out" / "page"
    out.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=out / f"{name}.png", full_page=True)


def violations(page: Page, within: str = "body") -> list[str]:
    """What axe finds in a part of the page that WCAG 2.2 AA does not allow, and controls that have no name.

    An `output` in a label takes the label, which axe does not see.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = page.evaluate(
        "([within, levels]) => axe.run(within, {runOnly: levels}).then(({violations}) => violations)", [within, LEVELS]
    )
    unnamed = UNNAMED.findall(page.locator(within).first.aria_snapshot())
    told = [f"{rule['id']}: {node['html'][:200]} {node['failureSummary']}" for rule in found for node in rule["nodes"]]
    return [*told, *(f"no name: {line.strip()}" for line in unnamed)]


def looked_at(
    page: Page, name: str, sizes: Sequence[ViewportSize] = (WIDE, PHONE), schemes: Sequence[Scheme] = ("light", "dark")
) -> None:
    """Nothing that axe minds, nothing beside the screen; a picture of each, kept in `out/page`.

    Axe looks at wide pages in light and at narrow ones in dark: its rules ask about colours or about sizes, not both.
    """
    before = page.viewport_size
    for size in sizes:
        page.set_viewport_size(size)
        for scheme in schemes:
            page.emulate_media(color_scheme=scheme)
            page.wait_for_timeout(100)  # what is drawn by script is drawn anew
            seen = f"{name}-{'phone' if size['width'] < 500 else 'desktop'}-{scheme}"
            screenshot(page, seen)
            assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], seen
            found = violations(page)
            assert found == [], (seen, found)
    page.emulate_media(color_scheme="light")
    if before:
        page.set_viewport_size(before)


def places(page: Page) -> list[list[float]]:
    """Where the things stand that nothing may push about, from the top of the page."""
    return page.evaluate(
        """() => ['program-note', 'run-program', 'prompt', 'plot', 'legend'].map(id => {
            const {x, y, width, height} = document.getElementById(id).getBoundingClientRect();
            return [x + scrollX, y + scrollY, width, height];
        })"""
    )


def without_isolation(page: Page) -> None:
    """Serve the document as a host does that cannot set headers."""

    def handle(route: Route) -> None:
        answer = route.fetch()
        dropped = ("cross-origin-opener-policy", "cross-origin-embedder-policy")
        headers = {name: value for name, value in answer.headers.items() if name not in dropped}
        route.fulfill(response=answer, headers=headers)

    page.route(re.compile(re.escape(SUB_PATH) + r"(lessons/\w+\.html)?$"), handle)


def without_webgpu(page: Page) -> None:
    """As a browser that does not know WebGPU: the worker finds no `navigator.gpu`."""

    def handle(route: Route) -> None:
        answer = route.fetch()
        hide = "Object.defineProperty(navigator, 'gpu', {value: undefined});"
        route.fulfill(response=answer, body=answer.text() + hide)

    page.route("**/worker/worker.js", handle)
