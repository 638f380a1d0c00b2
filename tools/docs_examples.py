"""From a docstring's example to a program of the playground, and to the link that opens it there.

At a prompt the value of an expression shows by itself, in a program it is printed. What waits is awaited, since not
every browser can wait otherwise, and nothing asks for the numpy device: the page takes the GPU where there is one.
"""

from __future__ import annotations

import ast
import base64
import builtins
import doctest
import re
import zlib

IMPORTS = {"tg": "import tensorgrad as tg", "np": "import numpy as np"}
"""What an example may leave out; everything else that it uses it imports itself."""

ELSEWHERE = re.compile(r"^(?:import|from) (?:tensorgrad\.)?einops\b", re.M)
"""What the playground has not got, and may not fetch: the page's policy allows its own site only."""

WAITS = ("tg.sync", "sync", "asyncio.run")
Located = ast.expr | ast.stmt | ast.keyword
FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def program(text: str) -> str:
    """What the examples in a docstring do, as a program that imports what it uses."""
    found = [edited(each.source, shows=bool(each.want)) for each in doctest.DocTestParser().get_examples(text)]
    body = "".join(found)
    if "asyncio." not in body:
        body = body.replace("import asyncio\n", "")
    added = [IMPORTS[name] for name in unbound(body) if name in IMPORTS]
    return "".join(f"{line}\n" for line in added) + body


def edited(source: str, shows: bool) -> str:
    """One statement of an example as a program has it; `shows` if its value is printed at a prompt."""
    tree = ast.parse(source)
    starts = [0]
    for line in source.encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)

    def begin(node: Located) -> int:
        return starts[node.lineno - 1] + node.col_offset

    def end(node: Located) -> int:
        return starts[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0)

    edits: list[tuple[int, int, str]] = []  # from, to, what comes there
    whole = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr | ast.Assign | ast.keyword)}
    whole |= {argument for node in ast.walk(tree) if isinstance(node, ast.Call) for argument in node.args}
    for node in outside_functions(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in WAITS and node.args:
            opening, closing = ("await ", "") if node in whole else ("(await ", ")")
            edits += [(begin(node), begin(node.args[0]), opening), (end(node.args[-1]), end(node), closing)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if ast.unparse(keyword) == "device='numpy'":
                    before = [end(each) for each in (*node.args, *node.keywords) if end(each) < begin(keyword)]
                    edits.append((max(before, default=begin(keyword)), end(keyword), ""))
    first = tree.body[0]
    if shows and isinstance(first, ast.Expr) and not ast.unparse(first).startswith("print("):
        edits += [(begin(first), begin(first), "print("), (end(first), end(first), ")")]
    code = source.encode()
    for start, stop, text in sorted(edits, reverse=True):
        code = code[:start] + text.encode() + code[stop:]
    return (
        f"{code.decode()}\n"
        if isinstance(first, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        else code.decode()
    )


def outside_functions(node: ast.AST) -> list[ast.AST]:
    """What runs at once, where `await` is allowed."""
    found: list[ast.AST] = []
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            found += [child, *outside_functions(child)]
    return found


def unbound(code: str) -> list[str]:
    """Names that a program reads and nobody gives it, in their order."""
    loaded: dict[str, None] = {}
    bound = set(vars(builtins)) | {"__name__"}
    for node in ast.walk(compile(code, "example", "exec", flags=FLAGS | ast.PyCF_ONLY_AST)):
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                loaded.setdefault(node.id)
            else:
                bound.add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {(each.asname or each.name).split(".")[0] for each in node.names}
    return [name for name in loaded if name not in bound]


def link(code: str) -> str:
    """The fragment that `web/js/share.js` reads, with the program in it; "" for one that cannot run there."""
    if ELSEWHERE.search(code):
        return ""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = squeeze.compress(code.encode()) + squeeze.flush()
    return "#code=" + base64.urlsafe_b64encode(packed).decode().rstrip("=")
