"""The documentation as somebody reads it: search by the keyboard, examples that open in the playground."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from page_driver import SITE, START, SUB_PATH, Repl, screenshot, violations
from tensorgrad.testing.server import StaticServer

pytestmark = pytest.mark.page


@pytest.fixture
def page(browser: Browser, server: StaticServer) -> Iterator[Page]:
    """The page of a function; nothing goes wrong in it."""
    context = browser.new_context(service_workers="block")
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.goto(f"{server.url}{SUB_PATH}docs/tg.cross_entropy.html")
    yield page
    context.close()
    assert problems == []


def names(page: Page) -> list[str]:
    return page.locator("#results strong").all_inner_texts()


def test_the_search_finds_names_by_the_keyboard_alone(page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    assert page.locator("#results").is_hidden()
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("crossentropy")
    expect(page.locator("#found")).to_have_text(re.compile(r"^\d+ found$"))
    assert set(names(page)[:2]) == {"tg.cross_entropy", "nn.CrossEntropyLoss"}
    assert sum(url.endswith(("search.json", "minisearch.js")) for url in asked) == 2  # when it is used, not before
    for question, first in (
        ("cross entropy loss", {"tg.cross_entropy", "nn.CrossEntropyLoss"}),
        ("how to split a tensor", {"tg.split"}),
        ("sofmax", {"tg.softmax", "tg.log_softmax"}),
        ("arccos", {"tg.acos"}),
        ("mixed precision", {"Mixed precision"}),
    ):
        page.locator("#search").fill(question)
        expect(page.locator("#results strong").first).to_have_text(re.compile("|".join(map(re.escape, first))))
        assert first <= set(names(page)[: len(first) + 1])
    page.locator("#search").fill("qqqq")
    expect(page.locator("#found")).to_have_text("Nothing found")
    page.locator("#search").fill("conv2d")
    expect(page.locator("#results strong").first).to_have_text("tg.conv2d")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.querySelector('strong').textContent") == "tg.conv2d"
    page.keyboard.press("Escape")
    expect(page.locator("#search")).to_be_focused()
    expect(page.locator("#results")).to_be_hidden()
    page.locator("#search").fill("nn.conv2d")
    expect(page.locator("#results strong").first).to_have_text("nn.Conv2d")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("nn.Conv2d")


def test_pages_fit_and_axe_finds_nothing(page: Page) -> None:
    folder = page.url.rsplit("/", 1)[0]
    for name in ("tg.cross_entropy", "nn.Module", "nn.LayerNorm", "index", "guide", "from-pytorch", "load-times"):
        page.goto(f"{folder}/{name}.html")
        for form, width in (("desktop", 1280), ("phone", 390)):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") == width, name
            for scheme in ("light", "dark") if name == "tg.cross_entropy" else ("light",):
                page.emulate_media(color_scheme=scheme)
                page.locator("#search").fill("conv" if name == "tg.cross_entropy" else "")
                expect(page.locator("#results")).to_be_visible(visible=name == "tg.cross_entropy")
                assert violations(page) == [], (name, form, scheme)
                screenshot(page, f"docs-page-{name}-{form}-{scheme}")


def test_names_stay_in_one_piece_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{page.url.rsplit('/', 1)[0]}/coverage.html")
    lines = page.locator("td:first-child code").evaluate_all("all => all.map((each) => each.getClientRects().length)")
    assert set(lines) == {1}
    assert len(lines) > 400
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.goto(f"{page.url.rsplit('/', 1)[0]}/guide.html")  # code that is no name gives way to sentences
    table = page.locator(".wide:has(:text('adds a point'))")
    assert table.evaluate("(table) => table.scrollWidth <= table.clientWidth")
    page.goto(f"{page.url.rsplit('/', 1)[0]}/tg.binary_cross_entropy_with_logits.html")
    expect(page.locator("h1")).to_have_text("tg.binary_cross_entropy_with_logits")
    assert page.locator("h1").evaluate("(title) => title.scrollWidth <= title.clientWidth")
    assert page.locator("h1 wbr").count() == 5


def test_an_example_opens_in_the_playground_and_waits(page: Page) -> None:
    page.locator(".try").first.click()
    page.wait_for_url(re.compile(rf"{SUB_PATH}#code="))
    expect(page.locator("#program")).to_have_value(re.compile(r"^import tensorgrad as tg\n.*tg\.cross_entropy\(", re.S))
    expect(page.locator("#program-note")).to_contain_text("It runs when you press Run")
    expect(page.locator("#status")).to_have_attribute("data-state", "ready", timeout=START)
    assert page.locator(".entry").count() == 0


RUN_ALL = """
import ast, asyncio, contextlib, inspect, io, json, os, tempfile, traceback

async def run_all(programs):
    failed = {}
    for name, code in programs.items():
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                program = compile(code, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
                answer = eval(program, {"__name__": "__main__"})
                if inspect.iscoroutine(answer):
                    await answer
        except Exception:
            failed[name] = traceback.format_exc()
    return failed

home = os.getcwd()
with tempfile.TemporaryDirectory() as folder:  # some write files
    os.chdir(folder)
    failed = await run_all(json.loads(%r))
    os.chdir(home)
print(json.dumps(failed))
"""


def test_every_example_runs_where_its_link_leads(repl: Repl) -> None:
    """Those of all pages, of functions, methods and modules; what a test elsewhere has imported is not there."""
    programs = {}
    for file in sorted((SITE / "docs").glob("*.html")):
        links = re.findall(r'class="try" href="\.\./#code=([^"]*)"', file.read_text(encoding="utf-8"))
        for number, link in enumerate(links):
            code = zlib.decompress(base64.urlsafe_b64decode(f"{link}=="), -15).decode()
            programs[f"{file.stem} {number}"] = code
    assert len(programs) > 500
    assert {"tg.softmax 0", "nn.Linear 0", "tg.Train 2"} <= programs.keys()
    assert json.loads(repl.run(RUN_ALL % json.dumps(programs), timeout=180_000)) == {}
