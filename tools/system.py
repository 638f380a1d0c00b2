"""Check that Node, a Chromium and a Vulkan driver are there, and install what is missing where apt and root are.

Runs before anything is installed, on a bare Python.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

# the same as in tensorgrad/testing/browser.py, which a bare Python may not import
CHROMIUM_NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)


def main() -> None:
    """Install or name what is missing; stop where it cannot be had."""
    if sys.version_info < (3, 11):  # noqa: UP036  (any Python may start this)
        sys.exit(f"error: Python 3.11 or newer is needed, not {sys.version.split()[0]}: make PYTHON=python3.12 ...")
    packages = missing() + missing_for_tests()
    if not packages:
        return
    if shutil.which("apt-get") and hasattr(os, "geteuid") and os.geteuid() == 0:
        print("installing:", *packages, flush=True)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        quiet = ["-qq", "-o", "Dpkg::Use-Pty=0"]
        subprocess.run(["apt-get", *quiet, "update"], env=environment, check=True)
        subprocess.run(
            ["apt-get", *quiet, "install", "-y", "--no-install-recommends", *packages],
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
    if missing_for_tests():
        print("note: `make test` needs a Vulkan driver too; Debian's mesa-vulkan-drivers has one that needs no GPU")
    if packages := missing():
        sys.exit(
            "error: these Debian packages, or what your system has in their place, are needed: "
            f"{' '.join(packages)}\nOn Debian: sudo apt-get install {' '.join(packages)}\n"
            "A Chromium or Google Chrome anywhere else works too: set TENSORGRAD_CHROMIUM to its path."
        )


def missing() -> list[str]:
    """Debian's names of what is not there."""
    found = []
    try:
        import ensurepip  # noqa: F401  (Debian splits it from Python)
        import venv  # noqa: F401
    except ImportError:
        found.append("python3-venv")
    if shutil.which("node") is None:
        found.append("nodejs")
    if shutil.which("npm") is None:
        found.append("npm")
    if not any(map(shutil.which, (os.environ.get("TENSORGRAD_CHROMIUM") or "", *CHROMIUM_NAMES))):
        found.append("chromium-headless-shell")
    return found


def missing_for_tests() -> list[str]:
    """The same of a Vulkan driver, on which the tests of the second shader compiler run: a demo does without."""
    roots = ("/usr/share", "/usr/local/share", "/etc")
    drivers = os.environ.get("VK_DRIVER_FILES") or [f for r in roots for f in Path(r).glob("vulkan/icd.d/*.json")]
    try:
        ctypes.CDLL("libvulkan.so.1")
    except OSError:
        drivers = []
    return [] if drivers or sys.platform != "linux" else ["mesa-vulkan-drivers"]


if __name__ == "__main__":
    main()
