"""What the page's inspector shows of a compiled program: JSON, when the page asks.

All of it is read from what the library tells of a program itself: `tensorgrad.inspect`.
"""

from __future__ import annotations

import ast
import base64
import functools
import json
import linecache
import math
import time
import weakref
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from itertools import count
from pathlib import PurePath
from typing import Any

import numpy as np

from tensorgrad import Train
from tensorgrad.callsite import CallSite
from tensorgrad.errors import InputError
from tensorgrad.inspect import Inspected, KernelView, Profile, Timed, by_line, programs
from tensorgrad.inspect.graphs import name_of, show_call, show_results, source_line
from tensorgrad.inspect.memory import KINDS
from tensorgrad.predict import Predictor

BINS = 32
COUNTED = 1 << 16
"""Elements of a parameter that its histogram counts, at most; beyond that about so many."""

PICTURED = 96
"""Rows and columns of a picture, at most."""

WARMING, MEASURED, PATIENCE = 2, 5, 3.0
"""Steps before those that are measured, those, and the seconds after which fewer are enough."""

_next = count(1)
_numbers: weakref.WeakKeyDictionary[Inspected, int] = weakref.WeakKeyDictionary()


async def answer(request: str) -> str:
    """The answer to a request of the page, a JSON object; `error` says why there is none.

    Args:
        request: a JSON object: `what` is wanted, of which `program` (a number that the answer to `programs`
            gives), and what else that takes.
    """
    wanted = json.loads(request)
    try:
        found = await _ANSWERS[wanted.pop("what")](**wanted)
    except Exception as error:  # whatever it is, the page says it
        found = {"error": str(error).partition("\n  at ")[0] or type(error).__name__}
    return json.dumps(found)


async def _programs() -> dict[str, Any]:
    """What there is of each, the last compiled first; the numbers count up in the order of compilation.

    `version` changes when it is compiled again; `trains` tells training steps from what computes only.
    """
    found = []
    for program in reversed(programs()):
        if program not in _numbers:
            _numbers[program] = next(_next)
        version = id(getattr(program, "built", None))
        trains = isinstance(program, Train)
        found.append({"program": _numbers[program], "title": program.title, "version": version, "trains": trains})
    return {"programs": found[::-1]}


def _program(number: int) -> Inspected:
    for program in programs():
        if _numbers.get(program) == number:
            return program
    raise LookupError("This program is gone: nothing in Python holds it any more.")


# Kernels --------------------------------------------------------------------------------------------


async def _kernels(program: int) -> dict[str, Any]:
    """A row a kernel, and why they cannot be timed, if so."""
    shown = _program(program)
    return {
        "note": shown.kernels.note,
        "unmeasured": _unmeasured(shown),
        "flops": shown.kernels.flops,
        "nbytes": shown.kernels.nbytes,
        "rows": [_row(kernel) for kernel in shown.kernels],
    }


def _row(kernel: KernelView) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "formula": kernel.formula,
        "space": kernel.space,
        "threads": kernel.threads,
        "flops": kernel.flops,
        "nbytes": kernel.nbytes,
        "site": _site(kernel.site),
    }


async def _kernel(program: int, index: int) -> dict[str, Any]:
    """The rest about one of them."""
    kernel = _program(program).kernels[index]
    return {
        "why": kernel.why.splitlines(),
        "bindings": [str(bound) for bound in kernel.bindings],
        "sites": _sites(kernel.sites),
        "workgroup": kernel.workgroup_size,
        "wgsl": kernel.wgsl,
    }


def _unmeasured(program: Inspected) -> str:
    """Why the GPU time of its kernels cannot be measured; empty where it can."""
    if not isinstance(program, Train):
        return "Times are measured of training steps only: choose one above."
    backend = program.state.backend
    if backend.name == "webgpu" and "timestamp-query" not in backend.limits.features:
        return "This browser's GPU tells no times: WebGPU's timestamp queries are missing."
    return ""


async def _profile(program: int) -> dict[str, Any]:
    """The time of each kernel, the median of a few training steps, which count as any other."""
    shown = _program(program)
    if not isinstance(shown, Train):
        raise TypeError(_unmeasured(shown))
    profiles, begun = [], time.perf_counter()
    while len(profiles) < WARMING + MEASURED:
        profiles.append(await shown.profile())
        if len(profiles) > 1 and time.perf_counter() - begun > PATIENCE:
            break
    measured = profiles[min(WARMING, len(profiles) - 1) :]
    profile, rows = profiles[-1], _medians(measured)
    fields = ("index", "name", "nanoseconds", "gbps", "gflops", "of_peak", "bound")
    return {
        "of": profile.what,
        "note": profile.note,
        "steps": len(profiles),
        "measured": len(measured),
        "nanoseconds": sum(row.nanoseconds for row in rows),
        "peaks": profile.peaks and profile.peaks._asdict(),
        "rows": [{name: _finite(getattr(row, name)) for name in fields} for row in rows],
    }


def _medians(profiles: list[Profile]) -> list[Timed]:
    """Of each kernel the time in the middle, the longest first."""
    of_each: dict[int, list[Timed]] = {}
    for profile in profiles:
        for row in profile.rows:
            of_each.setdefault(row.index, []).append(row)
    rows = [sorted(found, key=lambda row: row.nanoseconds)[len(found) // 2] for found in of_each.values()]
    return sorted(rows, key=lambda row: -row.nanoseconds)


# Graph ----------------------------------------------------------------------------------------------


async def _graph(program: int) -> dict[str, Any]:
    """The graph folded by the user's lines: how many operations each has become, and the lines that they read."""
    graph = _program(program).graph
    lines = by_line(graph)
    row_of = {node.id: i for i, line in enumerate(lines) for node in line.nodes}
    rows = []
    for i, line in enumerate(lines):
        reads = {row_of[value.node] for node in line.nodes for value in node.inputs} - {i}
        rows.append(
            {
                "part": line.part,
                "site": _site(line.site),
                "scope": _scope(line.site),
                "count": len(line.nodes),
                "ops": list(dict.fromkeys(node.op for node in line.nodes)),
                "reads": sorted(reads),
            }
        )
    return {"nodes": len(graph.nodes), "rows": rows}


async def _nodes(program: int, row: int) -> dict[str, Any]:
    """The nodes of one of its rows, with the rows of what they read."""
    graph = _program(program).graph
    lines = by_line(graph)
    row_of = {node.id: i for i, line in enumerate(lines) for node in line.nodes}
    ends: dict[int, list[str]] = {}
    for value in graph.outputs:
        ends.setdefault(value.node, []).append("is returned")
    for leaf, value in graph.updates.items():
        ends.setdefault(value.node, []).append(f"updates {name_of(graph, leaf)}")
    nodes = [
        {
            "id": node.id,
            "result": show_results(node),
            "call": show_call(node),
            "inputs": [[value.node, row_of[value.node]] for value in dict.fromkeys(node.inputs)],
            "ends": ends.get(node.id, []),
        }
        for node in lines[row].nodes
    ]
    return {"nodes": nodes}


# Memory ---------------------------------------------------------------------------------------------


async def _memory(program: int) -> dict[str, Any]:
    """The plan: what is there all the time, and what the temporaries' buffers hold from kernel to kernel."""
    shown = _program(program)
    memory = shown.memory
    return {
        "note": memory.note,
        "total": memory.total,
        "kinds": [[KINDS[kind], n, nbytes] for kind, (n, nbytes) in memory.by_kind.items()],
        "resident": [{"name": b.name, "what": KINDS[b.kind], "nbytes": b.nbytes} for b in memory.resident],
        "pooled": [
            {
                "name": buffer.name,
                "nbytes": buffer.nbytes,
                "values": [[life.first, life.last, life.nbytes, life.what] for life in buffer.values],
            }
            for buffer in memory.pooled
        ],
        "pool": memory.pool,
        "unpooled": memory.unpooled,
        "needed": memory.needed,
        "peak": memory.peak,
    }


# Parameters -----------------------------------------------------------------------------------------


async def _parameters(program: int) -> dict[str, Any]:
    """The module's parameters and buffers, without their numbers."""
    shown = _program(program)
    if not isinstance(shown, Train | Predictor):
        raise TypeError("A jitted function has no parameters: it takes them as arguments.")
    state = shown.state
    return {
        "gradients": isinstance(shown, Train) and bool(shown.built.graph.grads),
        "rows": [
            {"name": name, "shape": tensor.shape, "size": tensor.size, "trained": name in state.trainable}
            for name, tensor in state.tensors.items()
        ],
    }


async def _numbers_now(program: int, names: list[str]) -> dict[str, Any]:
    """What the numbers of some parameters are like, between two steps; and their gradients, where they are kept."""
    shown = _program(program)
    assert isinstance(shown, Train | Predictor)
    state = shown.state
    async with state.turns:
        arrays = await state.read(names)
    gradients: dict[str, Any] = {}
    if isinstance(shown, Train) and shown.built.graph.grads and state.steps:
        with suppress(InputError):  # the steps may be those of a checkpoint, which has no gradients
            found = await shown.gradients()
            gradients = {name: _like(found[name]) for name in names if name in found}
    return {"steps": state.steps, "values": {n: _like(array) for n, array in arrays.items()}, "gradients": gradients}


def _like(array: np.ndarray) -> dict[str, Any]:
    """Its histogram, and of a matrix a picture; of a large one, of elements at equal distances."""
    numbers = array.astype(np.float32).reshape(-1)
    numbers = numbers[:: max(1, numbers.size // COUNTED)]
    good = numbers[np.isfinite(numbers)]
    low, high = (float(good.min()), float(good.max())) if good.size else (0.0, 0.0)
    counts, _ = np.histogram(good, BINS, (low, high) if high > low else (low - 0.5, low + 0.5))
    spread = {"mean": float(good.mean()), "deviation": float(good.std())} if good.size else {"mean": 0, "deviation": 0}
    found = {"low": low, "high": high, **spread, "bad": int(numbers.size - good.size), "counts": counts.tolist()}
    if array.ndim == 2 and min(array.shape) > 1:
        rows, columns = (max(1, -(-size // PICTURED)) for size in array.shape)
        part = np.nan_to_num(array[::rows, ::columns].astype(np.float32), posinf=0.0, neginf=0.0)
        scaled = np.round(part * (127 / (float(np.abs(part).max()) or 1.0))).astype(np.int8)
        found["picture"] = {
            "height": part.shape[0],
            "width": part.shape[1],
            "data": base64.b64encode(scaled.tobytes()).decode(),
        }
    return found


# What all of them need ------------------------------------------------------------------------------


def _site(site: CallSite | None) -> dict[str, Any] | None:
    """A line of the user's, with its text, by which the page finds it in the program."""
    if site is None:
        return None
    return {"file": PurePath(site.file).name, "line": site.line, "text": source_line(site), "in": site.function}


def _scope(site: CallSite | None) -> str:
    """The function that a line is in, a method's with its class: `Model.forward`."""
    if site is None:
        return "no line of yours"
    around = [
        name for name, first, last in _scopes("".join(linecache.getlines(site.file))) if first <= site.line <= last
    ]
    return ".".join(around) or site.function


@functools.lru_cache(8)
def _scopes(source: str) -> list[tuple[str, int, int]]:
    """The classes and functions of a program with their first and last line, those outside first."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:  # its lines are no longer those that ran
        return []
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [(node.name, node.lineno, node.end_lineno or node.lineno) for node in nodes if isinstance(node, kinds)]
    return sorted(found, key=lambda scope: scope[1])


def _sites(sites: Iterable[CallSite]) -> list[dict[str, Any] | None]:
    return [_site(site) for site in sites]


def _finite(value: Any) -> Any:
    """JSON knows no NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


_ANSWERS: dict[str, Callable[..., Awaitable[dict[str, Any]]]] = {
    "programs": _programs,
    "kernels": _kernels,
    "kernel": _kernel,
    "profile": _profile,
    "graph": _graph,
    "nodes": _nodes,
    "memory": _memory,
    "parameters": _parameters,
    "numbers": _numbers_now,
}
