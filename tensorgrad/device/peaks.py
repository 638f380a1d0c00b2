"""The fastest that a device copies memory and multiplies: what kernels are measured against."""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorgrad.device.timer import Timer
from tensorgrad.dtypes import f32
from tensorgrad.plan import Binding, BufferPlan, BufferSpec, KernelSpec

COPIED_NBYTES = 128 << 20
"""More than a GPU's cache holds."""

STEPS = 512
"""Of the loop that multiplies; each has as many operations as `_FMAS` says."""


TRIES = 4
"""The best counts: an idle GPU takes its time until its clock is up."""


class Peaks(NamedTuple):
    """A device's peaks.

    Attributes:
        gbps: 10**9 bytes a second, read and written together.
        gflops: 10**9 f32 operations a second, a multiplication and an addition counted as two.
    """

    gbps: float
    gflops: float

    def __str__(self) -> str:
        gbps, gflops = (f"{n:,.0f}" if n >= 10 else f"{n:.2g}" for n in self)
        return f"{gbps} GB/s, {gflops} GFLOP/s"

    def share(self, gbps: float, gflops: float) -> tuple[float, str]:
        """How near a kernel is to its roofline, 1 being on it, and which part of the roof is above it."""
        memory, compute = gbps / self.gbps, gflops / self.gflops
        return (memory, "memory") if memory >= compute else (compute, "compute")


_COPY = """
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let i = (wg.x + wg.y * 65535u) * 256u + lid;
  if (i < arrayLength(&y)) { y[i] = x[i]; }
}"""

_FMAS = 8
"""Independent sums of four numbers, so that none has to wait for the one before."""

_MULTIPLY = f"""
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {{
  let i = (wg.x * 256u + lid) % arrayLength(&y);
  let a = x[i];
  {" ".join(f"var s{n} = a + {n}.0;" for n in range(_FMAS))}
  for (var k = 0u; k < {STEPS}u; k++) {{
    {" ".join(f"s{n} = fma(s{n}, a, a);" for n in range(_FMAS))}
  }}
  y[i] = {" + ".join(f"s{n}" for n in range(_FMAS))};
}}"""


async def measure_peaks(device: Any) -> Peaks:
    """Measures a device, which takes some milliseconds of its time and twice `COPIED_NBYTES` of its memory.

    Raises:
        OutOfMemoryError: it has no room.
    """
    limits = device.limits
    nbytes = min(COPIED_NBYTES, limits.binding_size // 16 * 16) >> (4 if limits.software else 0)
    threads = 1 << (14 if limits.software else 20)
    buffers = tuple(BufferSpec(i, "temp", f"peak {i}", (nbytes // 4,), f32, nbytes) for i in range(2))
    bindings = (Binding(0), Binding(1, write=True))
    kernels = [
        KernelSpec("copy", -1, _COPY, bindings, nbytes // 16, 256),
        KernelSpec("multiply", -1, _MULTIPLY, bindings, threads, 256),
    ]
    async with Timer(device, BufferPlan(buffers), kernels) as timer:
        tries = [await (await timer.prepare(kernels)).measure(rivals=False) for _ in range(TRIES)]
    copied, multiplied = (min(times) for times in zip(*tries, strict=True))
    return Peaks(2 * nbytes / copied, threads * STEPS * _FMAS * 4 * 2 / multiplied)
