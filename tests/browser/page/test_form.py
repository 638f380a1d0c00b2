"""The page's form: its security policy, and accessibility by axe."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from page_driver import PHONE, SITE, START, SUB_PATH, TRAIN, Repl, looked_at, screenshot, violations
from pages import list_of_lessons

pytestmark = pytest.mark.page

HEARS = "addEventListener('securitypolicyviolation', (event) => console.error(`policy: ${event.violatedDirective}`));"


def hears_violations(page: Page) -> None:
    """Makes an error of whatever the policy refuses, in the page and in Python's worker."""

    def handle(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text() + HEARS)

    page.add_init_script(HEARS)
    page.route("**/worker/worker.js", handle)


def test_every_page_and_the_headers_have_the_strict_policy() -> None:
    (policy,) = re.findall(r"Content-Security-Policy: (.*)", (SITE / "_headers").read_text())
    directives = {name: set(sources) for name, *sources in (part.split() for part in policy.split(";"))}
    assert directives.pop("default-src") == {"'none'"}
    allowed = {"'self'", "'none'", "'wasm-unsafe-eval'", "data:"}
    assert set().union(*directives.values()) <= allowed  # no inline code or style, no eval, no other origin
    for page in SITE.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert f'content="{policy}"' in text, page
        assert re.findall(r"<style|\sstyle=|<script(?![^>]*\ssrc=)|\son[a-z]+=", text) == [], page
        assert re.findall(r"(?:src|href)=\"(?:https?:)?//", text.split("<body")[0]) == [], page


def test_nothing_that_the_page_does_breaks_its_policy(open_page: Callable[..., Repl]) -> None:
    repl = open_page(hears_violations)
    repl.example()
    expect(repl.page.locator("#legend li")).to_have_count(1, timeout=TRAIN)
    repl.page.click("#stop")
    repl.wait_ready()
    repl.run("import numpy as np, tensorgrad as tg\ndisplay(np.eye(8))\ndisplay(tg.compile)\nnp.eye(2)")
    with repl.page.expect_download():
        repl.run("download('a.npz', {'a': np.eye(2)})")
    repl.write("import numpy as np\n1 / 0")
    repl.editor.press("Control+Enter")
    expect(repl.page.locator(".wrong-line")).to_have_text("✗ 2")
    repl.editor.press_sequentially("\nnp.lin")
    expect(repl.page.locator(".cm-tooltip-autocomplete")).to_be_visible()
    repl.editor.press("Escape")
    repl.editor.press("F1")
    repl.editor.press("Control+f")
    repl.page.click("#share")
    expect(repl.page.locator("#program-note")).not_to_be_empty()
    assert repl.problems == []
    # And it is in force in Python's worker.
    assert "EvalError" in repl.run("from js import eval\neval('1 + 1')")
    repl.page.wait_for_timeout(100)
    assert [problem for problem in repl.problems if "script-src" in problem] != []


def fill_with_everything(repl: Repl) -> None:
    repl.run("import numpy as np\nfor i in range(50):\n    plot(i), plot(50 - i, 'other')")
    repl.run("print('\\n'.join('wide ' * 60 for _ in range(3)))\ndisplay(np.eye(8))")
    repl.run("import sys\nprint('said', file=sys.stderr)\nundefined")
    repl.program(
        '"""Text."""\n\n# A remark\ndef f(x: int) -> str:\n    return str(x) + "1" if x > 1e3 else None\n\nf(1) / 2'
    )
    expect(repl.page.locator(".wrong-line")).to_be_visible()


def test_axe_finds_nothing(open_page: Callable[..., Repl]) -> None:
    repl = open_page(ready=False)
    page = repl.page
    assert violations(page) == []
    repl.wait_ready(START)
    fill_with_everything(repl)
    for name, width, height in (("desktop", 1280, 800), ("phone", 390, 780)):
        page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.wait_for_timeout(100)  # the curves are drawn anew
            screenshot(page, f"full-{name}-{scheme}")
            if (name, scheme) not in (("desktop", "light"), ("phone", "dark")):
                continue  # axe's rules ask about colours or about sizes, not both
            assert violations(page) == [], (name, scheme)
            # What opens over it.
            page.click(".keys summary")
            assert violations(page) == [], (name, scheme, "keys")
            screenshot(page, f"keys-{name}-{scheme}")
            repl.editor.press("Control+End")
            repl.editor.press("Enter")
            repl.editor.press_sequentially("np.lins")
            expect(page.locator(".cm-tooltip-autocomplete")).to_be_visible()
            assert violations(page) == [], (name, scheme, "completions")
            screenshot(page, f"completions-{name}-{scheme}")
            repl.editor.press("Tab")
            repl.editor.press_sequentially("(")
            expect(page.locator(".code-docs")).to_be_visible()
            assert violations(page) == [], (name, scheme, "docs")
            screenshot(page, f"docs-{name}-{scheme}")
            repl.editor.press("Escape")
            repl.editor.press("Control+f")
            assert violations(page) == [], (name, scheme, "find")
            screenshot(page, f"find-{name}-{scheme}")
            repl.editor.press("Escape")
            expect(page.locator(".cm-search")).to_have_count(0)
            repl.editor.press("Control+z")
    assert repl.problems == []


def test_axe_finds_nothing_in_the_lessons_before_python_is_there(open_page: Callable[..., Repl]) -> None:
    def never(page: Page) -> None:
        page.route("**/worker/worker.js", lambda route: route.fulfill(response=route.fetch(), body=""))

    repl = open_page(never, ready=False)
    page = repl.page
    looked_at(page, "magnified", [{"width": 320, "height": 700}], ["light"])
    page.goto(f"{page.url}lessons/")
    looked_at(page, "lessons")
    page.goto(page.url.replace("lessons/", "embed.html"))
    expect(page.locator("tensor-grad .cell").first).to_be_visible()
    looked_at(page, "embed-page", [PHONE], ["light"])
    page.go_back()
    for lesson in list_of_lessons():
        page.locator(".lesson-list a", has_text=lesson["title"]).click()
        expect(page).to_have_title(re.compile(re.escape(lesson["title"])))
        page.locator(".code-frame textarea").first.focus()
        expect(page.locator(".cm-content")).to_be_visible()
        looked_at(page, f"lesson-{lesson['name']}-loading", [PHONE], ["dark"])
        # What a recording shows is no step of this reader's.
        assert page.evaluate("performance.getEntriesByName('tensorgrad: first trained step').length") == 0
        page.go_back()
    assert repl.problems == []


def test_tab_reaches_everything_and_gets_past_the_editor(repl: Repl) -> None:
    repl.page.locator("#examples").focus()
    seen = []
    for key in ("Tab", "Tab", "Tab", "Escape", "Tab", "Tab"):
        repl.page.keyboard.press(key)
        seen.append(repl.page.evaluate("document.activeElement.id || document.activeElement.className.split(' ')[0]"))
    assert seen[:4] == ["share", "run-program", "cm-content", "cm-content"]
    assert seen[4] != "cm-content"
    assert SUB_PATH in repl.page.url


def test_the_keys_close_by_escape_and_when_the_reader_turns_away(repl: Repl) -> None:
    keys, summary = repl.page.locator(".keys dl"), repl.page.locator(".keys summary")
    summary.focus()
    summary.press("Enter")
    expect(keys).to_contain_text("move the border")
    repl.page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    expect(summary).to_be_focused()
    for leave in (
        lambda: repl.page.locator("#curves-title").click(),
        lambda: repl.page.keyboard.press("Tab"),
        lambda: repl.prompt.press("Escape"),
    ):
        summary.click()
        keys.locator("dd").first.click()
        expect(keys).to_be_visible()
        leave()
        expect(keys).to_be_hidden()
