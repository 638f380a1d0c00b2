"""The inspector: what a compiled program shows of itself beside the console."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from page_driver import TRAIN, WIDE, Repl, looked_at

pytestmark = pytest.mark.page

PROGRAM = """import numpy as np
import tensorgrad as tg
from tensorgrad import nn, optim

class Looked(nn.Module):
    def __init__(self):
        self.inner, self.outer = nn.Linear(3, 4), nn.Linear(4, 1)

    def forward(self, x):
        hidden = tg.tanh(self.inner(x))
        return self.outer(hidden)

loss_fn = lambda model, x, y: tg.mse_loss(model(x), y)
specs = {"x": tg.f32[8, 3], "y": tg.f32[8, 1]}
looked = await tg.compile(Looked(), loss_fn, optim.SGD(0.1), specs, keep_grads=True)
ones = {"x": np.ones((8, 3)), "y": np.ones((8, 1))}
seen = await looked.attach(lambda model, x: model(x), {"x": tg.f32[8, 3]})
print((await looked.step(**ones)).loss > 0)
"""


def opened(repl: Repl, tab: str) -> Locator:
    """The inspector at one of its tabs, with the training step, which is not what was compiled last."""
    repl.program(PROGRAM)
    repl.wait_ready(TRAIN)
    expect(repl.entry().locator(".out")).to_have_text("True\n")
    repl.page.keyboard.press("Alt+i")
    panel = repl.page.locator("#inspector")
    expect(panel.locator("option:checked")).to_contain_text("training step of Looked", timeout=TRAIN)
    panel.get_by_role("tab", name=tab).click()
    return panel


def test_the_kernels_are_read_timed_and_lead_to_their_lines(repl: Repl) -> None:
    page = repl.page
    panel = opened(repl, "Kernels")
    rows = panel.locator(".kernel")
    expect(rows.first).to_be_visible(timeout=TRAIN)
    assert str(rows.count()) == repl.run("len(looked.kernels)")
    measure = panel.get_by_role("button", name="Measure")
    measure.press("Enter")
    expect(panel.locator(".kernel .time .bar")).to_have_count(rows.count(), timeout=TRAIN)
    expect(measure).to_be_focused()
    expect(rows.first.locator(".time")).to_have_text(re.compile(r"^[\d.]+ (ns|µs|ms|s)(slowest)?$"))
    said = panel.locator(".inspector-lead [role=status]").inner_text()
    steps = re.search(r"the median of (\d) steps? after [12] to warm up; all (\d) count as training", said)
    assert steps is not None
    assert repl.run("looked.state.steps") == str(1 + int(steps[2]))  # measured steps count
    # By time, and in their order again; the slowest is told in words too.
    names, by_order, by_time = rows.locator(".kernel-name"), *panel.locator("[role=columnheader] button").all()
    order = names.all_inner_texts()
    sorting = panel.get_by_role("columnheader")
    expect(sorting.first).to_have_attribute("aria-sort", "ascending")
    by_time.press("Enter")
    expect(by_time).to_be_focused()
    expect(sorting.filter(has_text="Time")).to_have_attribute("aria-sort", "descending")
    assert sorted(names.all_inner_texts()) == sorted(order)
    expect(rows.first.locator(".kernel-slowest")).to_have_text("slowest")
    expect(rows.locator(".kernel-slowest")).to_have_count(1)
    assert f"The slowest is {rows.first.locator('.kernel-index').inner_text()} " in said
    looked_at(page, "inspector-sorted", [WIDE], ["dark"])
    by_order.press("Enter")
    expect(names).to_have_text(order)
    first = rows.first.locator(".kernel-name")
    first.focus()
    expect(first).to_have_css("outline-offset", "-2px")  # its row clips what is outside
    first.press("Enter")
    detail = rows.first.locator(".kernel-detail")
    expect(detail).to_contain_text("computes")
    assert repl.run("print(looked.kernels[0].formula)") == detail.locator("pre").first.inner_text()
    detail.get_by_role("button", name="WGSL").click()
    expect(detail.locator("pre").last).to_contain_text("fn main")
    looked_at(page, "inspector-kernels")
    detail.locator(".line-link").first.click()
    assert page.evaluate("String(getSelection()).trim()") in map(str.strip, PROGRAM.splitlines())
    first.press("Escape")
    expect(panel).to_be_hidden()
    expect(page.locator("#inspect")).to_be_focused()


def test_memory_parameters_and_graph_are_seen_with_the_keyboard_alone(repl: Repl) -> None:
    page = repl.page
    panel = opened(repl, "Memory")
    expect(panel.locator(".memory-row").first).to_be_visible()
    assert panel.locator(".life").count() == int(repl.run("sum(len(b.values) for b in looked.memory.pooled)"))
    looked_at(page, "inspector-memory")
    panel.get_by_role("tab", name="Memory").press("ArrowRight")
    expect(panel.get_by_role("tab", name="Parameters")).to_be_focused()
    weight = panel.locator(".parameter[data-name='inner.weight']")
    expect(weight.locator(".histogram")).to_have_count(2)  # of the values and of the gradient
    expect(weight.locator("canvas").first).to_have_attribute("width", "3")
    looked_at(page, "inspector-parameters")
    # It follows the training while that runs.
    state, before = panel.locator(".inspector-lead:visible"), weight.locator(".parameter-words").first.inner_text()
    expect(state).to_contain_text("After 1 step.")
    repl.start(
        "import asyncio\nfor n in range(400):\n    made = await looked.step(**ones)\n    await asyncio.sleep(0.02)"
    )
    expect(state).not_to_contain_text("After 1 step.", timeout=TRAIN)
    expect(page.locator("#stop")).to_be_enabled()
    page.click("#stop")
    repl.wait_ready()
    expect(weight.locator(".parameter-words").first).not_to_have_text(before)
    panel.get_by_role("tab", name="Parameters").press("ArrowRight")
    line = panel.locator(".graph-line", has_text="return self.outer").first
    line.locator(".graph-open").press("Enter")
    node = line.locator("li", has_text="matmul").first
    expect(node).to_be_visible()
    looked_at(page, "inspector-graph")
    node.locator("button").first.press("Enter")
    assert page.evaluate("String(getSelection()).trim()") == "return self.outer(hidden)"
    # An operand leads to its node, on whichever line that is.
    operand = node.locator("button").nth(1)
    number = operand.inner_text().removeprefix("%")
    operand.press("Enter")
    expect(panel.locator(f"[data-node='{number}']")).to_be_focused()
    # Functions and parts are folded too; an operand that is folded away is unfolded.
    for name in ("Looked.forward: ", "Forward: "):
        fold = panel.get_by_role("button", name=name).first
        fold.press("Enter")
        expect(line).to_be_hidden()
        fold.press("Enter")
        expect(line).to_be_visible()
    panel.get_by_role("button", name="Forward: ").first.press("Enter")
    backward = panel.locator(".graph-line", has_text="return self.outer").last
    backward.locator(".graph-open").press("Enter")
    backward.locator("li", has_text="matmul").first.locator("button").nth(1).press("Enter")
    expect(panel.locator("li:focus")).to_be_visible()
    page.keyboard.press("Alt+i")
    expect(panel).to_be_hidden()
