"""Code generation: fused kernels become KernelSpecs, each by its template."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from tensorgrad.device.base import Limits
from tensorgrad.graph import Value
from tensorgrad.lower.compose import TEMPLATES
from tensorgrad.lower.kernel import Kernel
from tensorgrad.lower.lowering import Lowered
from tensorgrad.plan import Binding, KernelSpec
from tensorgrad.wgsl import attention, matmul
from tensorgrad.wgsl.module import Buffers
from tensorgrad.wgsl.rows import map_kernel, row_kernel
from tensorgrad.wgsl.signature import signature


def generate(lowered: Lowered, limits: Limits) -> list[KernelSpec]:
    """The WGSL of all kernels, in the order in which they run."""
    written: dict[Hashable, KernelSpec] = {}
    return [_spec(lowered, kernel, limits, written) for kernel in lowered.kernels]


def _spec(lowered: Lowered, kernel: Kernel, limits: Limits, written: dict[Hashable, KernelSpec]) -> KernelSpec:
    """A kernel's spec.

    Args:
        written: what was written so far; the bindings' buffers are numbers of the kernel's signature.
    """
    name = label(lowered, kernel)
    index = max(kernel.nodes, default=-1)
    where = lowered.memory.where
    if kernel.matmul or kernel.attention:
        source = (matmul if kernel.matmul else attention).generate(kernel, limits)
        bindings = tuple(Binding(where[value], write) for value, write in source.bindings)
        return KernelSpec(
            f"{source.name} {name}".rstrip(), index, source.wgsl, bindings, source.threads, source.workgroup_size
        )
    key, ids = signature(kernel, where.__getitem__)
    spec = written.get(key)
    if spec is None:
        spec = written[key] = _write(lowered, kernel, limits, {buffer: i for i, buffer in enumerate(ids)})
    bindings = tuple(Binding(ids[b.buffer], b.write) for b in spec.bindings)
    return replace(spec, name=f"{kernel.kind} {name}", op_index=index, bindings=bindings)


def _write(lowered: Lowered, kernel: Kernel, limits: Limits, numbers: dict[int, int]) -> KernelSpec:
    """The text of a map or row kernel."""
    buffers = _buffers(lowered, kernel)
    wgsl, threads, size = row_kernel(kernel, buffers, limits) if kernel.kind == "row" else map_kernel(kernel, buffers)
    bindings = tuple(Binding(numbers[b], b in buffers.written) for b in buffers.ids)
    return KernelSpec("", -1, wgsl, bindings, threads, size)


def _buffers(lowered: Lowered, kernel: Kernel) -> Buffers:
    """The buffers that a kernel reads and writes."""
    where = lowered.memory.where
    values = [*kernel.loads(), *kernel.writes]
    ids = list(dict.fromkeys(where[v] for v in values))
    types = {where[v]: lowered.graph.type(v).dtype for v in values}
    names: dict[Value, str] = {v: f"b{ids.index(where[v])}" for v in values}
    written = frozenset(where[v] for v in kernel.writes)
    return Buffers(tuple(ids), tuple(types[b] for b in ids), written, names)


def label(lowered: Lowered, kernel: Kernel) -> str:
    """What a kernel computes, in a few words: its first operations."""
    nodes = [lowered.graph.nodes[i] for i in sorted(kernel.nodes)]
    ops = list(dict.fromkeys(n.op for n in nodes if n.op not in TEMPLATES))
    return "+".join(ops[:4]) + ("+..." if len(ops) > 4 else "")
