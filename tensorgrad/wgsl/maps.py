"""The `map` template: one element an invocation, or a few."""

from __future__ import annotations

from tensorgrad.dtypes import bool_
from tensorgrad.lower.kernel import Kernel, Store
from tensorgrad.wgsl.expression import Body
from tensorgrad.wgsl.module import Buffers, module, needs_f16
from tensorgrad.wgsl.rows import Shape

MAP_SIZE = 256
"""Invocations of a map's workgroup. Smaller ones start too slowly to use all of a large GPU's bandwidth: an update of
300 MB takes an H200 76 us with 256 and 122 with 64."""

MAP = Shape(MAP_SIZE, 1, False)
"""A map's, whose rows are elements."""


def map_kernel(kernel: Kernel, buffers: Buffers, shape: Shape = MAP) -> tuple[str, int, int]:
    """Source, invocations and workgroup size of a map."""
    body = Body(buffers.access)
    count, size, each = kernel.size, shape.size, shape.unroll
    if each == 1:
        body.line(f"let r = w * {size}u + lid;")
        body.line(f"if (r >= {count}u) {{ return; }}")
        body.bind(kernel.rows, "r")
        store_all(body, buffers, kernel.stores)
    else:
        with body.loop(f"for (var u = 0u; u < {each}u; u++)", {}):
            body.line(f"let r = (w * {each}u + u) * {size}u + lid;")
            body.line(f"if (r >= {count}u) {{ break; }}")
            body.bind(kernel.rows, "r")
            store_all(body, buffers, kernel.stores)
    source = module(
        buffers.declarations(),
        body.functions.values(),
        body.text(),
        size,
        uses_f16=body.uses_f16 or needs_f16(buffers.types),
    )
    return source, count if each == 1 else -(-count // (each * size)) * size, size


def store_all(body: Body, buffers: Buffers, stores: list[Store]) -> None:
    """All values first, then the stores: a store may overwrite what another expression reads."""
    body.expect(*(s.expr for s in stores))
    values = [body.value(s.expr) for s in stores]
    for store, value in zip(stores, values, strict=True):
        code = f"select(0u, 1u, {value})" if store.expr.dtype is bool_ else value
        body.line(f"{buffers.access(store.value, body.index(store.index))} = {code};")
