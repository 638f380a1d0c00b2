"""Examples for the pages of names whose docstrings have none: `docs/calls.txt` has the calls, which are run here.

A line `tg.softmax(x) | x = [1.0, 2.0]` is a function and what it is given, `nn.LayerNorm(3) | x = tg.f32[2, 3]` a layer
and what kind of inputs it takes. `name:` and indented lines are statements, of which the last one's value is shown.
"""

from __future__ import annotations

import ast
import functools
import os
import re
import tempfile
import warnings
from typing import Any

import numpy as np

import docs_names
import docs_text
import tensorgrad as tg
from paths import ROOT
from tensorgrad import nn, optim

CALLS = ROOT / "docs" / "calls.txt"
IMPORTS = {
    "np.": "import numpy as np",
    "tg.": "import tensorgrad as tg",
    "tg.einops.": "import tensorgrad.einops",
    "nn.": "from tensorgrad import nn",
    "optim.": "from tensorgrad import optim",
}
"""What an example begins with, by what is in it."""


def doc(public: docs_names.Public) -> str:
    """A docstring as its page has it: with an example, if there is any."""
    if any(part.is_example for part in docs_text.parts(public.doc)):
        return public.doc
    code = next((calls()[name] for name in (public.name, *public.others) if name in calls()), None)
    return public.doc if code is None else f"{public.doc}\n\n{shown(code)}"


@functools.cache
def calls() -> dict[str, tuple[str, ...]]:
    """Name -> the statements of its example."""
    found: dict[str, tuple[str, ...]] = {}
    text = re.sub(r"^#.*\n", "", CALLS.read_text(encoding="utf-8"), flags=re.M)
    for line in re.findall(r"^\S.*(?:\n[ ]+.*)*", text, re.M):
        name, *statements = line.splitlines()
        if statements:
            found[name.removesuffix(":")] = tuple(each.strip() for each in statements)
        else:
            call, _, given = line.partition(" |")
            found[call.partition("(")[0]] = of_call(call, given.strip())
    return found


def of_call(call: str, given: str) -> tuple[str, ...]:
    """The statements that call a function with some values, or a layer with values or with inputs of some kinds."""
    values = {str(each.arg): ast.unparse(each.value) for each in keywords(given)}
    is_layer = re.match(r"(nn|tg\.einops)\.[A-Z]", call) is not None
    arguments = ", ".join(values)
    if not is_layer:
        function = f"lambda {arguments}: {call}" if arguments else f"lambda: {call}"
        return (f'call = tg.jit({function}, device="numpy")', f"tg.sync(call({', '.join(values.values())}))")
    if not given.partition("= ")[2].startswith("tg."):
        return (
            f"layer = {call}",
            'call = tg.jit(layer, device="numpy")',
            f"tg.sync(call({', '.join(values.values())}))",
        )
    kinds = ", ".join(f'"{name}": {kind}' for name, kind in values.items())
    ones = ", ".join(
        f"{name}=np.ones({kind.replace('tg.f32[', '(').replace(']', ')')})" for name, kind in values.items()
    )
    forward = f"lambda layer, {arguments}: layer({arguments})"
    return (
        f"layer = {call}",
        f"inputs = {{{kinds}}}",
        f'call = tg.sync(tg.compile_forward(layer, {forward}, inputs, device="numpy"))',
        f"tg.sync(call({ones})).shape",
    )


def keywords(given: str) -> list[ast.keyword]:
    """`x = 1, y = 2` as what a call has of it."""
    call = ast.parse(f"f({given})", mode="eval").body
    assert isinstance(call, ast.Call)
    return call.keywords


def shown(statements: tuple[str, ...]) -> str:
    """An example as a prompt shows it, with the value of the last statement."""
    text = "\n".join(statements)
    imports = [line for name, line in IMPORTS.items() if re.search(rf"(?<![\w.]){re.escape(name)}", text)]
    value = value_of(statements)
    if (
        isinstance(value, np.ndarray)
        and value.dtype.kind == "f"
        and not np.array_equal(value, value.round(4), equal_nan=True)
    ):
        statements, value = (*statements[:-1], f"{statements[-1]}.round(4)"), value.round(4)
    return "\n".join([*(f">>> {line}" for line in (*imports, *statements)), repr(value)])


def value_of(statements: tuple[str, ...]) -> Any:
    """Runs statements; the value of the last one."""
    names: dict[str, Any] = {"np": np, "tg": tg, "nn": nn, "optim": optim}
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)
        try:
            exec("\n".join(statements[:-1]), names)
            return eval(statements[-1], names)
        finally:
            os.chdir(before)
