"""Small hand-written plans and kernels for the tests of the runtime."""

from __future__ import annotations

import math
from typing import Any

from tensorgrad.dtypes import DType, Shape, f32
from tensorgrad.plan import Binding, BufferKind, BufferPlan, BufferSpec, KernelSpec, Writeback

HEAD = """
struct F32 {{ _: array<f32> }}
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) local: u32) {{
  let i = (wg.x + wg.y * 65535u) * 64u + local;
  if (i >= {threads}u) {{ return; }}
  {body}
}}
"""


def wgsl(body: str, threads: int, *bindings: str) -> str:
    """A kernel's source: bindings as `name`, or `name:w` to write, with an element type after `=` (f32)."""
    lines = []
    for index, binding in enumerate(bindings):
        name, _, kind = binding.partition("=")
        name, _, mode = name.partition(":")
        access = "read_write" if mode == "w" else "read"
        lines.append(f"@group(0) @binding({index}) var<storage, {access}> {name}: array<{kind or 'f32'}>;")
    return "\n".join(lines) + HEAD.replace("struct F32 {{ _: array<f32> }}\n", "").format(threads=threads, body=body)


class Plan:
    """Collects buffers and kernels; `plan` and `kernels` are what `create_runtime` is given."""

    def __init__(self) -> None:
        self.buffers: list[BufferSpec] = []
        self.kernels: list[KernelSpec] = []
        self.arenas: dict[str, int] = {}
        self.writebacks: list[Writeback] = []
        self.names: dict[str, dict[str, int]] = {
            "input": {},
            "param": {},
            "state": {},
            "grad": {},
            "output": {},
        }

    def add(
        self,
        kind: BufferKind,
        name: str,
        shape: Shape = (),
        dtype: DType = f32,
        initial: Any = None,
        **place: Any,
    ) -> int:
        nbytes = max(4, -(-math.prod(shape) * dtype.itemsize // 4) * 4)
        spec = BufferSpec(len(self.buffers), kind, name, shape, dtype, nbytes, initial, **place)
        self.buffers.append(spec)
        if kind in self.names:
            self.names[kind][name.removesuffix(".grad")] = spec.id
        return spec.id

    def kernel(self, name: str, body: str, threads: int, *bindings: str, source: str | None = None) -> None:
        """A kernel over buffers by name, written as `wgsl` wants them; dots in names become underscores."""
        ids = {b.name: b.id for b in self.buffers}
        names = [b.partition("=")[0].partition(":")[0] for b in bindings]
        bound = tuple(Binding(ids[n], ":w" in b) for n, b in zip(names, bindings, strict=True))
        text = wgsl(body, threads, *(b.replace(".", "_") for b in bindings)) if source is None else source
        self.kernels.append(KernelSpec(name, len(self.kernels), text, bound, threads))

    def writeback(self, source: str, dest: str) -> None:
        ids = {b.name: b.id for b in self.buffers}
        self.writebacks.append(Writeback(ids[source], ids[dest], self.buffers[ids[source]].nbytes))

    @property
    def plan(self) -> BufferPlan:
        n = self.names
        return BufferPlan(
            tuple(self.buffers),
            arenas=self.arenas,
            inputs=n["input"],
            params=n["param"],
            states=n["state"],
            grads=n["grad"],
            outputs=n["output"],
            writebacks=tuple(self.writebacks),
        )


def descent() -> Plan:
    """A step of gradient descent on 0.5 * sum((w - x)^2) with rate 0.5, and a count of steps.

    With w = 0 at first and x = [2, 4, 6, 8]: the losses are 60, 15, 3.75, ...
    """
    p = Plan()
    p.add("param", "w", (4,))
    p.add("state", "steps", (1,))
    p.add("input", "x", (4,))
    p.add("grad", "w.grad", (4,))
    p.add("output", "loss")
    p.kernel("grad", "w_grad[i] = w[i] - x[i];", 4, "w", "x", "w.grad:w")
    body = "var s = 0.0; for (var k = 0u; k < 4u; k++) { s += 0.5 * g[k] * g[k]; } loss[0] = s; steps[0] += 1.0;"
    p.kernel("loss", body.replace("g[k]", "w_grad[k]"), 1, "w.grad", "loss:w", "steps:w")
    p.kernel("update", "w[i] -= 0.5 * w_grad[i];", 4, "w.grad", "w:w")
    return p
