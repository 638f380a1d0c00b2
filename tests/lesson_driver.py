"""Drives a lesson as a reader would; used by `browser/page`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from page_driver import PHONE as PHONE
from page_driver import SITE, TRAIN, Repl, looked_at, write_code
from page_driver import WIDE as WIDE

READY = 180_000
"""Milliseconds for Python to load and for the picture's programs to compile, on a busy machine."""


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

    def numbers_beside_lines(self) -> list[float]:
        """How far each line number of the cells stands from its line, in sight or out of it."""
        return self.page.evaluate(
            """() => [...document.querySelectorAll('.cm-editor')].flatMap(editor => {
                const tops = of => [...editor.querySelectorAll(of)].map(element => element.getBoundingClientRect().y);
                const lines = tops('.cm-line');
                return tops('.cm-gutterElement + .cm-gutterElement').map((y, i) => Math.abs(y - lines[i]));
            })"""
        )

    def places(self) -> list[list[float]]:
        """Where the headings, the pictures and the controls stand, from the top of the page, when the code is there."""
        self.page.wait_for_function(
            "[...document.querySelectorAll('[data-code] textarea')].every(area => area.value)", timeout=READY
        )
        return self.page.evaluate(
            """() => {
                const steady = 'h2, .stage > *, figure, .stage button:not(#pause-recording), .field, table, .cell-head';
                return [...document.querySelectorAll(steady)].map(element => {
                    const {x, y, width, height} = element.getBoundingClientRect();
                    return [x + scrollX, y + scrollY, width, height];
                });
            }"""
        )

    @contextmanager
    def notes(self) -> Iterator[Locator]:
        """All that the note beside the picture says meanwhile, as one text: a fast machine says it only shortly."""
        self.page.evaluate(
            """() => {
                const told = document.body.appendChild(Object.assign(document.createElement('pre'), {id: 'told'}));
                const note = document.getElementById('note');
                new MutationObserver(() => told.append(note.textContent + '\\n')).observe(note, {childList: true});
            }"""
        )
        told = self.page.locator("#told")
        yield told
        told.evaluate("told => told.remove()")

    def keep(self, name: str) -> None:
        """Pictures of the whole page as it is now, in light and dark, with what `looked_at` asks of it."""
        assert self.page.viewport_size is not None
        looked_at(self.page, name, [self.page.viewport_size])


def open_lesson(open_page: Callable[..., Repl], url: str, **options: object) -> LessonPage:
    """A lesson's page, before Python is there."""
    return LessonPage(open_page(ready=False, url=url, **options))


def stop_a_busy_loop(lesson: LessonPage, name: str) -> None:
    """Run one in a cell and stop it; the cell's own code comes back."""
    cell = lesson.cell(name)
    write_code(cell, "while True: pass")
    cell.get_by_role("button", name="Run").click()
    expect(cell.locator(".cell-state")).to_have_text("running")
    cell.get_by_role("button", name="Stop").click()
    expect(cell.locator(".cell-state")).to_have_text("◼ stopped")
    cell.get_by_role("button", name="Reset").click()


def lose_the_gpu(lesson: LessonPage, name: str) -> None:
    """As when a driver is reset, by way of a cell."""
    lesson.run(name, "from tensorgrad.backend import open_backend\n(await open_backend()).device.js_device.destroy()")


def answer(lesson: str, exercise: str) -> str:
    """The answer of an exercise, as it stands beside the lesson."""
    return Path(SITE / "lessons" / lesson / f"answer_{exercise}.py").read_text(encoding="utf-8")
