"""Graphs as text: aligned, with the user's lines as trailing comments."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Literal, NamedTuple

from tensorgrad.callsite import CallSite
from tensorgrad.graph import Graph, Node, Value, show_attr
from tensorgrad.inspect.tables import escape, short

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


class Line(NamedTuple):
    """What one of the user's lines has become in a part of a program.

    Attributes:
        part: `forward`: what is returned depends on it; of a training step also `backward`, which computes gradients,
            and `update`, the rest.
        site: the line, None where it is not known.
        nodes: in the order of the graph.
    """

    part: Literal["forward", "backward", "update"]
    site: CallSite | None
    nodes: tuple[Node, ...]


def by_line(graph: Graph) -> list[Line]:
    """The nodes of a graph by the user's lines, each part's lines in the order in which they come first.

    A gradient's nodes have the line of what it is the gradient of. An update has that of the call of `tg.compile`, from
    which the forward pass has nothing but its inputs.
    """
    forward: set[int] = set()
    waiting = [value.node for value in (*graph.outputs, *graph.captures.values())]
    while waiting:
        if (i := waiting.pop()) not in forward:
            forward.add(i)
            waiting += [value.node for value in graph.nodes[i].inputs]
    lines = {graph.nodes[i].site for i in forward if graph.nodes[i].op != "leaf"}
    found: dict[tuple[Literal["forward", "backward", "update"], CallSite | None], list[Node]] = {}
    for node in graph.nodes:
        part = "forward" if node.id in forward else "backward" if node.site in lines else "update"
        found.setdefault((part, node.site), []).append(node)
    order = ("forward", "backward", "update")
    return [Line(*key, tuple(found[key])) for key in sorted(found, key=lambda key: order.index(key[0]))]


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
