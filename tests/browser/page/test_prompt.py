"""The prompt and the transcript: what is typed, pasted and recalled, and how it is shown."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from page_driver import TRAIN, Repl, paste, places

pytestmark = pytest.mark.page

FITS = """
import numpy as np, tensorgrad as tg
from tensorgrad import nn, optim
loss = lambda model, x, y: tg.mse_loss(model(x), y)
train = await tg.compile(nn.Linear(1, 1), loss, optim.SGD(0.1), {"x": tg.f32[8, 1], "y": tg.f32[8, 1]})
x = np.linspace(-1, 1, 8)[:, None]
batch = {"x": x, "y": 3 * x}
await train.fit([batch] * 4, epochs=3)
await train.fit([batch], epochs=3, on_step=lambda step, result: plot(result.loss, "mine"))
await train.fit([batch], epochs=3, progress=False)
"""

PASTED = [
    # text, what stands before it in its line, what is inserted
    ("x + 1", "y = ", "x + 1"),
    (" + 1", "y = x", " + 1"),
    ("    x = 1", "", "x = 1"),
    ("    a\n    b\n", "", "a\nb\n"),
    ("    a\n        b", "    ", "a\n        b"),
    ("a\nb\n\nc", "        ", "a\n        b\n\n        c"),
    ("    a\n    b", "def f():", "\n    a\n    b"),
    ("\n    a\n    b\n", "    def f():", "\n        a\n        b\n"),
    ("f(\n    1,\n)", "x = ", "f(\n    1,\n)"),
    ("\tif x:\n\t\ty", "", "if x:\n    y"),
    ("a\r\nb\rc", "", "a\nb\nc"),
    ("```python\nx = 1\n\ny = 2\n```\n", "", "x = 1\n\ny = 2"),
    ("\n~~~\n>>> x\n1\n~~~\nand then", "", "x"),
    ("\n\n>>> n = 5\n>>> n\n5\n", "", "n = 5\nn"),
    ("    >>> for i in x:\n    ...     i\n    ...\n    0\n", "", "for i in x:\n    i\n"),
    ("In [3]: for i in x:\n   ...:     i\n   ...: \nOut[3]: 4", "", "for i in x:\n    i\n"),
]


def test_pasted_text_fits_its_new_place(repl: Repl) -> None:
    inserted = repl.page.evaluate(
        """async cases => {
            const {cleanPaste} = await import(new URL('js/indent.js', document.baseURI));
            return cases.map(([text, before]) => cleanPaste(text, before));
        }""",
        [[text, before] for text, before, _ in PASTED],
    )
    assert inserted == [expected for _, _, expected in PASTED]


def test_a_body_is_pasted_behind_a_typed_head(repl: Repl) -> None:
    repl.type("def pasted():")
    expect(repl.prompt).to_have_value("def pasted():\n    ")
    paste(repl.prompt, "a = 20\nif a:\n    a += 1\nreturn a\n")
    repl.prompt.press("Enter")
    repl.wait_ready()
    assert repl.run("pasted()") == "21"


def test_a_match_is_typed_line_by_line(repl: Repl) -> None:
    typed = "match 2:\n    case 1:\n        print('one')\n    case 2:\n        print('two')\n        "
    for line in ("match 2:", "case 1:", "print('one')"):
        repl.type(line)
        expect(repl.prompt).to_have_value(re.compile(re.escape(line) + r"\n +$"))
    repl.prompt.press("Backspace")
    for line in ("case 2:", "print('two')"):
        repl.type(line)
        expect(repl.prompt).to_have_value(re.compile(re.escape(line) + r"\n +$"))
    expect(repl.prompt).to_have_value(typed)
    repl.prompt.press("Enter")
    expect(repl.entry().locator(".out")).to_have_text("two\n")


def test_an_incomplete_line_stays_in_the_prompt_when_python_answers_late(repl: Repl) -> None:
    repl.page.evaluate(
        """() => {
            const post = Worker.prototype.postMessage;
            window.inTime = () => { Worker.prototype.postMessage = post; };
            Worker.prototype.postMessage = function (...given) { setTimeout(() => post.apply(this, given), 400); };
        }"""
    )
    entries = repl.page.locator(".entry").count()
    try:
        repl.type("for late in range(2):")
        expect(repl.prompt).to_have_value("for late in range(2):\n    ")
    finally:
        repl.page.evaluate("inTime()")
    assert repl.page.locator(".entry").count() == entries


def test_as_many_downs_as_ups_come_back(repl: Repl) -> None:
    for source in ("a = 1", "for q in range(2):\n    pass", "b = 2"):
        repl.run(source)
    repl.prompt.fill("draft")
    seen = []
    for _ in range(3):
        repl.prompt.press("ArrowUp")
        seen.append(repl.prompt.input_value())
    assert seen == ["b = 2", "for q in range(2):\n    pass", "a = 1"]
    for _ in range(3):
        repl.prompt.press("ArrowDown")
    expect(repl.prompt).to_have_value("draft")
    # Once the cursor is moved, the arrows walk the lines.
    repl.prompt.press("ArrowUp")
    repl.prompt.press("ArrowUp")
    repl.prompt.press("ArrowLeft")
    repl.prompt.press("ArrowUp")
    expect(repl.prompt).to_have_value("for q in range(2):\n    pass")


def test_a_sleep_is_stopped(repl: Repl) -> None:
    repl.run("import time")
    repl.start("time.sleep(100)")
    repl.page.wait_for_timeout(200)
    repl.page.keyboard.press("Control+c")
    expect(repl.entry().locator(".trace")).to_contain_text("KeyboardInterrupt", timeout=5_000)
    repl.wait_ready()


@pytest.mark.parametrize("width", [1280, 390])
def test_tables_keep_their_columns_and_messages_wrap(repl: Repl, width: int) -> None:
    before = repl.page.viewport_size
    assert before is not None
    repl.page.set_viewport_size({"width": width, "height": 800})
    try:
        repl.run("print('\\n'.join(f'{i} ' * 80 for i in range(3)))")
        table = repl.entry().locator(".out")
        wide, shown = table.evaluate("e => [e.scrollWidth, e.clientWidth]")
        assert wide > shown
        assert repl.page.evaluate("document.documentElement.scrollWidth") <= width
        expect(table).to_have_attribute("tabindex", "0")
        expect(table).to_have_css("background-image", re.compile("gradient"))  # shades where something is hidden
        for source, kind in (("raise ValueError('message ' * 30)", ".trace .said"), ("list(range(300))", ".value")):
            repl.run(source)
            shown = repl.entry().locator(".entry-body").bounding_box()
            message = repl.entry().locator(kind).last.bounding_box()
            assert shown is not None
            assert message is not None
            assert message["x"] + message["width"] <= shown["x"] + shown["width"]
    finally:
        repl.page.set_viewport_size(before)


def test_the_marks_of_a_traceback_stay_below_what_they_point_at(repl: Repl) -> None:
    before = repl.page.viewport_size
    assert before is not None
    repl.page.set_viewport_size({"width": 390, "height": 800})
    lines = """e => {
        const {lineHeight, paddingTop, paddingBottom} = getComputedStyle(e);
        return (e.clientHeight - parseFloat(paddingTop) - parseFloat(paddingBottom)) / parseFloat(lineHeight);
    }"""
    try:
        told = "import traceback\ntry:\n    len(1, undefined_name_that_is_long + another_undefined_name)\n"
        for source, kind in (("len(1, 1 + undefined_name_that_is_long)", "trace"), (told, "error")):
            text = repl.run(source + ("except NameError:\n    traceback.print_exc()" if kind == "error" else ""))
            block = repl.entry().locator(f".{kind}")
            assert "^" in text
            wide, shown = block.evaluate("e => [e.scrollWidth, e.clientWidth]")
            assert wide > shown
            expect(block).to_have_attribute("tabindex", "0")
            said = block.locator(".said").last.evaluate("e => new Set([...e.getClientRects()].map(({y}) => y)).size")
            assert said > 1  # what went wrong wraps
            assert round(block.evaluate(lines)) == len(text.splitlines()) + said - 1
    finally:
        repl.page.set_viewport_size(before)


def test_early_output_is_dropped_and_what_follows_stays_in_order(repl: Repl) -> None:
    repl.run("import sys\nfor i in range(9000):\n    print(f'line {i}\\n  quoted {i}', file=sys.stderr)")
    text = repl.entry().locator(".error").text_content() or ""
    head, *lines = text.rstrip("\n").split("\n")
    assert head == "(earlier output was dropped)"
    first = int(re.findall(r"\d+", lines[0])[0])
    assert lines[-1] == "  quoted 8999"
    assert len(text) < 200_000
    whole = [line for i in range(first, 9000) for line in (f"line {i}", f"  quoted {i}")]
    assert lines == whole[len(whole) - len(lines) :]


def test_the_transcript_stays_at_its_end_when_the_width_changes(repl: Repl) -> None:
    before = repl.page.viewport_size
    assert before is not None
    repl.run("print('words ' * 2000)")
    try:
        for width in (500, 390, 1280):
            repl.page.set_viewport_size({"width": width, "height": 800})
            repl.page.wait_for_timeout(100)
            left = repl.page.locator("#transcript").evaluate("e => e.scrollHeight - e.scrollTop - e.clientHeight")
            assert left < 2
    finally:
        repl.page.set_viewport_size(before)


def test_a_curve_of_one_point_is_seen(repl: Repl) -> None:
    inked = """() => {
        const canvas = document.querySelector('#plot canvas');
        const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        let count = 0;
        for (let i = 0; i < pixels.length; i += 4) {
            const [r, g, b, a] = pixels.subarray(i, i + 4);
            if (a > 200 && Math.max(r, g, b) - Math.min(r, g, b) > 60) count++;
        }
        return count;
    }"""
    repl.run("plot.clear()")
    repl.page.wait_for_timeout(100)
    assert repl.page.evaluate(inked) == 0
    repl.run("plot(3)")
    repl.page.wait_for_timeout(200)
    one = repl.page.evaluate(inked)
    assert one >= 9
    # A value between two gaps has no line either.
    repl.run("for v in ('nan', '3', 'nan', '3', 'nan'):\n    plot(float(v))")
    repl.page.wait_for_timeout(200)
    assert repl.page.evaluate(inked) >= 2 * one
    repl.run("plot.clear()")


def test_plot_draws_several_curves_and_clear_removes_them(repl: Repl) -> None:
    repl.run("for i in range(500):\n    plot(1 / (i + 1)); plot(0.5, 'other')")
    expect(repl.page.locator("#legend [data-part=name]")).to_have_text(["loss", "other"])
    expect(repl.page.locator("#legend li").first).to_have_attribute("data-points", "500")
    expect(repl.page.locator("#legend [data-part=value]").first).to_have_text("0.002000")
    assert "plot() takes a number" in repl.run("plot('much')")
    # A run of the program begins new curves; the prompt goes on with them.
    for _ in range(2):
        repl.program("for i in range(3):\n    plot(i)")
        expect(repl.page.locator("#legend [data-part=name]")).to_have_text(["loss"])
        expect(repl.page.locator("#legend li")).to_have_attribute("data-points", "3")
        repl.wait_ready()
        repl.run("plot(7, 'other')\nplot(7)")
        expect(repl.page.locator("#legend li").first).to_have_attribute("data-points", "4")
    # Those of the run before are marked so, where this one fails before it draws; nothing moves.
    label, before = repl.page.locator("#plot"), places(repl.page)
    expect(label).to_have_attribute("aria-label", re.compile("^Curves: loss is"))
    repl.program("undefined_name")
    expect(repl.page.locator("#legend [data-part=step]")).to_have_text(["run before"] * 2)
    expect(label).to_have_attribute("aria-label", re.compile("^Curves of the run before: loss is"))
    assert places(repl.page) == before
    repl.wait_ready()
    repl.run("plot(1)")
    expect(repl.page.locator("#legend [data-part=step]")).to_have_text(["step 1"])
    # `fit` draws its losses; with an `on_step` it leaves that to it.
    repl.program(FITS)
    expect(repl.page.locator("#legend [data-part=name]")).to_have_text(["loss", "mine"], timeout=TRAIN)
    repl.wait_ready(TRAIN)
    assert [repl.points("loss"), repl.points("mine")] == [12, 3]
    repl.run("plot.clear()")
    expect(repl.page.locator("#legend li")).to_have_count(0)
