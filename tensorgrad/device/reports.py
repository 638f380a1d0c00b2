"""Messages for what a browser refuses: shaders, steps and allocations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorgrad.device.base import Recording
from tensorgrad.errors import OutOfMemoryError, ShaderError, TensorgradError


def compile_error(recording: Recording, answer: dict[str, Any]) -> TensorgradError:
    """The error for what `Engine.compile` reported: every refused shader, or an invalid step."""
    if "shaders" not in answer:
        return TensorgradError(f"the browser refused the step {recording.label!r}: {answer['message']}")
    labels: dict[str, list[str]] = {}
    problems: dict[str, tuple[str, list[tuple[int, int, str, str]]]] = {}
    for index, message, messages in answer["shaders"]:
        dispatch = recording.dispatches[index]
        labels.setdefault(dispatch.source, []).append(dispatch.label)
        problems[dispatch.source] = message, messages
    reports = []
    for source, (message, messages) in problems.items():
        lines = [f"  {line}:{column} {kind}: {text}" for line, column, kind, text in messages]
        numbered = [f"{number:5} | {line}" for number, line in enumerate(source.splitlines(), 1)]
        names = ", ".join(dict.fromkeys(labels[source]))
        reports.append("\n".join([f"{names}: {message}", *lines, *numbered]))
    count = len(reports)
    return ShaderError(f"{count} shader{'s' * (count != 1)} did not compile.\n\n" + "\n\n".join(reports))


def out_of_memory(label: str, nbytes: int, buffers: Sequence[tuple[str, int]], why: str) -> OutOfMemoryError:
    total = f"one of {len(buffers)} buffers of {show_size(sum(size for _, size in buffers))} in all"
    return OutOfMemoryError(f"the GPU has no room for {label!r} of {show_size(nbytes)}, {total}: {why}")


def show_size(nbytes: int) -> str:
    if nbytes < 2**20:
        return f"{nbytes:,} bytes"
    return f"{nbytes / 2**20:,.1f} MiB" if nbytes < 2**30 else f"{nbytes / 2**30:,.2f} GiB"
