"""Graphs as text: aligned, with the user's lines as trailing comments."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import PurePath

from tensorgrad.callsite import CallSite
from tensorgrad.graph import Graph, Node, Value, show_attr
from tensorgrad.inspect.tables import short

_RESULT_WIDTH, _CALL_WIDTH = 30, 44
"""Columns that alignment fills at most; a longer line just sticks out."""


def source_line(site: CallSite) -> str:
    """The text of the user's line; empty where it is not known."""
    return linecache.getline(site.file, site.line).strip()


def show_site(site: CallSite, width: int = 100) -> str:
    """`model.py:12: return self.out(tg.relu(self.hidden(x)))`."""
    text = f"{PurePath(site.file).name}:{site.line}"
    source = source_line(site)
    if not source:
        return f"{text} in {site.function}"
    return f"{text}: {short(source, width)}"


def sites(nodes: Iterable[Node]) -> list[CallSite]:
    """The user's lines of some nodes, each once, in the order of the nodes."""
    return list(dict.fromkeys(n.site for n in nodes if n.site is not None))


def show_call(node: Node) -> str:
    """A node without its result: `permute(%2, perm=[1, 0])`, `param out.weight`, `const 0.5`."""
    attrs = node.attrs
    if node.op == "leaf":
        initial = f" from {attrs['initial']}" if attrs["role"] == "state" and attrs["initial"] else ""
        return f"{attrs['role']} {attrs['name']}{initial}"
    if node.op == "const":
        return f"const {attrs['value']}"
    implied = ("shape",) if node.op in ("broadcast_to", "reshape", "iota") else ("dtype",) if node.op == "cast" else ()
    shown = [f"{key}={show_attr(value)}" for key, value in attrs.items() if key not in implied]
    return f"{node.op}({', '.join([*map(str, node.inputs), *shown])})"


def show_results(node: Node) -> str:
    return ", ".join(f"{value}: {type_}" for value, type_ in zip(node.values, node.types, strict=True))


def show_graph(graph: Graph, comments: bool = True) -> str:
    """A line a node, then what is returned, updated and captured.

    Args:
        comments: end a line with the user's line, where it is another one than the line before had.
    """
    results = [show_results(node) for node in graph.nodes]
    calls = [show_call(node) for node in graph.nodes]
    left = max((len(r) for r in results if len(r) <= _RESULT_WIDTH), default=0)
    middle = max((len(c) for c in calls if len(c) <= _CALL_WIDTH), default=0)
    lines: list[str] = []
    before: CallSite | None = None
    for node, result, call in zip(graph.nodes, results, calls, strict=True):
        line = f"{result:{left}} = {call}"
        if comments and node.site is not None and node.site != before:
            line = f"{line:{left + middle + 3}}  # {show_site(node.site, 80)}"
            before = node.site
        lines.append(line)
    return "\n".join([*lines, *_endings(graph)])


def _endings(graph: Graph) -> Iterator[str]:
    if graph.outputs:
        yield f"return {', '.join(map(str, graph.outputs))}"
    for leaf, value in graph.updates.items():
        yield f"update {name_of(graph, leaf)} <- {value}"
    for name, value in graph.captures.items():
        yield f"capture {name} = {value}"
    for name, value in graph.grads.items():
        yield f"grad {name} = {value}"


def name_of(graph: Graph, value: Value) -> str:
    """A leaf's or pack's name; for other values their number."""
    return str(graph.node(value).attrs.get("name", value)) if graph.node(value).op in ("leaf", "pack") else str(value)


def graph_html(graph: Graph) -> str:
    count = len(graph.nodes)
    return (
        f"<details open><summary>graph of {count:,} node{'s' * (count != 1)}</summary>"
        f'<pre style="text-align:left;max-height:30em;overflow:auto">{escape(show_graph(graph))}</pre></details>'
    )
