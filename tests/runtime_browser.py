"""What the browser tests of the runtime share: devices, a count of WebGPU calls, a limit on waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import numpy as np

from runtime_plans import Plan
from tensorgrad.runtime import create_runtime

X = np.array([2, 4, 6, 8], np.float32)
LOSSES = [60.0, 15.0, 3.75, 0.9375]
"""The input of `runtime_plans.descent` and the losses of its first steps."""

SPY = """
(() => {
  const count = {}, seen = [];
  const undo = [];
  const spy = (type, name, note) => {
    const original = type.prototype[name];
    type.prototype[name] = function (...args) {
      count[name] = (count[name] ?? 0) + 1;
      if (note) seen.push([name, note(args)]);
      return original.apply(this, args);
    };
    undo.push(() => { type.prototype[name] = original; });
  };
  spy(GPUDevice, 'createBuffer', a => a[0].label);
  spy(GPUDevice, 'createShaderModule', a => a[0].label);
  spy(GPUDevice, 'createComputePipelineAsync', a => a[0].label);
  spy(GPUDevice, 'createBindGroup');
  spy(GPUBuffer, 'destroy');
  spy(GPUQueue, 'writeBuffer');
  spy(GPUQueue, 'submit');
  spy(GPUCommandEncoder, 'beginComputePass');
  spy(GPUCommandEncoder, 'copyBufferToBuffer');
  spy(GPUComputePassEncoder, 'dispatchWorkgroups', a => a.join(','));
  spy(GPUComputePassEncoder, 'pushDebugGroup', a => a[0]);
  return {
    read() {
      const text = JSON.stringify([count, seen]);
      for (const name in count) delete count[name];
      seen.length = 0;
      return text;
    },
    undo() { for (const f of undo) f(); },
  };
})()
"""


class Spy:
    """Counts calls into WebGPU."""

    def __enter__(self) -> Spy:
        from pyodide.code import run_js

        self._js = run_js(SPY)
        return self

    def __exit__(self, *_: object) -> None:
        self._js.undo()

    def read(self) -> tuple[dict[str, int], list[tuple[str, str]]]:
        """Calls since the last reading: how many of each, and (name, argument) in order."""
        import json

        counts, seen = json.loads(self._js.read())
        return counts, [(name, note) for name, note in seen]


REFUSED = """
async (device, sources) => {
  device.pushErrorScope('validation');
  const modules = sources.map(code => device.createShaderModule({ code }));
  await device.popErrorScope();
  return Promise.all(modules.map(async module => {
    const { messages } = await module.getCompilationInfo();
    return messages.map(m => `line ${m.lineNum}: ${m.message}`).join('; ');
  }));
}
"""


async def refused(device: Any, sources: Mapping[str, str]) -> dict[str, str]:
    """What the browser's shader compiler objects to, by the sources' names.

    It parses and checks them, where barriers may stand included, and compiles nothing: milliseconds each.
    """
    from pyodide.code import run_js
    from pyodide.ffi import to_js

    found = await run_js(REFUSED)(device.js_device, to_js(list(sources.values())))
    return {name: text for name, text in zip(sources, found.to_py(), strict=True) if text}


async def new_device() -> Any:
    from tensorgrad.device.webgpu import request_device

    return await request_device()


async def make(p: Plan, device: Any = None, **options: Any) -> Any:
    return await create_runtime(p.plan, p.kernels, device=device, **options)


async def soon(awaitable: Any) -> Any:
    """The result, or a TimeoutError: nothing may hang."""
    return await asyncio.wait_for(awaitable, 20)
