"""Where a compiled graph runs: WebGPU in a browser, NumPy, or an interpreter of the shaders."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, NoReturn

from tensorgrad.errors import ArgumentError


class _Package(ModuleType):
    """Which PyTorch's programs call, as they do torch.device."""

    def __call__(self, *name: Any) -> NoReturn:
        raise ArgumentError("a device is chosen when a model is compiled: tg.compile(..., device='webgpu')")


sys.modules[__name__].__class__ = _Package
