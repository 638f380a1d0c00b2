"""Make `build/pyodide` of `build/downloads`: the same files with bytecode, and a lock cut to what is there.

Pyodide and its wheels ship sources only, and compiling them in the page is half of the
time that a reader waits. Here Pyodide itself, run under Node, compiles them once.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from fetch_pyodide import CORE, PACKAGES, PYODIDE_VERSION
from paths import BUILD, DOWNLOADS, PYODIDE, fresh, run, sha256

CDN_CORE = f"https://cdn.jsdelivr.net/npm/pyodide@{PYODIDE_VERSION}/"
"""npm's package, the same bytes as in `build/downloads`."""

CDN_WHEELS = f"https://cdn.jsdelivr.net/pyodide/v{PYODIDE_VERSION}/full/"


def main() -> None:
    """Fill `build/pyodide`."""
    lock = json.loads((DOWNLOADS / "pyodide-lock.json").read_text())
    target = fresh(PYODIDE)
    wheels = [lock["packages"][name]["file_name"] for name in PACKAGES]
    archives = [DOWNLOADS / name for name in ["python_stdlib.zip", *wheels]]
    compile_archives(archives, target)
    for name in CORE:
        if not (target / name).exists():
            shutil.copy(DOWNLOADS / name, target / name)
    write_lock(target / "pyodide-lock.json", cut_lock(lock, hosted_in=target))
    size = sum(file.stat().st_size for file in target.iterdir())
    print(f"{target.relative_to(BUILD.parent)}: {size / 1e6:.1f} MB with bytecode")


def compile_archives(archives: list[Path], target: Path) -> None:
    """Write each archive with its sources compiled, under the same name, into `target`."""
    with tempfile.TemporaryDirectory() as name:
        exchange = Path(name)
        (exchange / "in").mkdir()
        (exchange / "out").mkdir()
        for archive in archives:
            shutil.copy(archive, exchange / "in")
        run(["node", Path(__file__).parent / "bytecode.mjs", DOWNLOADS, exchange])
        for archive in archives:
            compiled = shutil.move(exchange / "out" / archive.name, target / archive.name)
            Path(compiled).chmod(0o644)


def cut_lock(lock: dict, *, hosted_in: Path | None = None, hosted_at: str = "") -> dict:
    """The lock with `PACKAGES` only: as they are in a folder beside it, or unchanged at another address."""
    packages = {}
    for name in PACKAGES:
        entry = dict(lock["packages"][name])
        if hosted_in is not None:
            entry["sha256"] = sha256(hosted_in / entry["file_name"])
        entry["file_name"] = hosted_at + entry["file_name"]
        packages[name] = entry
    return {**lock, "packages": packages}


def write_lock(path: Path, lock: dict) -> None:
    """Write a lock file, the same bytes for the same content."""
    path.write_text(json.dumps(lock, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
