"""Assemble `build/site`: the pages of web/, Pyodide, our wheel with bytecode, vendored libraries and data.

`PYODIDE=cdn` in the environment makes a small site that takes what is large of Pyodide, and numpy, from a CDN (as
sources, so it starts slower); by default everything is hosted here.
"""

from __future__ import annotations

import email
import hashlib
import json
import os
import shutil
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import docs_site
from compile_pyodide import CDN_CORE, CDN_WHEELS, compile_archives, cut_lock, write_lock
from pages import policy_of, rendered
from paths import BUILD, DIST, DOWNLOADS, PYODIDE, ROOT, SITE, fail, fresh, integrity, run, sha256
from vendor import vendor

WEB = ROOT / "web"
NOT_SERVED = ("vendor.json", "lessons.json", "drawing.svg", "templates", "__pycache__")
CDN_LOADER = """// Pyodide, whose large files come from a CDN: data, each file checked against its hash.
// The JavaScript is this site's own, so that the policy need not allow any other.
import { loadPyodide as load } from './loader.mjs';

const CDN = '{cdn}';
const FILES = {files};

export async function loadPyodide(options) {
  const before = globalThis.fetch;
  globalThis.fetch = (input, init) => {
    const file = String(input.url ?? input).split('/').pop();
    return file in FILES ? before(CDN + file, { ...init, integrity: FILES[file] }) : before(input, init);
  };
  try {
    return await load(options);
  } finally {
    globalThis.fetch = before;
  }
}
"""
FROM_CDN = ("pyodide.asm.wasm", "python_stdlib.zip")


def main() -> None:
    """Fill `build/site`, replacing what is there."""
    place = os.environ.get("PYODIDE") or "self"
    if place not in ("self", "cdn"):
        fail(f"PYODIDE is {place!r}; it can be 'self' (host it with the site) or 'cdn'")
    places = (CDN_CORE, CDN_WHEELS) if place == "cdn" else ()
    target = fresh(BUILD / "site.new")
    if WEB.is_dir():
        shutil.copytree(WEB, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*NOT_SERVED))
        for path, text in rendered(allow(target / "_headers", places)).items():
            (target / path).write_text(text, encoding="utf-8")
        docs_site.write(target / "docs")
        vendor(fresh(target / "vendor"))
    (target / "tensorgrad").mkdir()
    for name in ("replay.js", "program.js"):
        shutil.copy(ROOT / "tensorgrad" / "device" / name, target / "tensorgrad" / name)
    shutil.copytree(BUILD / "data", target / "data")
    remote: dict[str, str] = {}
    if place == "cdn":
        remote = pyodide_from_cdn(target / "pyodide", *places)
    else:
        shutil.copytree(PYODIDE, target / "pyodide")
    add_wheel(target / "pyodide")
    write_sizes(target)
    list_files(target, remote)
    shutil.rmtree(SITE, ignore_errors=True)
    target.rename(SITE)
    size = sum(file.stat().st_size for file in SITE.rglob("*") if file.is_file())
    print(f"{SITE.relative_to(ROOT)}: {size / 1e6:.1f} MB")


def allow(headers: Path, places: Sequence[str]) -> str:
    """Have the policy of a file of headers allow that data comes from these places too, and give it."""
    text = headers.read_text(encoding="utf-8")
    headers.write_text(text.replace("connect-src 'self'", " ".join(("connect-src 'self'", *places))), encoding="utf-8")
    return policy_of(headers)


def write_sizes(target: Path) -> None:
    """Tell the loader how large the files are that it waits for, each by the start of its name."""
    folder = target / "pyodide" if (target / "pyodide" / "pyodide.asm.wasm").exists() else DOWNLOADS
    (wheel,) = (target / "pyodide").glob("tensorgrad_webgpu-*.whl")
    (numpy,) = folder.glob("numpy-*.whl")
    files = {name: folder / name for name in ("pyodide.asm.wasm", "python_stdlib.zip")}
    sizes = {name: file.stat().st_size for name, file in {**files, "numpy": numpy, "tensorgrad": wheel}.items()}
    module = target / "worker" / "sizes.js"
    module.write_text(module.read_text().replace("SIZES = {}", f"SIZES = {json.dumps(sizes)}"))


def list_files(target: Path, remote: dict[str, str]) -> None:
    """What the service worker keeps, each file with its hash; and their common version, in the list and in itself.

    Args:
        remote: of files that come from elsewhere, by address.
    """
    files = {
        path.relative_to(target).as_posix(): integrity(sha256(path))
        for path in sorted(target.rglob("*"))
        if path.is_file()
        and path.name not in ("_headers", "service.js")
        and not (path.parent == target / "docs" and docs_site.is_packed(path.name))
    }
    files |= remote
    version = hashlib.sha256(json.dumps(files).encode()).hexdigest()[:16]
    (target / "files.json").write_text(json.dumps({"version": version, "files": files}, indent=1))
    worker = target / "service.js"
    worker.write_text(worker.read_text().replace("'unversioned'", f"'{version}'"))


def pyodide_from_cdn(target: Path, core: str, wheels: str) -> dict[str, str]:
    """Pyodide's JavaScript, a loader that takes the rest from two places of a CDN, and a lock with its addresses.

    Returns:
        The hash of each file that comes from there, by address.
    """
    target.mkdir()
    files = {name: integrity(sha256(DOWNLOADS / name)) for name in FROM_CDN}
    shutil.copy(DOWNLOADS / "pyodide.mjs", target / "loader.mjs")
    shutil.copy(DOWNLOADS / "pyodide.asm.mjs", target)
    loader = CDN_LOADER.replace("{cdn}", core).replace("{files}", json.dumps(files))
    (target / "pyodide.mjs").write_text(loader)
    lock = cut_lock(json.loads((DOWNLOADS / "pyodide-lock.json").read_text()), hosted_at=wheels)
    write_lock(target / "pyodide-lock.json", lock)
    packages = {entry["file_name"]: integrity(entry["sha256"]) for entry in lock["packages"].values()}
    return {core + name: digest for name, digest in files.items()} | packages


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
