"""The inspector: what a compiled program shows of itself beside the console."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from page_driver import TRAIN, Repl

pytestmark = pytest.mark.page

PROGRAM = """import numpy as np
import tensorgrad as tg
from tensorgrad import nn, optim

class Looked(nn.Module):
    def __init__(self):
        self.inner, self.outer = nn.Linear(3, 4), nn.Linear(4, 1)

    def forward(self, x):
        return self.outer(tg.tanh(self.inner(x)))

loss_fn = lambda model, x, y: tg.mse_loss(model(x), y)
specs = {"x": tg.f32[8, 3], "y": tg.f32[8, 1]}
looked = await tg.compile(Looked(), loss_fn, optim.SGD(0.1), specs, keep_grads=True)
ones = {"x": np.ones((8, 3)), "y": np.ones((8, 1))}
print((await looked.step(**ones)).loss > 0)
"""


def opened(repl: Repl, tab: str) -> Locator:
    """The inspector at one of its tabs, with the program in it."""
    repl.program(PROGRAM)
    repl.wait_ready(TRAIN)
    expect(repl.entry().locator(".out")).to_have_text("True\n")
    repl.page.keyboard.press("Alt+i")
    panel = repl.page.locator("#inspector")
    expect(panel.locator("select option").first).to_contain_text("training step of Looked", timeout=TRAIN)
    panel.get_by_role("tab", name=tab).click()
    return panel


def test_the_kernels_are_read_timed_and_lead_to_their_lines(repl: Repl) -> None:
    page = repl.page
    panel = opened(repl, "Kernels")
    rows = panel.locator(".kernel")
    expect(rows.first).to_be_visible(timeout=TRAIN)
    assert str(rows.count()) == repl.run("len(looked.kernels)")
    panel.get_by_role("button", name="Measure").click()
    expect(panel.locator(".kernel .time .bar")).to_have_count(rows.count(), timeout=TRAIN)
    expect(rows.first.locator(".time")).to_have_text(re.compile(r"^[\d.]+ (ns|µs|ms|s)$"))
    assert repl.run("looked.state.steps") == "2"  # a measured step counts
    first = rows.first.locator(".kernel-name")
    first.focus()
    first.press("Enter")
    detail = rows.first.locator(".kernel-detail")
    expect(detail).to_contain_text("computes")
    assert repl.run("print(looked.kernels[0].formula)") == detail.locator("pre").first.inner_text()
    detail.get_by_role("button", name="WGSL").click()
    expect(detail.locator("pre").last).to_contain_text("fn main")
    detail.locator(".line-link").first.click()
    assert page.evaluate("String(getSelection()).trim()") in map(str.strip, PROGRAM.splitlines())
    first.press("Escape")
    expect(panel).to_be_hidden()
    expect(page.locator("#inspect")).to_be_focused()
