"""What `tg.compile(..., tune=...)` gains on a workload: tuned and untuned by turns, in one page."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import workloads

import tensorgrad as tg


async def main(
    work: Any, options: Any, seconds: float, steps: int, rounds: int, post: Callable[[str, str], Any]
) -> None:
    """Posts the compile times, the choices, and milliseconds a step of `rounds` rounds of each."""
    options = options.to_py()
    note: dict[str, Any] = {}
    held = {}
    for name, tune in (("untuned", 0.0), ("tuned", seconds), ("tuned again", seconds)):
        arguments, batches = workloads.prepared(work, options)
        start = time.perf_counter()
        train = await tg.compile(*arguments, device=options["device"], tune=tune)
        note[name] = {"compile_s": round(time.perf_counter() - start, 2), "cached": train.built.compiled.cached}
        if name == "tuned again":
            train.destroy()
        else:
            data = await train.upload({key: np.stack([batch[key] for batch in batches]) for key in batches[0]})
            held[name] = train, batches, data
    await post("compiled", json.dumps(note))
    if tuning := held["tuned"][0].tuning:
        await post("tuning", json.dumps(str(tuning).splitlines()))
    found: dict[str, dict[str, list[float]]] = {name: {"read": [], "run_steps": []} for name in held}
    losses: dict[str, float] = {}
    for _ in range(rounds):
        for name, (train, batches, data) in held.items():
            start = time.perf_counter()
            for i in range(steps):
                losses[name] = (await train.step(batches[i % len(batches)])).loss
            found[name]["read"].append(round((time.perf_counter() - start) / steps * 1e3, 3))
            start = time.perf_counter()
            await train.run_steps(steps, data)
            found[name]["run_steps"].append(round((time.perf_counter() - start) / steps * 1e3, 3))
    await post("ms", json.dumps(found))
    await post("losses", json.dumps(losses))
    for name, (train, *_) in held.items():
        profile = await train.profile()
        await post(f"profile {name}", json.dumps(profile.top(40).splitlines()))
