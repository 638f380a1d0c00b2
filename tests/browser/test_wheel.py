"""The wheel and the site made of it: the same bytes each time, and pages that load them in every way offered."""

from __future__ import annotations

import ast
import json
import queue
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assemble_site import WEB, add_wheel, allow, lock_entry, pyodide_from_cdn
from build_wheel import build
from compile_pyodide import CDN_CORE, CDN_WHEELS, compile_archives
from pages import policy_of
from paths import DIST, DOWNLOADS, SITE, integrity, sha256
from tensorgrad.testing.browser import CHROMIUM_FLAGS, SOFTWARE_ADAPTER, BrowserThread, find_chromium
from tensorgrad.testing.server import StaticServer

PAGE = b"""<!doctype html>
<script type="module">
  window.python = async (source) => {
    const { loadPyodide } = await import("./pyodide/pyodide.mjs");
    const lockFileURL = new URL("./pyodide/pyodide-lock.json", location).href;
    const pyodide = await loadPyodide({ indexURL: "./pyodide/", lockFileURL });
    return await pyodide.runPythonAsync(source);
  };
</script>
"""

TRAIN = """
    from tensorgrad import nn, optim
    import numpy as np

    def loss_fn(model, x, y):
        return tg.mse_loss(model(x), y)

    inputs = {"x": tg.f32[8, 2], "y": tg.f32[8, 1]}
    train = await tg.compile(nn.Linear(2, 1), loss_fn, optim.SGD(0.1), inputs, device="webgpu")
    x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(8, 2)
    losses = [(await train.step(x=x, y=x[:, :1] + 1)).loss for _ in range(50)]
    train.destroy()
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[BrowserThread]:
    running = BrowserThread(find_chromium(), (*CHROMIUM_FLAGS, SOFTWARE_ADAPTER))
    yield running
    running.close()


@pytest.fixture
def python(browser: BrowserThread) -> Callable[..., Any]:
    """Run Python in a page that serves the given mounts, and return the value of the last line."""

    def run(mounts: dict[str, Path | bytes], source: str) -> Any:
        with StaticServer({"/page.html": PAGE, **mounts}) as server:
            messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
            page = browser.open(server.url + "/page.html", lambda message: messages.put(message), lambda: None)
            try:
                return browser.call(page.evaluate("source => window.python(source)", source), timeout=120.0)
            finally:
                browser.close_page(page)

    return run


@pytest.fixture(scope="module")
def wheel() -> Path:
    (wheel,) = DIST.glob("tensorgrad_webgpu-*.whl")
    return wheel


def test_the_wheel_is_pure_and_always_the_same(tmp_path: Path):
    wheel = build(tmp_path / "first")
    assert sha256(wheel) == sha256(build(tmp_path / "second"))
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {"tensorgrad/py.typed", "tensorgrad/device/replay.js", "tensorgrad/testing/harness.mjs"} <= set(names)
    assert all(name.startswith(("tensorgrad/", "tensorgrad_webgpu-")) for name in names)


def test_bytecode_is_always_the_same(wheel: Path, tmp_path: Path):
    compile_archives([wheel], tmp_path)
    assert sha256(tmp_path / wheel.name) == sha256(SITE / "pyodide" / wheel.name)
    with zipfile.ZipFile(tmp_path / wheel.name) as archive:
        names = set(archive.namelist())
        record = archive.read(next(name for name in names if name.endswith("/RECORD"))).decode()
    sources = {name for name in names if name.endswith(".py")}
    assert {"tensorgrad/tensor.py", "tensorgrad/__pycache__/tensor.cpython-314.pyc"} <= names
    assert len(sources) == sum(name.endswith(".pyc") for name in names)
    assert {line.partition(",")[0] for line in record.splitlines()} == names


def test_the_lock_has_our_wheel(wheel: Path):
    lock = json.loads((SITE / "pyodide" / "pyodide-lock.json").read_text())["packages"]
    assert lock["tensorgrad-webgpu"] == lock_entry(SITE / "pyodide" / wheel.name)
    assert lock["tensorgrad-webgpu"]["depends"] == ["numpy"]
    for entry in lock.values():
        assert sha256(SITE / "pyodide" / entry["file_name"]) == entry["sha256"]


def test_micropip_installs_the_wheel_in_a_stock_page(python: Callable[..., Any], wheel: Path):
    text = python(
        {"/pyodide/": DOWNLOADS, "/dist/": DIST},
        f"""
    import js, pyodide_js
    await pyodide_js.loadPackage("micropip")
    import micropip
    await micropip.install(js.location.origin + "/dist/{wheel.name}")
    import tensorgrad as tg
    {TRAIN}
    str((losses[0], losses[-1], tg.__version__, train.state.steps))
    """,
    )
    first, last, version, steps = ast.literal_eval(text)
    assert last < first / 10
    assert steps == 50
    assert version == wheel.name.split("-")[1]


def test_the_site_imports_bytecode_and_keeps_sources(python: Callable[..., Any]):
    text = python(
        {"/pyodide/": SITE / "pyodide"},
        """
    import pyodide_js
    await pyodide_js.loadPackage("tensorgrad-webgpu")
    import inspect, pathlib, sys
    import numpy as np
    import tensorgrad as tg
    bytecode = pathlib.Path(sys.modules["tensorgrad.tensor"].__spec__.cached)
    str((np.__file__, inspect.getsource(tg.Tensor).splitlines()[0], bytecode.read_bytes()[4:8]))
    """,
    )
    numpy_file, line, flags = ast.literal_eval(text)
    assert numpy_file.endswith("numpy/__init__.pyc")
    assert line.startswith("class Tensor")
    assert flags == b"\x01\x00\x00\x00"  # made from a hash of the source, which is not looked at


def test_a_site_can_take_pyodide_from_another_origin(python: Callable[..., Any], tmp_path: Path, wheel: Path):
    with StaticServer({"/cdn/": DOWNLOADS}) as cdn:
        remote = pyodide_from_cdn(tmp_path / "pyodide", cdn.url + "/cdn/", cdn.url + "/cdn/")
        add_wheel(tmp_path / "pyodide")
        # What is executed as JavaScript is the site's own.
        assert sorted(file.name for file in (tmp_path / "pyodide").iterdir()) == sorted(
            ["pyodide.mjs", "loader.mjs", "pyodide.asm.mjs", "pyodide-lock.json", wheel.name]
        )
        assert not [address for address in remote if address.endswith("js")]
        assert {f"{cdn.url}/cdn/{name}" for name in ("pyodide.asm.wasm", "python_stdlib.zip")} < set(remote)
        text = python(
            {"/pyodide/": tmp_path / "pyodide"},
            """
    import pyodide_js
    await pyodide_js.loadPackage("tensorgrad-webgpu")
    import numpy as np
    import tensorgrad as tg
    str((np.__file__, tg.__version__))
    """,
        )
        # What has another hash than it should have is not taken.
        loader, right = tmp_path / "pyodide" / "pyodide.mjs", remote[cdn.url + "/cdn/python_stdlib.zip"]
        loader.write_text(loader.read_text().replace(right, integrity(sha256(wheel))))
        with pytest.raises(Exception, match="ExitStatus"):  # without the file Python gives up
            python({"/pyodide/": tmp_path / "pyodide"}, "1")
    numpy_file, version = ast.literal_eval(text)
    assert numpy_file.endswith("numpy/__init__.py")
    assert version in wheel.name


def test_only_a_site_that_uses_a_cdn_allows_it_and_for_data_alone(tmp_path: Path):
    headers = tmp_path / "_headers"
    shutil.copy(WEB / "_headers", headers)
    assert allow(headers, ()) == policy_of(WEB / "_headers")
    assert allow(headers, (CDN_CORE, CDN_WHEELS)) == policy_of(headers)
    before, after = (
        {name: sources for name, *sources in (part.split() for part in policy_of(file).split(";"))}
        for file in (WEB / "_headers", headers)
    )
    assert after.pop("connect-src") == [*before.pop("connect-src"), CDN_CORE, CDN_WHEELS]
    assert after == before
