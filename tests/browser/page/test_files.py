"""Files that the reader gives to Python, and those that Python gives back."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from playwright.sync_api import FilePayload, expect

from page_driver import Repl

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
    repl.run("import numpy as np")
    # Each as its note says.
    assert repl.run('np.loadtxt("points.csv", delimiter=",").tolist()') == "[[1.0, 2.0], [3.0, 4.0]]"
    expect(notes.filter(has_text="points.csv")).to_contain_text('np.loadtxt("points.csv", delimiter=",")')
    expect(notes.filter(has_text="named.csv")).to_contain_text('np.loadtxt("named.csv", delimiter=",", skiprows=1)')
    assert repl.run('np.loadtxt("named.csv", delimiter=",", skiprows=1).tolist()') == "[5.0, 6.0]"
    assert repl.run('np.load("arrays.npz")["a"].tolist()') == "[0, 1, 2, 3, 4]"
    assert repl.run('(await read_image("ramp.png"))[:, :, 0].ravel().tolist()') == str(list(range(12)))
    assert "'points.csv' is no image" in repl.run('await read_image("points.csv")')


def test_dropped_files_are_taken(repl: Repl) -> None:
    repl.page.evaluate(
        """() => {
            const data = new DataTransfer();
            data.items.add(new File(['dropped'], 'drop.txt'));
            for (const type of ['dragover', 'drop']) {
                const event = new DragEvent(type, {dataTransfer: data, bubbles: true, cancelable: true});
                if (document.body.dispatchEvent(event)) throw new Error(`the browser would take the ${type}`);
            }
        }"""
    )
    expect(repl.page.locator(".entry-note").last).to_contain_text('open("drop.txt").read()')
    assert repl.run('open("drop.txt").read()') == "'dropped'"


def test_a_download_is_a_file(repl: Repl) -> None:
    repl.run("import numpy as np")
    with repl.page.expect_download() as waiting:
        repl.run("download('weights.npz', {'w': np.arange(4)})")
    assert waiting.value.suggested_filename == "weights.npz"
    np.testing.assert_array_equal(np.load(Path(waiting.value.path()))["w"], np.arange(4))
    expect(repl.page.locator(".entry-note").last).to_contain_text("weights.npz")
