"""The baby GPT with one of its sizes varied at a time: milliseconds a step, operations and bytes a second."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import workloads

import tensorgrad as tg
from tensorgrad import nn, optim
from tensorgrad.backend import open_backend


class Sizes(NamedTuple):
    """Of a character transformer with 6 layers, 64 elements a head and a vocabulary of 65."""

    width: int = 384
    context: int = 256
    batch: int = 32

    def __str__(self) -> str:
        return f"width {self.width}, context {self.context}, batch {self.batch}"


FULL = {"width": (64, 128, 256, 384, 512, 768), "context": (64, 128, 256, 512, 1024), "batch": (1, 2, 4, 8, 16, 32, 64)}
QUICK = {"width": (64, 128), "context": (64,), "batch": (1, 2)}
SECONDS = 0.4
"""Of a measurement."""

HEADER = ("", "ms a step", "TFLOP/s", "of the peak", "GB/s", "of the peak", "kernels", "buffers, MB", "compiled in, s")


def cases(axes: dict[str, tuple[int, ...]], base: Sizes) -> Iterator[Sizes]:
    """Each size that is varied, once."""
    yield from dict.fromkeys(base._replace(**{name: size}) for name, sizes in axes.items() for size in sizes)


async def main(quick: bool, post: Callable[[str, str], Any]) -> None:
    """Posts a row for each case, and the table as Markdown."""
    base = Sizes(64, 64, 2) if quick else Sizes()
    rows = []
    for sizes in cases(QUICK if quick else FULL, base):
        try:
            rows.append([str(sizes), *await measured(sizes)])
        except tg.TensorgradError as error:
            rows.append([str(sizes), f"{type(error).__name__}: {str(error)[:80]}", *[""] * (len(HEADER) - 2)])
        gc.collect()
        await post(str(sizes), json.dumps(rows[-1][1:]))
    lines = [f"| {' | '.join(row)} |" for row in (HEADER, ["---"] * len(HEADER), *rows)]
    lines.append(f"Peaks: {await (await open_backend('webgpu')).peaks()}.")
    await post("table", json.dumps(lines))


async def measured(sizes: Sizes) -> list[str]:
    """The cells of a case after its name."""
    nn.init.manual_seed(0)
    model = workloads.GPT(6, sizes.width, sizes.width // 64, sizes.context, 65)
    shape = (sizes.batch, sizes.context)
    start = time.perf_counter()
    train = await tg.compile(
        model,
        lambda model, x, y: tg.cross_entropy(model(x), y),
        optim.Adam(1e-3),
        {"x": tg.i32[shape], "y": tg.i32[shape[0] * shape[1]]},
        device="webgpu",
        seed=0,
    )
    compiled = time.perf_counter() - start
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, 65, (4, *shape)).astype(np.int32)
    data = await train.upload({"x": tokens, "y": tokens.reshape(4, -1)})
    await train.run_steps(3, data)
    start = time.perf_counter()
    await train.run_steps(1, data)
    count = min(max(3, int(SECONDS / (time.perf_counter() - start))), 500)
    found = []
    for _ in range(3):
        start = time.perf_counter()
        await train.run_steps(count, data)
        found.append((time.perf_counter() - start) / count)
    ms, kernels = min(found) * 1e3, train.kernels
    flops, nbytes = sum(k.flops for k in kernels) / ms / 1e6, sum(k.nbytes for k in kernels) / ms / 1e6
    peaks = await train.state.backend.peaks()
    nbytes_held = train.memory.total
    train.destroy()
    return [
        f"{ms:.3g}",
        f"{flops / 1e3:.3g}",
        f"{flops / peaks.gflops:.0%}" if peaks else "",
        f"{nbytes:,.0f}" if nbytes >= 10 else f"{nbytes:.2g}",
        f"{nbytes / peaks.gbps:.0%}" if peaks else "",
        str(len(kernels)),
        f"{nbytes_held / 1e6:,.0f}",
        f"{compiled:.1f}",
    ]
