"""A function at each stage of the compiler, as the picture of lesson 6 shows it."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tensorgrad.graph import Graph, Node
from tensorgrad.inspect import Kernels, KernelView
from tensorgrad.inspect.graphs import show_call, show_results
from tensorgrad.lower.compose import FREE, LEAVES
from tensorgrad.lower.lowering import Lowered
from tensorgrad.primitive import REGISTRY


class Stages(NamedTuple):
    """What the compiler made of a function.

    Attributes:
        traced: the operations that the function called.
        lowered: the graph after the passes, its kernels, and the buffer plan.
        kernels: as they are printed, with their WGSL.
    """

    traced: Graph
    lowered: Lowered
    kernels: Kernels


def told(work: Callable[..., Any], ways: Mapping[str, Stages]) -> dict[str, Any]:
    """All that the picture shows of a function, compiled in several ways that differ in their kernels.

    Args:
        work: the function; lines and operations are linked where they are of its file.
        ways: by name; the first tells the graphs.
    """
    file = work.__code__.co_filename
    first = next(iter(ways.values()))
    return {
        "source": [line.rstrip() for line in linecache.getlines(file)],
        "traced": [_node(node, file) for node in first.traced.nodes],
        "graph": [_node(node, file) for node in first.lowered.graph.nodes],
        "ways": {name: _way(way, file) for name, way in ways.items()},
    }


def _node(node: Node, file: str) -> dict[str, Any]:
    line = node.site.line if node.site is not None and node.site.file == file else None
    return {"id": node.id, "text": f"{show_results(node)} = {show_call(node)}", "line": line, "kind": _kind(node)}


def _kind(node: Node) -> str:
    if node.op in LEAVES:
        return "argument"
    return "view" if REGISTRY[node.op].view or node.op in FREE else "operation"


def _way(way: Stages, file: str) -> dict[str, Any]:
    lowered, plan = way.lowered, way.lowered.memory.plan
    return {
        "kernels": [_kernel(lowered, view, file) for view in way.kernels],
        "nbytes": way.kernels.nbytes,
        "stored": sum(len(kernel.writes) for kernel in lowered.kernels),
        "operations": sum(_kind(node) == "operation" for node in lowered.graph.nodes),
        "temporary": sum(buffer.nbytes for buffer in plan.buffers if buffer.kind == "temp"),
    }


def _kernel(lowered: Lowered, view: KernelView, file: str) -> dict[str, Any]:
    kernel = lowered.kernels[view.index]
    values = [*kernel.loads(), *kernel.writes]
    names = [name for _, name in re.findall(r"@binding\((\d+)\) var<[^>]*> (\w+)", view.wgsl)]
    bound = {
        name: [v.node for v in values if lowered.name(v) == buffer.name]
        for name, buffer in zip(names, view.bindings, strict=True)
    }
    return {
        "name": view.name.strip(),
        "formula": view.formula.splitlines(),
        "why": view.why.splitlines(),
        "nbytes": view.nbytes,
        "threads": view.threads,
        "workgroup": view.workgroup_size,
        "nodes": [node.id for node in view.nodes],
        "lines": sorted({site.line for site in view.sites if site.file == file}),
        "buffers": [f"{name} is {buffer}" for name, buffer in zip(names, view.bindings, strict=True)],
        "wgsl": [[text, _named(text, bound)] for text in view.wgsl.splitlines()],
    }


def _named(text: str, bound: Mapping[str, list[int]]) -> list[int]:
    """The operations whose results are in the buffers that a line of WGSL names."""
    return sorted({node for word in re.findall(r"\w+", text) for node in bound.get(word, ())})
