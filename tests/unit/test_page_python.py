"""The page's Python half, as far as it runs without Pyodide."""

from __future__ import annotations

import asyncio
import builtins
import doctest
import inspect
import math
import re
import sys
import time
from collections.abc import Coroutine
from types import ModuleType
from typing import Any

import pytest


def modules() -> list[ModuleType]:
    from tensorgrad_page import blocks, completing, describing, frames, hints, plotting

    return [blocks, completing, describing, frames, hints, plotting]


def test_its_examples_hold() -> None:
    results = [doctest.testmod(module) for module in modules()]
    assert sum(result.attempted for result in results) >= 5
    assert sum(result.failed for result in results) == 0


def test_what_raises_where_it_is_asked_is_told_by_its_type() -> None:
    from tensorgrad_page.describing import told

    class Odd:
        shape, dtype = 5, "f"

    class Raises:
        def __repr__(self) -> str:
            raise ValueError

        def __getattr__(self, name: str) -> Any:
            raise ValueError(name)

    def default(x: object = Raises()) -> None:  # its repr is what matters
        pass

    names = {"odd": Odd(), "raises": Raises(), "default": default}
    assert told("odd?", names) == "odd: Odd\n"
    assert told("?raises", names) == "raises: Raises\n"
    assert told("default ??", names) == "default(...)\n"
    assert told("raises.more?", names) == "Nothing is known of raises.more.\n"


def test_a_sleep_that_a_stop_has_ended_ends_once() -> None:
    from tensorgrad_page.replaced import set_result_unless_done

    async def ended() -> int:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        future.set_result(1)
        set_result_unless_done(future, 2)
        return future.result()

    assert asyncio.run(ended()) == 1


def test_a_forgotten_await_before_a_result_is_pointed_out() -> None:
    from tensorgrad_page.hints import hint

    async def step() -> int:
        return 1

    made: Any = step()
    with pytest.raises(AttributeError) as caught:
        _ = made.loss
    made.close()
    assert "write await" in hint(caught.value)
    assert hint(AttributeError("x")) == ""


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


def test_an_error_has_its_line_in_the_input() -> None:
    from tensorgrad_page.frames import line_in

    library = as_module("def call(f):\n    return f()\n", "tensorgrad.ops")["call"]
    error = caught(as_module(USER, "__main__", library=library)["outer"])
    assert line_in(error, "<__main__>") == 6
    assert line_in(error, "<tensorgrad.ops>") == 2
    assert line_in(error, "<input 1>") is None
    with pytest.raises(SyntaxError) as wrong:
        compile("x = 1\ny = (", "<input 1>", "exec")
    assert line_in(wrong.value, "<input 1>") == 2


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


@pytest.mark.parametrize("line", ["", "tg.grad(", 'd["', 'd["ke', "f(x, 'a", "x = 1  # no wo", "x + "])
def test_where_no_word_of_python_has_begun_nothing_is_offered(line: str) -> None:
    from tensorgrad_page.completing import complete

    assert complete(line, lambda text: (["and", "abs("], len(text))) == ([], len(line))


@pytest.mark.parametrize("line", ['d["key"].ke', "'#' + va", "f('a', va"])
def test_a_closed_string_is_no_obstacle(line: str) -> None:
    from tensorgrad_page.completing import complete

    assert complete(line, lambda text: (["value"], len(text) - 2))[0] == ["value"]


def test_functions_are_offered_before_classes_and_errors() -> None:
    import rlcompleter

    import tensorgrad as tg
    from tensorgrad_page.completing import complete

    completer = rlcompleter.Completer({"tg": tg})
    members = complete("tg.", lambda text: (completer.attr_matches(text), 0))[0]
    imported = complete("from tensorgrad import ", lambda text: ([], 0))[0]
    for found in (members, imported):
        ranks = [kind(name.rpartition(".")[2]) for name in found]
        assert ranks == sorted(ranks)
        assert set(ranks) == {0, 1, 2}


def kind(name: str) -> int:
    return 2 if name.endswith("Error") else 1 if name[0].isupper() else 0


BLOCKS = [
    "for i in x:\n    f(i)",
    "class A:\n    b = 1",
    "@f\ndef g():\n    pass",
    "match x:\n    case 1:\n        f(x)",
]


@pytest.mark.parametrize("source", BLOCKS)
def test_every_kind_of_block_goes_on_until_an_empty_line(source: str) -> None:
    from tensorgrad_page.blocks import could_go_on

    assert could_go_on(source)
    assert not could_go_on(source + "\n")
    assert not could_go_on(source + "\nx = 1")


def test_leaving_keeps_the_standard_input_open() -> None:
    from tensorgrad_page.replaced import Leaver

    with pytest.raises(SystemExit) as left:
        Leaver("exit")(3)
    assert left.value.code == 3
    assert not sys.stdin.closed


def test_the_page_replaces_what_would_hang_or_close_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorgrad_page import replaced

    for module, name in ((builtins, "input"), (builtins, "exit"), (builtins, "quit"), (time, "sleep")):
        monkeypatch.setattr(module, name, getattr(module, name))
    replaced.replace(lambda: None)
    assert isinstance(builtins.exit, replaced.Leaver)
    assert isinstance(builtins.quit, replaced.Leaver)
    with pytest.raises(RuntimeError, match="nobody to ask"):
        input("name? ")


def test_a_long_sleep_is_stopped_between_two_pieces() -> None:
    from tensorgrad_page.replaced import PIECE, in_pieces

    slept: list[float] = []

    def stop_at_the_third() -> None:
        if len(slept) == 3:
            raise KeyboardInterrupt

    sleep = in_pieces(slept.append, stop_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        sleep(1000)
    assert slept == [PIECE] * 3


@pytest.mark.parametrize("seconds", [0.01, 0, 1])
def test_a_sleep_lasts_as_long_as_it_should(seconds: float) -> None:
    from tensorgrad_page.replaced import in_pieces

    started = time.monotonic()
    in_pieces(time.sleep, lambda: None)(seconds)
    assert seconds <= time.monotonic() - started < seconds + 0.5


@pytest.mark.parametrize("wrong", [-1, math.nan, "1", None])
def test_a_sleep_that_cannot_be_says_what_python_says(wrong: Any) -> None:
    from tensorgrad_page.replaced import in_pieces

    with pytest.raises((TypeError, ValueError)) as expected:
        time.sleep(wrong)
    with pytest.raises(expected.type, match=re.escape(str(expected.value))):
        in_pieces(time.sleep, lambda: None)(wrong)


def forget(source: str, file: str = "<input 3>") -> Coroutine[Any, Any, Any]:
    """What `source` makes in the input of that name."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    before = sys.get_coroutine_origin_tracking_depth()
    sys.set_coroutine_origin_tracking_depth(1)
    try:
        exec(compile(source, file, "exec"), namespace)
    finally:
        sys.set_coroutine_origin_tracking_depth(before)
    return namespace.pop("made")


STEP = "async def step():\n    pass\nmade = step()"


def test_a_forgotten_await_is_told_once_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    from tensorgrad_page.forgotten import Forgotten

    forgotten = Forgotten(lambda file: file.startswith("<input "), lambda coroutine: pytest.fail("Python's own"))
    for _ in range(300):
        made = forget(STEP)
        forgotten.tell(made)
        made.close()
    assert capsys.readouterr().err == "<input 3>, line 3: step() has not run: write await before the call.\n"


def test_a_hint_at_the_prompt_is_all_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    from tensorgrad_page.forgotten import Forgotten

    forgotten = Forgotten(lambda file: True, lambda coroutine: pytest.fail("Python's own"))
    made = forget(STEP)
    assert "write await" in forgotten.hint(made)
    assert forgotten.hint(42) == ""
    forgotten.tell(made)
    made.close()
    assert capsys.readouterr().err == ""


def test_python_tells_of_coroutines_that_are_not_the_users() -> None:
    from tensorgrad_page.forgotten import Forgotten

    told: list[Any] = []
    forgotten = Forgotten(lambda file: file.startswith("<input "), told.append)
    made = forget(STEP, "library.py")
    forgotten.tell(made)
    made.close()
    assert told == [made]


def test_the_interpreter_asks_the_watcher(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import warnings

    from tensorgrad_page.forgotten import Forgotten

    monkeypatch.setattr(warnings, "_warn_unawaited_coroutine", warnings._warn_unawaited_coroutine)  # type: ignore[attr-defined]
    before = sys.get_coroutine_origin_tracking_depth()
    try:
        Forgotten.watch(lambda file: file == "<input 3>")
        made = forget(STEP)
        assert inspect.iscoroutine(made)
        del made
    finally:
        sys.set_coroutine_origin_tracking_depth(before)
    assert "<input 3>, line 3: step()" in capsys.readouterr().err
