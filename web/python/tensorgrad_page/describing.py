"""What a name in a program is: its signature and its docstring, or a value's type. Nothing of the program runs."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import reprlib
import sys
from types import ModuleType
from typing import Any

IMPORTS = re.compile(r"^[ \t]*(?:from\s+[\w.]+\s+)?import\s+(?:\([^)]*\)|[^\n#(]+)", re.MULTILINE)
ASKED = re.compile(r"\s*(?:\?{1,2}\s*([^\W\d][\w.]*)|([^\W\d][\w.]*)\s*\?{1,2})\s*")
SHOWN_WHOLE = (bool, int, float, complex, str, bytes, list, tuple, dict, set, type(None))
LONGEST = 4000


def imported(source: str) -> dict[str, Any]:
    """The names that a program's imports will give it, of the modules that are loaded already.

    Example:
        >>> import json
        >>> imported("import json as j, not_there\\nfrom json import (\\n    dumps,\\n)\\nj.")["dumps"] is json.dumps
        True
    """
    found: dict[str, Any] = {}
    for match in IMPORTS.finditer(source):
        try:
            (statement,) = ast.parse(match.group().strip()).body
        except (SyntaxError, ValueError):
            continue  # still being typed
        if isinstance(statement, ast.Import):
            for name in statement.names:
                # `import a.b` gives the name a.
                module = sys.modules.get(name.name if name.asname else name.name.partition(".")[0])
                found[name.asname or name.name.partition(".")[0]] = module
        elif isinstance(statement, ast.ImportFrom) and not statement.level:
            module = sys.modules.get(statement.module or "")
            for name in statement.names:
                full = f"{statement.module}.{name.name}"
                found[name.asname or name.name] = getattr(module, name.name, None) or sys.modules.get(full)
    return {name: value for name, value in found.items() if value is not None}


def describe(expression: str, namespace: dict[str, Any]) -> dict[str, str] | None:
    """The `signature` and the `doc` of a dotted name, or None where nothing is known of it.

    Properties are not evaluated: of those, and of what they would give, there is the docstring alone. What raises
    where it is asked, as a `repr` of the user's may, is told by its type.

    Example:
        >>> describe("json.dumps", {"json": __import__("json")})["signature"][:16]
        'dumps(obj, *, sk'
        >>> describe("x", {"x": [1, 2]}), describe("nothing.at.all", {})
        ({'signature': 'x: list = [1, 2]', 'doc': ''}, None)
    """
    first, *rest = expression.split(".")
    try:
        value = namespace[first] if first in namespace else getattr(builtins, first)
        for name in rest:
            value = _attribute(value, name)
    except Exception:  # most often there is no such name
        return None
    name = expression.rpartition(".")[2]
    try:
        told = isinstance(value, ModuleType | property) or callable(value)
        doc = (inspect.getdoc(value) or "")[:LONGEST] if told else ""
        return {"signature": _signature(name, value), "doc": doc}
    except Exception:
        return {"signature": f"{name}: {type(value).__name__}", "doc": ""}


def told(source: str, namespace: dict[str, Any]) -> str:
    """The answer to `name?`, which IPython's users type; nothing where an input is something else.

    Example:
        >>> print(told("math.tau?", {"math": __import__("math")}))
        tau: float = 6.283185307179586
        <BLANKLINE>
        >>> told("x if y else z", {})
        ''
    """
    if not (asked := ASKED.fullmatch(source)):
        return ""
    name = asked.group(1) or asked.group(2)
    if not (found := describe(name, namespace)):
        return f"Nothing is known of {name}.\n"
    doc = f"\n{found['doc']}\n\nhelp({name}) tells all of it.\n" if found["doc"] else ""
    return f"{found['signature']}\n{doc}"


def _attribute(value: Any, name: str) -> Any:
    if isinstance(value, ModuleType | type):
        return getattr(value, name)
    found = inspect.getattr_static(value, name)
    # A descriptor's own __get__ may run anything; that of a function only binds it.
    bound = callable(found) or isinstance(found, classmethod | staticmethod)
    return getattr(value, name) if bound else found


def _signature(name: str, value: Any) -> str:
    if isinstance(value, ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, property):
        return f"{name}: property"
    kind = type(value).__name__
    if callable(value):
        try:
            return f"{name}{_unquoted(inspect.signature(value))}"
        except (TypeError, ValueError):  # a function written in C that does not tell
            return f"{name}(...)"
    if hasattr(type(value), "shape") and hasattr(type(value), "dtype"):
        return f"{name}: {kind}, {value.dtype}, shape {tuple(value.shape)}"
    return f"{name}: {kind} = {reprlib.repr(value)}" if type(value) in SHOWN_WHOLE else f"{name}: {kind}"


class _Plain(str):
    """An annotation that was kept as text, shown without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def _unquoted(signature: inspect.Signature) -> inspect.Signature:
    def plain(annotation: Any) -> Any:
        return _Plain(annotation) if isinstance(annotation, str) else annotation

    parameters = [one.replace(annotation=plain(one.annotation)) for one in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=plain(signature.return_annotation))
