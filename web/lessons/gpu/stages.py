import numpy as np

import tensorgrad as tg
from tensorgrad.backend import open_backend
from tensorgrad.inspect import Kernels
from tensorgrad.lower.lowering import lower
from tensorgrad.passes import optimize
from tensorgrad.wgsl.generate import generate
from tensorgrad_page.stages import Stages, told

n = 1024  # rows; the slider sets it
backend = await open_backend()


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def compiled(work, given, fusion):
    """From a function to its kernels. Each stage gives plain data to the next."""

    def call():
        types = {name: tg.f32 if array.dtype.kind == "f" else tg.i32 for name, array in given.items()}
        return work(**{name: tg.state_input(name, given[name].shape, types[name]) for name in given})

    limits = backend.limits
    traced = tg.trace(call)  # Python runs once, with tensors that have shapes and no numbers
    graph = optimize(traced, limits)  # fewer operations, which compute the same
    outputs = {f"result {i}": value for i, value in enumerate(graph.outputs)}
    lowered = lower(
        graph, outputs, fuse=fusion, compose=fusion, max_buffers=limits.storage_buffers, totals=not limits.software
    )
    return Stages(traced, lowered, Kernels(lowered, generate(lowered, limits)))


def both():
    """With fusion and without, for the arrays of n rows."""
    given = arrays(n)
    return {"fused": compiled(work, given, True), "apart": compiled(work, given, False)}


async def look():
    show(n=n, **told(work, both()))


await look()
