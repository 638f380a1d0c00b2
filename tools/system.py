"""Check that Node, the browsers and a Vulkan driver are there, and install what is missing where apt and root are.

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

FIREFOX_NAMES = (
    "firefox-esr",
    "firefox",
    "/Applications/Firefox.app/Contents/MacOS/firefox",
)


def main() -> None:
    """Install or name what is missing; stop where it cannot be had."""
    if sys.version_info < (3, 11):  # noqa: UP036  (any Python may start this)
        sys.exit(f"error: Python 3.11 or newer is needed, not {sys.version.split()[0]}: make PYTHON=python3.12 ...")
    install(missing(), needed=True)
    install(missing_for_tests(), needed=False)
    if packages := missing_for_tests():
        print(
            f"note: `make test` needs {' and '.join(packages)} too, or what your system has in their place: a Vulkan "
            "driver, of which Mesa has one that needs no GPU, and a Firefox, whose path may stand in TENSORGRAD_FIREFOX"
        )
    if packages := missing():
        sys.exit(
            "error: these Debian packages, or what your system has in their place, are needed: "
            f"{' '.join(packages)}\nOn Debian: sudo apt-get install {' '.join(packages)}\n"
            "A Chromium or Google Chrome anywhere else works too: set TENSORGRAD_CHROMIUM to its path."
        )


def install(packages: list[str], *, needed: bool) -> None:
    """Install Debian packages where apt and root are there; one that apt does not have is an error if it is needed."""
    if not packages or shutil.which("apt-get") is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        return
    print("installing:", *packages, flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    quiet = ["apt-get", "-qq", "-o", "Dpkg::Use-Pty=0"]
    for command in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        subprocess.run([*quiet, *command], env=environment, check=needed, stdout=subprocess.DEVNULL)


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
    """The same of a Vulkan driver and a Firefox, on which the tests of the second shader compiler run: a demo does
    without."""
    roots = ("/usr/share", "/usr/local/share", "/etc")
    drivers = os.environ.get("VK_DRIVER_FILES") or [f for r in roots for f in Path(r).glob("vulkan/icd.d/*.json")]
    try:
        ctypes.CDLL("libvulkan.so.1")
    except OSError:
        drivers = []
    found = [] if drivers or sys.platform != "linux" else ["mesa-vulkan-drivers"]
    return found if find_firefox() else [*found, "firefox-esr"]


def find_firefox() -> str | None:
    """The path of a Firefox: `$TENSORGRAD_FIREFOX`, or the first that is installed."""
    wanted = os.environ.get("TENSORGRAD_FIREFOX")
    return next(filter(None, map(shutil.which, [wanted] if wanted else FIREFOX_NAMES)), None)


if __name__ == "__main__":
    main()
