"""What `await train.step(...)` costs in Python and between Python and JavaScript: the GPU's part is stubbed."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import workloads

STEPS = 1_000

STUB = """
(program) => {
  program.upload = () => {};
  program.encode = () => [];
  program.submit = () => {};
  program.mark = () => {};
  program.answer = (ticket) => Promise.resolve().then(() => program.tell(ticket, 0, 0x3f800000, null));
}
"""


async def main(work: Any, options: Any, rounds: int, post: Callable[[str, str], Any]) -> None:
    """Posts microseconds a call, the least and the median of `rounds` means of 1,000."""
    from pyodide.code import run_js

    session = await workloads.session(work, options)
    train, batch = session.held["train"], session.held["batches"][0]
    await post("compiled", session.note)
    await train.step(batch)
    run_js(STUB)(train.built.executor._program._js)
    parts = parts_of(train, batch, run_js("() => Promise.resolve(1)"))
    await parts["row"]()
    for name, part in [*parts.items(), ("step, once more", parts["step"]), ("submit, once more", parts["submit"])]:
        await post(name, json.dumps(await timed(part, rounds)))


def parts_of(train: Any, batch: Any, js_resolved: Callable[[], Any]) -> dict[str, Callable[[], Awaitable[Any]]]:
    """What a step does in Python, part by part; `row` comes before what uploads."""
    executor = train.built.executor
    program = executor._program
    inputs = train.inputs.flatten((batch,), {})

    async def ready() -> None:
        pass

    async def resolved() -> None:
        await js_resolved()

    async def turns() -> None:
        async with train.state.turns:
            pass

    async def prepare() -> None:
        await train._prepare(inputs)

    async def zero() -> None:
        await asyncio.sleep(0)

    async def flatten() -> None:
        train.inputs.flatten((batch,), {})

    async def running() -> None:
        with train.state.running():
            pass

    async def made() -> None:
        train._made(inputs, True)

    async def gather() -> None:
        executor._gather(inputs)

    return {
        "step": lambda: train.step(batch),
        "submit": lambda: train.submit(batch),
        "executor.step": lambda: executor.step(inputs),
        "executor.submit": lambda: executor.submit(inputs),
        "empty coroutine": ready,
        "flatten": flatten,
        "turns": turns,
        "row": prepare,
        "gather": gather,
        "program.step": program.step,
        "program.submit": program.submit,
        "running": running,
        "made": made,
        "sleep(0)": zero,
        "await Promise.resolve()": resolved,
    }


async def timed(part: Callable[[], Awaitable[Any]], rounds: int) -> dict[str, float]:
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(STEPS):
            await part()
        found.append((time.perf_counter() - start) / STEPS * 1e6)
    return {"least": round(min(found), 1), "median": round(float(np.median(found)), 1)}
