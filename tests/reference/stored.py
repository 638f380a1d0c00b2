"""The stored numbers of PyTorch, and running a function under the reference rules."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tensorgrad.device.numpy import evaluate
from tensorgrad.dtypes import from_numpy
from tensorgrad.tensor import Tensor
from tensorgrad.trace import tensor_input, trace


@cache
def pytorch() -> dict[str, Any]:
    """What `make_pytorch.py` wrote."""
    return json.loads(Path(__file__).with_name("pytorch.json").read_text())


def array(entry: dict[str, Any]) -> np.ndarray:
    """An array that `make_pytorch.py` stored; wide integers as i32."""
    dtype = "int32" if entry["dtype"] == "int64" else entry["dtype"]
    return np.array(entry["data"], dtype).reshape(entry["shape"])


def f(values: Any) -> np.ndarray:
    """Numbers as an f32 array."""
    return np.array(values, np.float32)


def arrays(entries: dict[str, Any]) -> dict[str, np.ndarray]:
    return {name: array(entry) for name, entry in entries.items()}


def step_row(
    seed: int = 0, count: int = 0, slots: dict[str, int] | None = None, scalars: dict[str, float] | None = None
) -> np.ndarray:
    """The row of host numbers that a step sends."""
    row = np.zeros(64, np.uint32)
    row[:2] = seed, count
    for name, at in (slots or {}).items():
        row[at] = np.float32((scalars or {})[name]).view(np.uint32)
    return row


def run(fn: Callable[..., Any], inputs: dict[str, np.ndarray] | None = None, **more: Any) -> Any:
    """Traces `fn` on inputs of these names and returns what it returns as arrays (a list of several).

    Args:
        fn: takes the inputs by name.
        inputs: arrays by name; keywords add to them, but for `training`, which the trace is told.
    """
    training = more.pop("training", False)
    inputs = {**(inputs or {}), **more}
    several = False

    def traced() -> list[Tensor]:
        nonlocal several
        leaves = {name: tensor_input(name, a.shape, from_numpy(a.dtype)) for name, a in inputs.items()}
        result = fn(**leaves)
        several = isinstance(result, list | tuple)
        return list(result) if several else [result]

    graph = trace(traced, training=training)
    values: dict[str, np.ndarray] = {**inputs, "step": step_row()}
    results = evaluate(graph, values)
    found = [results[value] for value in graph.outputs]
    return found if several else found[0]
