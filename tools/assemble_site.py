"""Assemble `build/site`: the pages of web/, Pyodide, our wheel with bytecode, vendored libraries and data.

`PYODIDE=cdn` in the environment makes a small site that takes Pyodide and numpy from
Pyodide's CDN (as sources, so it starts slower); by default everything is hosted here.
"""

from __future__ import annotations

import base64
import email
import hashlib
import json
import os
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from compile_pyodide import CDN, compile_archives, cut_lock, write_lock
from pages import rendered
from paths import BUILD, DIST, DOWNLOADS, PYODIDE, ROOT, SITE, fail, fresh, run, sha256
from vendor import vendor

WEB = ROOT / "web"
NOT_SERVED = ("vendor.json", "lessons.json", "drawing.svg", "templates", "__pycache__")
CDN_LOADER = """// Pyodide from its CDN, with this site's lock file.
import { loadPyodide as load } from "{cdn}pyodide.mjs";
export const loadPyodide = (options) => load({ ...options, indexURL: "{cdn}" });
"""


def main() -> None:
    """Fill `build/site`, replacing what is there."""
    target = fresh(BUILD / "site.new")
    if WEB.is_dir():
        shutil.copytree(WEB, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*NOT_SERVED))
        for path, text in rendered().items():
            (target / path).write_text(text, encoding="utf-8")
        vendor(fresh(target / "vendor"))
    (target / "tensorgrad").mkdir()
    for name in ("replay.js", "program.js"):
        shutil.copy(ROOT / "tensorgrad" / "device" / name, target / "tensorgrad" / name)
    shutil.copytree(BUILD / "data", target / "data")
    place = os.environ.get("PYODIDE") or "self"
    if place == "cdn":
        pyodide_from_cdn(target / "pyodide", CDN)
    elif place == "self":
        shutil.copytree(PYODIDE, target / "pyodide")
    else:
        fail(f"PYODIDE is {place!r}; it can be 'self' (host it with the site) or 'cdn'")
    add_wheel(target / "pyodide")
    write_sizes(target)
    list_files(target)
    shutil.rmtree(SITE, ignore_errors=True)
    target.rename(SITE)
    size = sum(file.stat().st_size for file in SITE.rglob("*") if file.is_file())
    print(f"{SITE.relative_to(ROOT)}: {size / 1e6:.1f} MB")


def write_sizes(target: Path) -> None:
    """Tell the loader how large the files are that it waits for, each by the start of its name."""
    folder = target / "pyodide" if (target / "pyodide" / "pyodide.asm.wasm").exists() else DOWNLOADS
    (wheel,) = (target / "pyodide").glob("tensorgrad_webgpu-*.whl")
    (numpy,) = folder.glob("numpy-*.whl")
    files = {name: folder / name for name in ("pyodide.asm.wasm", "python_stdlib.zip")}
    sizes = {name: file.stat().st_size for name, file in {**files, "numpy": numpy, "tensorgrad": wheel}.items()}
    module = target / "worker" / "sizes.js"
    module.write_text(module.read_text().replace("SIZES = {}", f"SIZES = {json.dumps(sizes)}"))


def list_files(target: Path) -> None:
    """What the service worker keeps, each file with its hash; and their common version, in the list and in itself."""
    files = {
        path.relative_to(target).as_posix(): "sha256-" + base64.b64encode(bytes.fromhex(sha256(path))).decode()
        for path in sorted(target.rglob("*"))
        if path.is_file() and path.name not in ("_headers", "service.js")
    }
    version = hashlib.sha256(json.dumps(files).encode()).hexdigest()[:16]
    (target / "files.json").write_text(json.dumps({"version": version, "files": files}, indent=1))
    worker = target / "service.js"
    worker.write_text(worker.read_text().replace("'unversioned'", f"'{version}'"))


def pyodide_from_cdn(target: Path, cdn: str) -> None:
    """A loader that points to the CDN, and a lock with the CDN's addresses."""
    target.mkdir()
    (target / "pyodide.mjs").write_text(CDN_LOADER.replace("{cdn}", cdn))
    lock = json.loads((DOWNLOADS / "pyodide-lock.json").read_text())
    write_lock(target / "pyodide-lock.json", cut_lock(lock, hosted_at=cdn))


def add_wheel(target: Path) -> None:
    """Put our wheel, with bytecode beside its sources, into the folder and its lock."""
    (wheel,) = DIST.glob("tensorgrad_webgpu-*.whl")
    compile_archives([wheel], target)
    lock_wheel(target / "pyodide-lock.json", target / wheel.name)


def lock_wheel(path: Path, wheel: Path) -> None:
    """Add a wheel to a lock file, so that Pyodide finds it by its name and by what it imports.

    That is pyodide-build's part; below Python 3.12, where no release of it knows this lock
    format, the same entry is made here.
    """
    if sys.version_info >= (3, 12):
        command = Path(sys.executable).with_name("pyodide")
        run(
            [
                command,
                "lockfile",
                "add-wheels",
                "--input",
                path,
                "--output",
                path,
                "--base-path",
                wheel.parent,
                wheel,
            ]
        )
    lock = json.loads(path.read_text())
    lock["packages"].setdefault("tensorgrad-webgpu", lock_entry(wheel))
    for entry in [lock, *lock["packages"].values()]:
        entry.pop("tool", None)  # empty, and only some versions write it
    if lock["packages"]["tensorgrad-webgpu"]["sha256"] != sha256(wheel):
        fail(f"{path} does not have the hash of {wheel.name}")
    write_lock(path, lock)


def lock_entry(wheel: Path) -> dict[str, Any]:
    """What a lock file says about our wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(archive.read(name))
    needed = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
    return {
        "name": "tensorgrad-webgpu",
        "version": metadata["Version"],
        "file_name": wheel.name,
        "install_dir": "site",
        "sha256": sha256(wheel),
        "package_type": "package",
        "imports": ["tensorgrad"],
        "depends": [canonicalize_name(need.name) for need in needed if need.marker is None],
        "unvendored_tests": False,
    }


if __name__ == "__main__":
    main()
