"""What `display` and `download` in the page make of a value, as far as it runs without Pyodide."""

from __future__ import annotations

import base64
import doctest
import io
import json
from pathlib import Path
from typing import Any

import matplotlib.figure
import matplotlib.image
import numpy as np
import pytest

import tensorgrad as tg


def test_its_examples_hold() -> None:
    from tensorgrad_page import displaying, files, pictures

    results = [doctest.testmod(module) for module in (displaying, files, pictures)]
    assert [result.failed for result in results] == [0, 0, 0]
    assert min(result.attempted for result in results) > 0


def drawn(array: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], str]:
    """The picture of an array, as another program decodes it, and the words below it."""
    from tensorgrad_page.pictures import picture

    data, width, height, words = picture(array)
    pixels = matplotlib.image.imread(io.BytesIO(data), format="png")
    assert pixels.shape[:2] == (height, width)
    return np.rint(pixels * 255).astype(int), words


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize(("height", "width"), [(1, 1), (5, 7), (300, 2)])
def test_an_encoded_picture_decodes_to_the_same_bytes(height: int, width: int, channels: int) -> None:
    from tensorgrad_page.pictures import encode

    pixels = np.random.default_rng(0).integers(0, 256, (height, width, channels), dtype=np.uint8)
    decoded = np.rint(matplotlib.image.imread(io.BytesIO(encode(pixels)), format="png") * 255).astype(int)
    # matplotlib widens grey with opacity to RGBA.
    expected = pixels[:, :, [0, 0, 0, 1]] if channels == 2 else pixels.squeeze(2) if channels == 1 else pixels
    np.testing.assert_array_equal(decoded, expected)


def test_numbers_become_grey_levels() -> None:
    ramp = np.arange(16).reshape(4, 4)
    np.testing.assert_array_equal(drawn(ramp.astype(np.uint8))[0], ramp)
    np.testing.assert_array_equal(drawn(ramp / 30)[0], np.rint(ramp / 30 * 255))
    np.testing.assert_array_equal(drawn(ramp - 8)[0], ramp * 17)
    np.testing.assert_array_equal(drawn(ramp > 7)[0], (ramp > 7) * 255)
    np.testing.assert_array_equal(drawn(np.full((4, 4), 7.0))[0], np.zeros((4, 4)))
    assert drawn((ramp - 8).astype(np.float32))[1] == "4 × 4 float32, -8 to 7"


def test_what_is_not_finite_is_transparent() -> None:
    array = np.linspace(0, 1, 16).reshape(4, 4)
    array[0, 1], array[2, 2] = np.nan, np.inf
    pixels, words = drawn(array)
    assert words == "4 × 4 float64, 0 to 1, transparent where not finite"
    np.testing.assert_array_equal(pixels[:, :, 3], np.isfinite(array) * 255)
    np.testing.assert_array_equal(pixels[3, :, 0], np.rint(array[3] * 255))
    assert drawn(np.full((4, 4), np.nan))[0][:, :, 3].max() == 0


def test_colours_and_several_pictures() -> None:
    colours = np.random.default_rng(0).integers(0, 256, (5, 6, 3), dtype=np.uint8)
    np.testing.assert_array_equal(drawn(colours)[0], colours)
    several = np.random.default_rng(0).random((120, 5, 5))
    pixels, words = drawn(several)
    assert words.startswith("120 × 5 × 5 float64")
    assert words.endswith(", the first 100")
    np.testing.assert_array_equal(pixels[:5, :5, 0], np.rint(several[0] * 255))
    np.testing.assert_array_equal(pixels[:5, 6:11, 0], np.rint(several[1] * 255))
    assert pixels[:, 5, 3].max() == 0  # the line between two


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(8),
        np.zeros((2, 3)),
        np.zeros((0, 8)),
        np.zeros((2, 2, 8, 8)),
        np.zeros((8, 8), complex),
        np.eye(4, dtype=str),
    ],
)
def test_other_arrays_are_shown_as_numbers(array: np.ndarray[Any, Any]) -> None:
    from tensorgrad_page.displaying import form

    assert form(array) == {"kind": "text", "data": repr(array), "alt": "ndarray"}


class Rich:
    """Gives what it was told to."""

    def __init__(self, html: Any = None, svg: Any = None, png: Any = None) -> None:
        self.given = html, svg, png

    def _repr_html_(self) -> Any:
        return self.given[0]

    def _repr_svg_(self) -> Any:
        return self.given[1]

    def _repr_png_(self) -> Any:
        return self.given[2]


@pytest.mark.parametrize(
    ("value", "kind", "data"),
    [
        (Rich("<b>x</b>", "<svg/>", b"png"), "html", "<b>x</b>"),
        (Rich(None, "<svg>é</svg>", b"png"), "svg", "<svg>é</svg>"),
        (Rich(png=b"\x89"), "png", b"\x89"),
        (Rich(png=(b"\x89", {"width": 3})), "png", b"\x89"),
    ],
)
def test_the_richest_form_is_taken(value: Rich, kind: str, data: str | bytes) -> None:
    from tensorgrad_page.displaying import form

    message = form(value)
    assert (message["kind"], message["alt"]) == (kind, "Rich")
    found = message["data"] if kind == "html" else base64.b64decode(message["data"])
    assert found == (data.encode() if kind == "svg" and isinstance(data, str) else data)


def test_without_a_rich_form_the_repr_is_shown() -> None:
    from tensorgrad_page.displaying import form

    assert form(Rich())["kind"] == "text"
    # A class has the methods of its instances, and is none of them.
    assert form(Rich) == {"kind": "text", "data": repr(Rich), "alt": "type"}


@pytest.mark.parametrize(
    ("array", "most"),
    [(np.ones((256, 2)), 21), (np.ones((20, 2)), 20), (np.arange(999.0), 3), (np.ones((60, 2, 2)), 21)],
)
def test_of_a_long_array_both_ends_are_shown_and_the_shape(array: np.ndarray[Any, Any], most: int) -> None:
    from tensorgrad_page.displaying import form

    text = form(array)["data"]
    assert len(text.splitlines()) <= most
    assert ("..." in text) == (f"shape={array.shape}" in text) == (len(array) > 20)


def test_a_figure_is_shown_as_the_image_that_it_saves() -> None:
    from tensorgrad_page.displaying import form

    figure = matplotlib.figure.Figure(figsize=(2, 1))
    figure.add_subplot().plot([1, 2])
    assert base64.b64decode(form(figure)["data"]).startswith(b"\x89PNG")


def test_a_graph_is_html() -> None:
    from tensorgrad_page.displaying import form

    message = form(tg.trace(lambda: tg.exp(tg.tensor_input("x", (2, 3)))))
    assert message["kind"] == "html"
    assert "exp" in message["data"]


def test_too_much_is_refused_in_words() -> None:
    from tensorgrad_page.displaying import Display

    sent: list[str] = []
    display = Display(sent.append)
    display(1, 2)
    assert [json.loads(text)["data"] for text in sent] == ["1", "2"]
    with pytest.raises(ValueError, match=r"was given 21 MB to show"):
        display(Rich("x" * 21_000_000))


def test_a_download_is_what_its_name_says(tmp_path: Path) -> None:
    from tensorgrad_page.files import contents

    array = np.arange(32, dtype=np.float32).reshape(4, 8) / 7
    named = {"a": array, "b": np.arange(3)}
    assert contents("x.bin", b"\x00") == contents("x.npy", bytearray(1)) == b"\x00"
    assert contents("x.txt", "é") == "é".encode()
    assert json.loads(contents("x.json", {"a": [1, None]})) == {"a": [1, None]}
    np.testing.assert_array_equal(np.load(io.BytesIO(contents("x.npy", array))), array)
    np.testing.assert_array_equal(
        np.loadtxt(io.BytesIO(contents("x.csv", array)), delimiter=",", dtype=np.float32), array
    )
    loads: list[Any] = [np.load(io.BytesIO(contents("x.npz", named)))]
    loads.append(tg.safetensors.load(contents("x.safetensors", named)))
    state = {"model": named, "optimizer": {}, "calls": 3, "seed": 5}
    again = tg.load(contents("x.safetensors", state))
    assert again["calls"] == 3
    loads.append(again["model"])
    for loaded in loads:
        for key, value in named.items():
            np.testing.assert_array_equal(loaded[key], value)
    decoded = matplotlib.image.imread(io.BytesIO(contents("x.PNG", np.arange(64, dtype=np.uint8).reshape(8, 8))))
    np.testing.assert_array_equal(np.rint(decoded * 255), np.arange(64).reshape(8, 8))


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("x.npz", np.zeros(3), r"a \.npz file holds arrays by name: give a dict, not ndarray"),
        ("x.safetensors", [1], r"a \.safetensors file holds arrays by name"),
        ("x.png", np.zeros(3), r"rows and columns of numbers, not \(3,\)"),
        ("x.what", {}, r"cannot make 'x\.what' of dict: .*\.safetensors"),
    ],
)
def test_what_cannot_be_downloaded_says_why(name: str, data: Any, why: str) -> None:
    from tensorgrad_page.files import contents

    with pytest.raises(TypeError, match=why):
        contents(name, data)


def test_a_file_of_the_working_folder_is_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorgrad_page.files import Download

    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x.bin").write_bytes(b"12")
    sent: list[tuple[str, bytes]] = []
    download = Download(lambda name, data: sent.append((name, data)))
    download("folder/x.bin")
    assert sent == [("x.bin", b"12")]
    with pytest.raises(FileNotFoundError):
        download("other.bin")
