"""The page's Python half, as far as it runs without Pyodide."""

from __future__ import annotations

import doctest
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HALF = Path(__file__).parents[2] / "web" / "python"


@pytest.fixture(autouse=True)
def importable() -> Iterator[None]:
    sys.path.insert(0, str(HALF))
    yield
    sys.path.remove(str(HALF))


def modules() -> list[ModuleType]:
    from tensorgrad_page import completing, frames, plotting

    return [completing, frames, plotting]


def test_its_examples_hold() -> None:
    results = [doctest.testmod(module) for module in modules()]
    assert sum(result.attempted for result in results) >= 5
    assert sum(result.failed for result in results) == 0


def points(sent: list[str]) -> dict[str, list[Any]]:
    series: dict[str, list[Any]] = {}
    for message in map(json.loads, sent):
        for name, some in message.get("series", {}).items():
            series.setdefault(name, []).extend(some)
    return series


def test_plot_gathers_points_and_sends_few_messages() -> None:
    from tensorgrad_page.plotting import Plot

    sent: list[str] = []
    plot = Plot(sent.append)
    for i in range(5_000):
        plot(i / 2)
    plot.flush()
    assert points(sent)["loss"] == [[i + 1, i / 2] for i in range(5_000)]
    assert len(sent) < 100


def test_plot_numbers_steps_by_curve_and_leaves_gaps() -> None:
    from tensorgrad_page.plotting import Plot

    sent: list[str] = []
    plot = Plot(sent.append)
    plot(1.0)
    plot(float("nan"))
    plot(3, "other", step=10)
    plot(4, "other")
    plot.clear("loss")
    plot(5.0)
    plot.flush()
    assert points(sent) == {"loss": [[1, 1.0], [2, None], [1, 5.0]], "other": [[10, 3.0], [11, 4.0]]}
    assert {"kind": "clear", "name": "loss"} in map(json.loads, sent)


def test_plot_says_what_it_takes() -> None:
    from tensorgrad_page.plotting import Plot

    with pytest.raises(TypeError, match=r"plot\(\) takes a number, such as result\.loss, not str"):
        Plot(lambda text: None)("much")  # type: ignore[arg-type]


USER = """
def outer():
    return library(inner)

def inner():
    raise ValueError("the user's own")
"""


def as_module(source: str, name: str, **names: Any) -> dict[str, Any]:
    """Globals after running source as if it were a module of that name."""
    namespace: dict[str, Any] = {"__name__": name, **names}
    exec(compile(source, f"<{name}>", "exec"), namespace)
    return namespace


def caught(function: Any) -> BaseException:
    with pytest.raises(Exception) as info:  # noqa: PT011  whatever the text
        function()
    error = info.value
    assert error.__traceback__ is not None
    return error.with_traceback(error.__traceback__.tb_next)  # without this test's own frame


def test_library_frames_are_hidden_wherever_they_stand() -> None:
    from tensorgrad_page.frames import format_exception

    library = as_module("def call(f):\n    return f()\n", "tensorgrad.ops")["call"]
    text = format_exception(caught(as_module(USER, "__main__", library=library)["outer"]))
    assert text.count("File ") == 2
    assert "<tensorgrad.ops>" not in text
    assert text.endswith("ValueError: the user's own\n")


def test_causes_are_cleaned_too() -> None:
    from tensorgrad_page.frames import format_exception

    wrap = (
        "def call(f):\n    try:\n        f()\n    except ValueError as error:\n        raise KeyError('x') from error\n"
    )
    library = as_module(wrap, "tensorgrad.ops")["call"]
    text = format_exception(caught(as_module(USER, "__main__", library=library)["outer"]))
    assert "direct cause" in text
    assert "<tensorgrad.ops>" not in text
    # A KeyError is not one of the library's own errors: the way to all frames is told.
    assert "traceback.print_last()" in text


def test_the_librarys_own_errors_need_no_more_frames() -> None:
    from tensorgrad.errors import ShapeError
    from tensorgrad_page.frames import format_exception

    library = as_module("def call(f):\n    raise ShapeError('2 is not 3')\n", "tensorgrad.ops", ShapeError=ShapeError)
    text = format_exception(caught(as_module(USER, "__main__", library=library["call"])["outer"]))
    assert text.endswith("ShapeError: 2 is not 3\n")


@pytest.mark.parametrize(
    ("line", "expected", "start"),
    [
        ("from os.path import isd", ["isdir"], 20),
        ("from os.path import (join, isd", ["isdir"], 27),
        ("import json.dec", ["json.decoder"], 7),
        ("x = value.upp", ["value.upper"], 4),
    ],
)
def test_completion_of_names_and_imports(line: str, expected: list[str], start: int) -> None:
    import json.decoder  # noqa: F401  so that it is loaded
    import os.path  # noqa: F401
    import rlcompleter

    from tensorgrad_page.completing import complete

    completer = rlcompleter.Completer({"value": "text"})

    def names(text: str) -> tuple[list[str], int]:
        at = text.rfind(" ") + 1
        return completer.attr_matches(text[at:]), at

    found, at = complete(line, names)
    assert set(expected) <= set(found)
    assert at == start
