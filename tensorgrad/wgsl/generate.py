"""Code generation: fused kernels become KernelSpecs, each by its template."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping

from tensorgrad.device.base import Limits
from tensorgrad.graph import Value
from tensorgrad.lower.compose import SCANS, TEMPLATES
from tensorgrad.lower.kernel import Kernel
from tensorgrad.lower.lowering import Lowered
from tensorgrad.plan import Binding, KernelSpec
from tensorgrad.wgsl import matmul
from tensorgrad.wgsl.lines import line_kernel
from tensorgrad.wgsl.maps import MAP, map_kernel
from tensorgrad.wgsl.matmul_tiles import Tile
from tensorgrad.wgsl.module import Buffers
from tensorgrad.wgsl.rows import Shape, row_kernel
from tensorgrad.wgsl.signature import signature
from tensorgrad.wgsl.variants import Variant, variants

Choices = Mapping[str, str]
"""Key of a kernel (see `key_of`) -> the `repr` of the variant that it is written with."""

NONE: Choices = {}


def generate(
    lowered: Lowered,
    limits: Limits,
    choices: Choices = NONE,
    begin: Callable[[KernelSpec], object] = lambda spec: None,
) -> list[KernelSpec]:
    """The WGSL of all kernels, in the order in which they run.

    Args:
        choices: variants in place of the templates' own choices; what is not among a kernel's variants is passed over.
        begin: given each new text as soon as it is written, those that take long to compile first.
    """
    writer = Writer(lowered, limits)
    specs: dict[int, KernelSpec] = {}
    begun: set[tuple[str, str]] = set()
    for i, kernel in sorted(enumerate(lowered.kernels), key=lambda item: not (item[1].matmul or item[1].attention)):
        spec = specs[i] = writer.spec(kernel, choices)
        if spec.runs and (text := (spec.access, spec.wgsl)) not in begun:
            begun.add(text)
            begin(spec)
    return [specs[i] for i in range(len(specs))]


def key_of(spec: KernelSpec) -> str:
    """What tells a kernel's text from others: of equal texts, one is measured for all."""
    return hashlib.sha256(spec.wgsl.encode()).hexdigest()[:24]


class Writer:
    """Writes the kernels of a lowered graph for a device, each text once."""

    def __init__(self, lowered: Lowered, limits: Limits) -> None:
        self.lowered, self.limits = lowered, limits
        self._written: dict[Hashable, KernelSpec] = {}
        """What was written so far; the bindings' buffers are numbers of the kernel's signature."""

    def spec(self, kernel: Kernel, choices: Choices = NONE) -> KernelSpec:
        """A kernel as chosen."""
        spec = self.write(kernel)
        name = choices.get(key_of(spec)) if choices else None
        chosen = next((v for v in variants(kernel, self.limits) if repr(v) == name), None) if name else None
        return self.write(kernel, chosen) if chosen else spec

    def alternatives(self, kernel: Kernel) -> dict[str, KernelSpec]:
        """All variants of different text by name, the template's own choice first."""
        found: dict[str, tuple[str, KernelSpec]] = {}
        for i, variant in enumerate(variants(kernel, self.limits)):
            spec = self.write(kernel, variant if i else None)
            found.setdefault(spec.wgsl, (repr(variant), spec))
        return dict(found.values())

    def write(self, kernel: Kernel, variant: Variant | None = None) -> KernelSpec:
        """A kernel's spec; by default as its template chooses."""
        name = label(self.lowered, kernel)
        index = max(kernel.nodes, default=-1)
        where = self.lowered.memory.where
        if kernel.matmul or kernel.attention:
            assert not isinstance(variant, Shape)
            template = matmul.generate
            if kernel.attention:  # most models have none, and `import tensorgrad` is faster without
                from tensorgrad.wgsl.attention import generate as template
            source = template(kernel, self.limits, tile=variant)
            bindings = tuple(Binding(where[value], write) for value, write in source.bindings)
            return KernelSpec(
                f"{source.name} {name}".rstrip(), index, source.wgsl, bindings, source.threads, source.workgroup_size
            )
        assert not isinstance(variant, Tile)
        key, ids = signature(kernel, where.__getitem__)
        spec = self._written.get((key, variant))
        if spec is None:
            spec = self._written[key, variant] = self._write(
                kernel, variant, {buffer: i for i, buffer in enumerate(ids)}
            )
        bindings = tuple(Binding(ids[b.buffer], b.write) for b in spec.bindings)
        return spec._replace(name=f"{kernel.kind} {name}", op_index=index, bindings=bindings)

    def _write(self, kernel: Kernel, shape: Shape | None, numbers: dict[int, int]) -> KernelSpec:
        """The text of a kernel without operands in place."""
        buffers = _buffers(self.lowered, kernel)
        if kernel.line:
            wgsl, threads, size = line_kernel(kernel, buffers, self.limits, shape)
        elif kernel.kind == "row":
            wgsl, threads, size = row_kernel(kernel, buffers, self.limits, shape)
        else:
            wgsl, threads, size = map_kernel(kernel, buffers, shape or MAP)
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
    ops = list(dict.fromkeys(n.op for n in nodes if n.op not in TEMPLATES - SCANS))
    return "+".join(ops[:4]) + ("+..." if len(ops) > 4 else "")
