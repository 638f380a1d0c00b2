"""Completion from the live namespace, and of the names in import statements."""

from __future__ import annotations

import pkgutil
import re
import sys
from collections.abc import Callable
from types import ModuleType

FROM_IMPORT = re.compile(r"^\s*from\s+([\w.]+)\s+import\s+\(?(?:[\w\s,]*,\s*)?(\w*)$")
IMPORT = re.compile(r"^\s*(?:from|import)\s+(?:[\w.\s,]*,\s*)?([\w.]*)$")
STRING_OR_COMMENT = re.compile(r"""^(?:[^'"#]|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")*+['"#]""")
MOST = 1000


def complete(line: str, names: Callable[[str], tuple[list[str], int]]) -> tuple[list[str], int]:
    """What the last word of `line` can become, and where in `line` that word starts.

    Args:
        line: the text from the start of the line to the cursor.
        names: completes expressions (`Console.complete`).
    """
    if found := FROM_IMPORT.match(line):
        module, prefix = found.groups()
        return _members(module, prefix), found.start(2)
    if found := IMPORT.match(line):
        return _modules(found.group(1)), found.start(1)
    if not re.search(r"[\w.]$", line) or STRING_OR_COMMENT.match(line):
        return [], len(line)  # no word has begun, or not one of Python's
    matches, start = names(line)
    # rlcompleter adds "(" or "()" to what can be called; a name alone reads better in a list.
    cleaned = dict.fromkeys(match.split("(")[0].rstrip() for match in matches)
    typed = line[start:]
    fitting = [name for name in cleaned if name != typed or len(cleaned) == 1]
    return sorted(fitting, key=_rank)[:MOST], start


def _rank(name: str) -> tuple[bool, bool]:
    """What is called or read stands before classes, and those before the errors and warnings."""
    last = name.rpartition(".")[2]
    return last.endswith(("Error", "Warning", "Exception")), last[:1].isupper()


def _members(module: str, prefix: str) -> list[str]:
    """The public names that `from module import` can take; only what is loaded is looked at."""
    loaded = sys.modules.get(module)
    if loaded is None:
        return []
    names = set(getattr(loaded, "__all__", None) or dir(loaded)) | _submodules(loaded)
    return _fitting(names, prefix)


def _modules(dotted: str) -> list[str]:
    parent, _, prefix = dotted.rpartition(".")
    if not parent:
        tops = {name.partition(".")[0] for name in sys.modules} | set(sys.stdlib_module_names)
        return _fitting(tops, prefix)
    loaded = sys.modules.get(parent)
    return [f"{parent}.{name}" for name in _fitting(_submodules(loaded), prefix)] if loaded else []


def _submodules(module: ModuleType) -> set[str]:
    return {info.name for info in pkgutil.iter_modules(getattr(module, "__path__", None) or [])}


def _fitting(names: set[str], prefix: str) -> list[str]:
    fitting = (n for n in names if n.startswith(prefix) and (prefix.startswith("_") or not n.startswith("_")))
    return sorted(sorted(fitting), key=_rank)[:MOST]
