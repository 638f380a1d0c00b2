"""Compiled programs as text (JSON) and back. Floats are written in hexadecimal, so that every one comes back."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from tensorgrad.dtypes import BY_NAME, DType
from tensorgrad.graph import TensorType
from tensorgrad.plan import Binding, BufferPlan, BufferSpec, KernelSpec, Writeback
from tensorgrad.program import Choice, Held, Interface, Part, Program, Tuning

_TABLES = ("arenas", "inputs", "params", "states", "grads", "outputs")
"""The mappings of a `BufferPlan`, all from names to whole numbers."""


def encode(program: Program) -> str:
    """The program as text; equal programs give equal texts."""
    plan, interface = program.plan, program.interface
    sources = {source: i for i, source in enumerate(dict.fromkeys(k.wgsl for k in program.kernels))}
    content = {
        "sources": list(sources),
        "kernels": [
            [k.name, k.op_index, sources[k.wgsl], _bindings(k), k.threads, k.workgroup_size] for k in program.kernels
        ],
        "buffers": [
            [b.kind, b.name, b.shape, b.dtype.name, b.nbytes, _initial(b.initial), b.arena, b.offset]
            for b in plan.buffers
        ],
        "writebacks": [[w.source, w.dest, w.nbytes] for w in plan.writebacks],
        "tables": {name: getattr(plan, name) for name in _TABLES},
        "reads": interface.inputs,
        "held": {name: [t.shape, t.dtype.name, _initial(initial)] for name, (t, initial) in interface.held.items()},
        "packs": {name: [list(part) for part in parts] for name, parts in interface.packs.items()},
        "slots": interface.slots,
        "gives": interface.outputs,
        "tuning": None if program.tuning is None else list(program.tuning),
    }
    return _text(content)


def decode(text: str) -> Program:
    """The program of a text.

    Raises:
        ValueError, TypeError, LookupError: it is the text of none.
    """
    content: dict[str, Any] = json.loads(text)
    sources = content["sources"]
    kernels = tuple(
        KernelSpec(name, op, sources[source], tuple(Binding(b, write) for b, write in bindings), threads, size)
        for name, op, source, bindings, threads, size in content["kernels"]
    )
    buffers = tuple(
        BufferSpec(i, kind, name, tuple(shape), BY_NAME[dtype], nbytes, _number(initial), arena, offset)
        for i, (kind, name, shape, dtype, nbytes, initial, arena, offset) in enumerate(content["buffers"])
    )
    writebacks = tuple(Writeback(*copy) for copy in content["writebacks"])
    interface = Interface(
        tuple(content["reads"]),
        {name: _held(shape, BY_NAME[dtype], initial) for name, (shape, dtype, initial) in content["held"].items()},
        {
            name: tuple(Part(part, start, stop, tuple(shape)) for part, start, stop, shape in parts)
            for name, parts in content["packs"].items()
        },
        content["slots"],
        tuple(content["gives"]),
    )
    tables = {name: content["tables"][name] for name in _TABLES}
    tuning = content["tuning"]
    if tuning is not None:
        choices, *rest = tuning
        tuning = Tuning(tuple(Choice(*choice) for choice in choices), *rest)
    return Program(interface, BufferPlan(buffers, writebacks=writebacks, **tables), kernels, tuning)


def encode_choices(choices: Mapping[str, Choice]) -> str:
    """Choices of tuning, by key, as text."""
    return _text(choices)


def decode_choices(text: str) -> dict[str, Choice]:
    """The choices of a text.

    Raises:
        ValueError, TypeError, LookupError: it is the text of none.
    """
    return {key: Choice(*choice) for key, choice in json.loads(text).items()}


def _text(content: Any) -> str:
    return json.dumps(content, allow_nan=False, separators=(",", ":"))


def _bindings(kernel: KernelSpec) -> list[tuple[int, bool]]:
    return [(b.buffer, b.write) for b in kernel.bindings]


def _held(shape: list[int], dtype: DType, initial: Any) -> Held:
    number = _number(initial)
    assert isinstance(number, float | int)
    return Held(TensorType(tuple(shape), dtype), number)


def _initial(value: float | int | np.ndarray | None) -> Any:
    if isinstance(value, np.ndarray):
        return [value.dtype.str, value.shape, base64.b64encode(value.tobytes()).decode("ascii")]
    return value.hex() if isinstance(value, float) else value


def _number(value: Any) -> float | int | np.ndarray | None:
    if isinstance(value, list):
        dtype, shape, data = value
        return np.frombuffer(base64.b64decode(data), dtype).reshape(shape)
    return float.fromhex(value) if isinstance(value, str) else value
