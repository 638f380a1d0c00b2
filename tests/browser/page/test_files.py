"""Files that the reader gives to Python, and those that Python gives back."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from playwright.sync_api import FilePayload, expect

from page_driver import PHONE, START, Repl, looked_at

pytestmark = pytest.mark.page


def written(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, a=array)
    return file.getvalue()


def test_chosen_files_are_in_the_working_folder(repl: Repl) -> None:
    image = io.BytesIO()
    matplotlib.image.imsave(
        image, np.arange(12, dtype=np.uint8).reshape(3, 4), format="png", cmap="gray", vmin=0, vmax=255
    )
    files: list[FilePayload] = [
        {"name": "points.csv", "mimeType": "text/csv", "buffer": b"1,2\n3,4\n"},
        {"name": "named.csv", "mimeType": "text/csv", "buffer": b"x,y\n5,6\n"},
        {"name": "arrays.npz", "mimeType": "application/zip", "buffer": written(np.arange(5))},
        {"name": "ramp.png", "mimeType": "image/png", "buffer": image.getvalue()},
    ]
    repl.page.locator("#file-input").set_input_files(files)
    notes = repl.page.locator(".entry-note")
    expect(notes.last).to_have_text(
        f'ramp.png, {len(image.getvalue())} bytes, is in the working folder: await read_image("ramp.png")'
    )
    repl.run("import numpy as np, tensorgrad as tg")
    # Each as its note says.
    assert repl.run('np.genfromtxt("points.csv", delimiter=",").tolist()') == "[[1.0, 2.0], [3.0, 4.0]]"
    expect(notes.filter(has_text="points.csv")).to_contain_text('np.genfromtxt("points.csv", delimiter=",")')
    expect(notes.filter(has_text="named.csv")).to_contain_text('np.genfromtxt("named.csv", delimiter=",", names=True)')
    assert repl.run('np.genfromtxt("named.csv", delimiter=",", names=True)["y"].tolist()') == "6.0"
    assert repl.run('np.load("arrays.npz")["a"].tolist()') == "[0, 1, 2, 3, 4]"
    assert repl.run('(await read_image("ramp.png"))[:, :, 0].ravel().tolist()') == str(list(range(12)))
    assert "'points.csv' is no image" in repl.run('await read_image("points.csv")')


def drop(repl: Repl, name: str, content: str, times: int = 1) -> None:
    """Drop a file on the page."""
    repl.page.evaluate(
        """([name, content, times]) => {
            const data = new DataTransfer();
            data.items.add(new File(Array(times).fill(content), name));
            for (const type of ['dragover', 'drop']) {
                const event = new DragEvent(type, {dataTransfer: data, bubbles: true, cancelable: true});
                if (document.body.dispatchEvent(event)) throw new Error(`the browser would take the ${type}`);
            }
        }""",
        [name, content, times],
    )
    expect(repl.page.locator(".entry-note").filter(has_text=f"{name}, ")).to_have_count(1)


def test_dropped_files_are_taken(repl: Repl) -> None:
    drop(repl, "drop.txt", "dropped")
    expect(repl.page.locator(".entry-note").last).to_contain_text('open("drop.txt").read()')
    assert repl.run('open("drop.txt").read()') == "'dropped'"


def test_a_download_is_a_file(repl: Repl) -> None:
    repl.run("import numpy as np")
    with repl.page.expect_download() as waiting:
        repl.run("download('weights.npz', {'w': np.arange(4)})")
    assert waiting.value.suggested_filename == "weights.npz"
    np.testing.assert_array_equal(np.load(Path(waiting.value.path()))["w"], np.arange(4))
    expect(repl.page.locator(".entry-note").last).to_contain_text("weights.npz")


def test_files_are_there_at_the_next_visit_until_they_are_removed(open_page: Callable[..., Repl]) -> None:
    repl = open_page()
    page = repl.page
    for name, content, times in (("one.txt", "first", 1), ("two.txt", "second", 1), ("large.bin", "1234", 10_000_000)):
        drop(repl, name, content, times)
    drop(repl, "too.bin", "1234", 10_000_000)
    notes = page.locator(".entry-note")
    expect(notes.last).to_contain_text("too.bin is not kept for your next visit: only 64 MB are, all files together.")
    opener, panel = page.get_by_role("button", name="Files", exact=True), page.get_by_role("dialog", name="Files")
    kept = panel.get_by_role("listitem")
    opener.press("Enter")
    expect(page.locator("#add-files")).to_be_focused()
    expect(kept).to_have_text(["large.bin40.0 MBRemove", "one.txt5 bytesRemove", "two.txt6 bytesRemove"])
    expect(panel).to_contain_text("40.0 MB of 64 MB")
    looked_at(page, "files", [PHONE], ["dark"])
    panel.get_by_role("button", name="Remove large.bin").click()
    panel.get_by_role("button", name="Remove two.txt").press("Enter")
    expect(kept).to_have_text(["one.txt5 bytesRemove"])
    expect(panel.get_by_role("button", name="Remove one.txt")).to_be_focused()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(opener).to_be_focused()
    # The first input of the next visit finds it, though it was entered before Python was there; a restart too.
    page.reload()
    repl.prompt.fill("import os; print(sorted(os.listdir()), open('one.txt').read())")
    repl.prompt.press("Control+Enter")
    expect(page.locator(".entry .out")).to_have_text("['one.txt'] first\n", timeout=START)
    expect(notes.filter(has_text="as you left them")).to_have_text("In the working folder, as you left them: one.txt.")
    page.click("#restart")
    repl.wait_ready(START)
    assert repl.run("import os; os.listdir()") == "['one.txt']"
    assert repl.problems == []
