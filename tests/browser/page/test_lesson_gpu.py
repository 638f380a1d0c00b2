"""Lesson 6: an expression at each stage of the compiler, with fusion on and off, and the time of each."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from lesson_driver import PHONE, WIDE, LessonPage, answer, lose_the_gpu, open_lesson
from page_driver import SUB_PATH, TRAIN, Repl
from tensorgrad.testing.server import StaticServer

pytestmark = pytest.mark.page

UNITS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


@pytest.fixture
def url(server: StaticServer) -> str:
    return f"{server.url}{SUB_PATH}lessons/gpu.html"


def marked(page: Page, stage: str) -> Locator:
    """The lines of a stage that are marked."""
    return page.locator(f"#{stage} [aria-selected=true]")


def seconds(lesson: LessonPage, name: str) -> float:
    number, unit = lesson.text(name).split()
    return float(number) * UNITS[unit]


def measure(lesson: LessonPage, rows: int) -> None:
    """Choose a size and measure at it."""
    page, power = lesson.page, rows.bit_length() - 1
    page.locator("#size").fill(str(power))
    expect(page.locator("#graph")).to_contain_text(f"f32[{rows}, 64]", timeout=TRAIN)
    page.locator("#play").press("Enter")
    expect(page.locator("#fused-clock")).not_to_have_text("–", timeout=TRAIN)
    expect(page.locator("#play")).to_be_enabled(timeout=TRAIN)


def test_fusion_is_faster_and_every_stage_is_linked(open_page: Callable[..., Repl], url: str) -> None:
    lesson = open_lesson(open_page, url, viewport=WIDE)
    page = lesson.page
    expect(page.locator("#note")).to_contain_text("recorded")
    expect(page.locator("#fused-kernels")).to_have_text("1")
    expect(page.locator("#apart-kernels")).to_have_text("4")
    lesson.wait_ready()
    # The layer is one kernel; a line leads to its operations, they to the kernel, and that to the WGSL.
    assert lesson.text("fused-stored") == "1 of 4"
    line = page.locator("#source").get_by_text("tg.relu(x @ w + b)")
    line.click()
    assert "matmul(%0, %1)" in marked(page, "graph").first.inner_text()
    expect(marked(page, "kernels")).to_have_count(1)
    expect(page.locator("#link")).to_contain_text("became 4 operations, in kernel 0.")
    page.locator("#kernels").press("ArrowDown")
    expect(page.locator("#link")).to_contain_text("Kernel 0 computes 4 operations, of line 6")
    page.locator("#graph").get_by_text("state w").hover()
    expect(marked(page, "wgsl").first).to_contain_text("@binding(1)")
    page.mouse.move(0, 0)
    expect(marked(page, "source")).to_contain_text(["tg.relu"])
    # Without fusion each operation has a kernel of its own.
    page.locator("#fusion").press("Space")
    expect(page.locator("#kernels .stage-line")).to_have_count(4)
    page.locator("#kernels").press("End")
    expect(marked(page, "graph")).to_have_count(3)  # where, and the 0 that it takes, broadcast
    # Layer norm, where there are numbers enough.
    page.select_option("#work", "norm.py")
    expect(page.locator("#kernels .stage-line")).to_have_count(11, timeout=TRAIN)
    measure(lesson, 8192)
    assert seconds(lesson, "fused-clock") * 1.3 < seconds(lesson, "apart-clock")
    expect(page.locator("#note")).to_contain_text(re.compile(r"Fused, a run is [1-9]\d*\.\d\d times as fast"))
    assert seconds(lesson, "fused-gpu") * 1.3 < seconds(lesson, "apart-gpu")
    expect(page.locator("#kernels .stage-line").first).to_contain_text(re.compile(r"row sum: [\d.]+ MB, [\d.]+ [µm]s"))
    label = page.locator("#bars [role=img]").nth(2).get_attribute("aria-label")
    assert label is not None
    assert label.startswith("one by one: 11 kernels, ")
    # An expression of one's own.
    source = 'def arrays(n):\n    return {"x": numbers(n, 64)}\n\n\ndef work(x):\n    return tg.sin(x) * 2 + x'
    lesson.run("relu.py", source)
    expect(page.locator("#fused-kernels")).to_have_text("1")
    expect(page.locator("#apart-kernels")).to_have_text("3")
    expect(page.locator("#fused-clock")).to_have_text("–")
    lesson.keep("lesson-gpu")
    # The GPU is lost: what is measured finds out, the cells run again, for the size that was chosen.
    lose_the_gpu(lesson, "try_two.py")
    with lesson.notes() as told:
        page.click("#play")
        expect(told).to_contain_text("took the GPU away")
    expect(page.locator("#play")).to_be_enabled(timeout=TRAIN)
    expect(page.locator("#graph")).to_contain_text("f32[8192, 64]", timeout=TRAIN)
    page.click("#play")
    expect(page.locator("#note")).to_contain_text("Fused, a run is", timeout=TRAIN)
    # In a cell of the reader's, too.
    lose_the_gpu(lesson, "try_two.py")
    jitted = "import numpy as np\nprint(await tg.jit(lambda x: x + 1)(np.float32([41])))"
    assert "42" in lesson.run("try_one.py", jitted)
    lesson.run("relu.py", source.replace("tg.sin(x)", "tg.sin(y)"))
    expect(page.locator("#note")).to_contain_text("raised an error")
    expect(lesson.cell("relu.py").locator(".cell-output")).to_contain_text("NameError: name 'y' is not defined")
    assert lesson.problems == []


def test_on_a_phone_workgroups_and_exercises(open_page: Callable[..., Repl], url: str) -> None:
    lesson = open_lesson(open_page, url, viewport=PHONE, color_scheme="dark", reduced_motion="reduce")
    page = lesson.page
    expect(page.locator("#fused-kernels")).not_to_have_text("–")
    before = lesson.places()
    lesson.wait_ready()
    measure(lesson, 16)
    page.evaluate("scrollTo(0, 0)")
    assert lesson.places() == before
    # A map takes one step a workgroup; a row is added up by its lanes, then among them.
    says, forward = page.locator("#group-says"), page.locator("#group-next")
    expect(says).to_have_text("Step 1 of 8. Workgroup 0: lane i computes element 0 × 8 + i.")
    forward.press("Enter")
    expect(says).to_contain_text("Workgroup 1")
    page.select_option("#group-kind", "row")
    for _ in range(3):
        forward.press("Enter")
    expect(says).to_contain_text("Step 4 of 20. All wait for each other (a barrier); lane i, below 2")
    expect(page.locator("#group .group-add")).to_have_count(2)
    page.select_option("#group-size", "16")
    expect(says).to_contain_text("of 20. Workgroup 0: lane i adds column 0 + i", timeout=TRAIN)
    expect(page.locator("#group .group-text.now")).to_have_count(16)
    assert "in 4 kernels: map exp, map const, matmul" in lesson.check("try_one.py")
    assert lesson.check("try_one.py", answer("gpu", "one")).startswith("✓ Right: one kernel, row sum+div")
    assert "`fused_bytes` is 0" in lesson.check("try_bytes.py")
    assert "counts numbers" in lesson.check("try_bytes.py", "fused_bytes = 768000\napart_bytes = 0")
    assert lesson.check("try_bytes.py", answer("gpu", "bytes")).startswith("✓ Right")
    assert "It compiles to 1: map add" in lesson.check("try_two.py")
    assert lesson.check("try_two.py", answer("gpu", "two")).startswith("✓ Right: row sum, then map sub")
    lesson.keep("lesson-gpu")
    assert lesson.problems == []
