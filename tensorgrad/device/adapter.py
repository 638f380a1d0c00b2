"""Finding the browser's GPU: asking for a device, what it allows, and the JavaScript helper."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tensorgrad.device.base import Limits
from tensorgrad.errors import NoDeviceError

MATRICES = "chromium-experimental-subgroup-matrix"

WANTED_FEATURES = ("timestamp-query", "subgroups", "shader-f16", MATRICES)

WANTED_LIMITS = (
    "maxStorageBuffersPerShaderStage",
    "maxStorageBufferBindingSize",
    "maxBufferSize",
    "maxComputeInvocationsPerWorkgroup",
    "maxComputeWorkgroupSizeX",
    "maxComputeWorkgroupSizeY",
    "maxComputeWorkgroupSizeZ",
    "maxComputeWorkgroupStorageSize",
)


async def request_js_device(power_preference: str, features: Iterable[str]) -> tuple[Any, Any]:
    """A JavaScript GPUDevice with the highest limits its adapter has, and its GPUAdapterInfo.

    Raises:
        NoDeviceError: there is no WebGPU here, or WebGPU has no adapter.
    """
    gpu = _navigator_gpu()
    adapter = await gpu.requestAdapter(_object({"powerPreference": power_preference}))
    if not adapter:
        raise NoDeviceError(
            "WebGPU is here, but the browser has no GPU adapter to offer: the driver may be blocked or "
            "hardware acceleration switched off (chrome://gpu tells). device='numpy' trains small models "
            "without one"
        )
    wanted = [name for name in dict.fromkeys((*WANTED_FEATURES, *features)) if adapter.features.has(name)]
    limits = {name: getattr(adapter.limits, name) for name in WANTED_LIMITS}
    from pyodide.ffi import JsException

    try:
        device = await adapter.requestDevice(
            _object({"label": "tensorgrad", "requiredFeatures": wanted, "requiredLimits": limits})
        )
    except JsException as error:
        raise NoDeviceError(f"the GPU adapter refused to give a device: {error}") from None
    return device, getattr(adapter, "info", None)


def _navigator_gpu() -> Any:
    try:
        import js
    except ImportError:
        raise NoDeviceError(
            "there is no WebGPU here: this Python does not run in a browser. Use device='numpy', or run in a page"
        ) from None
    gpu = getattr(getattr(js, "navigator", None), "gpu", None)
    if gpu:
        return gpu
    insecure = not getattr(js, "isSecureContext", True)
    why = (
        "this page comes from an insecure origin, where browsers hide WebGPU. Serve it from https:// or "
        "http://localhost"
        if insecure
        else "this browser does not offer it (on an insecure origin, plain http://, none does). Use a recent "
        "Chrome, Edge, Firefox or Safari"
    )
    raise NoDeviceError(f"there is no WebGPU here, navigator.gpu is missing: {why}; or use device='numpy'")


def _object(value: dict[str, Any]) -> Any:
    """A dict as a plain JavaScript object."""
    import js
    from pyodide.ffi import to_js

    return to_js(value, dict_converter=js.Object.fromEntries)


@functools.cache
def load_helper() -> Any:
    """The exports of replay.js: the module that the page registered, or else the text of both files, evaluated."""
    try:
        import tensorgrad_replay

        return tensorgrad_replay
    except ImportError:
        from pyodide.code import run_js

        program, replay = (_text(name) for name in ("program.js", "replay.js"))
        return run_js("(() => {" + program + replay.replace("\nexport {", "\nreturn {") + "})()")


def _text(name: str) -> str:
    """A JavaScript file of ours without its import; only the last one's exports matter."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    text = text[: text.index("\nexport {")] if name == "program.js" else text
    return "\n".join(line for line in text.splitlines() if not line.startswith("import {"))


def read_limits(device: Any, info: Any = None) -> Limits:
    """What a JavaScript GPUDevice allows."""
    limits, features = device.limits, frozenset(str(name) for name in device.features)
    info = info or getattr(device, "adapterInfo", None)
    parts = [str(getattr(info, key, "") or "") for key in ("vendor", "architecture", "device", "description")]
    adapter = " ".join(part for part in parts if part) or "unknown adapter"
    sizes = {getattr(info, key, None) for key in ("subgroupMinSize", "subgroupMaxSize")}
    (size,) = sizes if len(sizes) == 1 else (None,)
    configs = getattr(info, "subgroupMatrixConfigs", None) or () if MATRICES in features else ()
    wanted = ("f16", "f32", 16, 16, 16)
    names = ("swiftshader", "llvmpipe", "lavapipe", "softpipe", "basic render")
    return Limits(
        storage_buffers=limits.maxStorageBuffersPerShaderStage,
        invocations=limits.maxComputeInvocationsPerWorkgroup,
        workgroup_size=(
            limits.maxComputeWorkgroupSizeX,
            limits.maxComputeWorkgroupSizeY,
            limits.maxComputeWorkgroupSizeZ,
        ),
        workgroup_storage=limits.maxComputeWorkgroupStorageSize,
        binding_size=limits.maxStorageBufferBindingSize,
        buffer_size=limits.maxBufferSize,
        subgroup_size=size if "subgroups" in features and size else None,
        features=features,
        adapter=adapter,
        matrices=size == 32 and any((c.componentType, c.resultComponentType, c.M, c.N, c.K) == wanted for c in configs),
        software=bool(getattr(info, "isFallbackAdapter", False)) or any(n in adapter.lower() for n in names),
    )
