"""Drives a lesson as a reader would; used by `browser/page`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from page_driver import SITE, TRAIN, Repl, write_code

OUT = SITE.parents[1] / "out" / "page"
READY = 180_000
"""Milliseconds for Python to load and for the picture's programs to compile, on a busy machine."""
WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 800}


class LessonPage:
    """A lesson as seen by somebody who reads it."""

    def __init__(self, repl: Repl) -> None:
        self.page: Page = repl.page
        self.problems = repl.problems

    def wait_ready(self) -> None:
        """Until the cells of the picture have run, and all code is in CodeMirror."""
        expect(self.page.locator("#play")).to_be_enabled(timeout=READY)
        expect(self.page.locator(".code-frame > textarea:visible")).to_have_count(0)

    def text(self, name: str) -> str:
        return self.page.locator(f"#{name}").inner_text()

    def number(self, name: str) -> float:
        return float(self.text(name).replace("−", "-"))

    def cell(self, name: str) -> Locator:
        return self.page.locator(f"[data-code='{name}']")

    def code(self, name: str) -> str:
        """The text of a cell."""
        return self.cell(name).locator(".code-frame > textarea").input_value()

    def run(self, name: str, source: str | None = None) -> str:
        """Run a cell, with another text where one is given, and return what it printed."""
        cell = self.cell(name)
        if source is not None:
            write_code(cell, source)
        runs = int(cell.get_attribute("data-runs") or 0)
        cell.get_by_role("button", name="Run").click()
        expect(cell).to_have_attribute("data-runs", str(runs + 1), timeout=TRAIN)
        return cell.locator(".cell-output").inner_text()

    def check(self, name: str, source: str | None = None) -> str:
        """Check an exercise, with another text where one is given, and return the verdict."""
        cell, verdict = self.cell(name), self.cell(name).locator(".verdict")
        if source is not None:
            write_code(cell, source)
        verdict.evaluate("element => (element.textContent = '')")
        cell.get_by_role("button", name="Check").click()
        expect(verdict).not_to_be_empty(timeout=TRAIN)
        return verdict.inner_text()

    def places(self) -> list[list[float]]:
        """Where the headings, the pictures and the controls stand, from the top of the page, when the code is there."""
        self.page.wait_for_function(
            "[...document.querySelectorAll('[data-code] textarea')].every(area => area.value)", timeout=READY
        )
        return self.page.evaluate(
            """() => {
                const steady = 'h2, .stage > *, figure, .stage button, .field, table, .cell-head';
                return [...document.querySelectorAll(steady)].map(element => {
                    const {x, y, width, height} = element.getBoundingClientRect();
                    return [x + scrollX, y + scrollY, width, height];
                });
            }"""
        )

    def keep(self, name: str) -> None:
        """A picture of the whole page, and that nothing of it lies beside the screen."""
        width = self.page.viewport_size["width"] if self.page.viewport_size else 0
        assert self.page.evaluate("document.documentElement.scrollWidth") <= width
        OUT.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=OUT / f"{name}.png", full_page=True)


def open_lesson(open_page: Callable[..., Repl], url: str, **options: object) -> LessonPage:
    """A lesson's page, before Python is there."""
    return LessonPage(open_page(ready=False, url=url, **options))


def answer(lesson: str, exercise: str) -> str:
    """The answer of an exercise, as it stands beside the lesson."""
    return Path(SITE / "lessons" / lesson / f"answer_{exercise}.py").read_text(encoding="utf-8")
