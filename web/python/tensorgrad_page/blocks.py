"""Whether an input that could run may still go on."""

from __future__ import annotations

import ast


def could_go_on(source: str) -> bool:
    """Whether the last statement is a block that the next line may belong to.

    As in Python's own prompt, an empty line ends it.

    Example:
        >>> could_go_on("for i in x:\\n    f(i)"), could_go_on("for i in x:\\n    f(i)\\n")
        (True, False)
        >>> could_go_on("match x:\\n    case 1:\\n        f(x)")
        True
    """
    if not source.rpartition("\n")[2].strip():
        return False
    try:
        statements = ast.parse(source).body
    except SyntaxError:
        return False
    # Every kind of block has its lines in `body`, but `match` has `cases`.
    return bool(statements) and any(isinstance(getattr(statements[-1], part, None), list) for part in ("body", "cases"))
