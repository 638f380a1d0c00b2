"""What the page says of names: `help`, and the signatures and docstrings that the editor shows."""

from __future__ import annotations

import inspect
import sys

import pytest


def test_names_are_described_without_running_anything() -> None:
    import numpy as np

    from tensorgrad_page.describing import describe

    class Layer:
        """A layer."""

        def __init__(self) -> None:
            self.weight = np.zeros((2, 3), np.float32)

        @property
        def norm(self) -> float:
            """Its length."""
            raise AssertionError("evaluated")

        def forward(self, x: int, *, scale: float = 1.0) -> int:
            """Runs it."""
            return x

        def __getattr__(self, name: str) -> object:
            raise AssertionError(f"asked for {name}")

    names = {"layer": Layer(), "Layer": Layer, "np": np, "many": list(range(1000))}
    told = {
        name: describe(name, names)
        for name in ("layer.forward", "layer.norm", "layer.weight", "Layer", "np", "len", "many", "layer.other", "gone")
    }
    assert told["layer.forward"] == {
        "signature": "forward(x: int, *, scale: float = 1.0) -> int",
        "doc": "Runs it.",
    }
    assert told["layer.norm"] == {"signature": "norm: property", "doc": "Its length."}
    assert told["layer.weight"] == {"signature": "weight: ndarray, float32, shape (2, 3)", "doc": ""}
    assert told["Layer"] == {"signature": "Layer() -> None", "doc": "A layer."}
    assert told["np"] is not None
    assert told["np"]["signature"] == "module numpy"
    assert told["len"] == {"signature": "len(obj, /)", "doc": inspect.getdoc(len)}
    assert told["many"] == {"signature": "many: list = [0, 1, 2, 3, 4, 5, ...]", "doc": ""}
    assert told["layer.other"] is told["gone"] is None


def test_names_that_a_program_imports_are_known_from_what_is_loaded() -> None:
    import xml.etree.ElementTree as tree

    import numpy as np

    from tensorgrad_page.describing import imported

    program = (
        "import numpy as np, not_loaded_module\nimport xml.etree.ElementTree\nfrom xml import (\n    etree,  # one\n)\n"
        "    from numpy import linspace as line, nothing\nfrom . import x\nimport (\nfrom a import b c\n"
        "x = 'import sys'\n"
    )
    assert imported(program) == {
        "np": np,
        "xml": sys.modules["xml"],
        "etree": sys.modules["xml.etree"],
        "line": np.linspace,
    }
    assert imported("import xml.etree.ElementTree as t") == {"t": tree}


def test_help_alone_tells_how_to_ask(capsys: pytest.CaptureFixture[str]) -> None:
    from tensorgrad_page.replaced import Help

    Help()()
    assert "help(value) tells what a value is" in capsys.readouterr().out
    Help()(len)
    assert capsys.readouterr().out.startswith("Help on built-in function len")


def test_a_name_with_a_question_mark_asks_what_it_is() -> None:
    from tensorgrad_page.describing import told

    assert told(" len?\n", {}) == f"len(obj, /)\n\n{inspect.getdoc(len)}\n\nhelp(len) tells all of it.\n"
    assert told("gone??", {}) == "Nothing is known of gone.\n"
    for other in ("len", "?", "1?", "len(x)?", "x = len?", "'len?'"):
        assert told(other, {}) == ""
