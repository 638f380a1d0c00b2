"""Build the wheel into `dist/`, the same bytes for the same source."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from paths import BUILD, DIST, ROOT, SOURCE_DATE_EPOCH, fresh, run, sha256


def main() -> None:
    """Build, and show the wheel's hash."""
    wheel = build()
    print(f"{wheel.relative_to(ROOT)}  sha256 {sha256(wheel)}  {wheel.stat().st_size / 1e3:.0f} kB")


def build() -> Path:
    """Build the wheel and return its path."""
    scratch = fresh(BUILD / "wheel")
    run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", scratch, ROOT],
        env={"SOURCE_DATE_EPOCH": SOURCE_DATE_EPOCH},
    )
    (wheel,) = scratch.glob("*.whl")
    DIST.mkdir(exist_ok=True)
    for old in DIST.glob("tensorgrad_webgpu-*.whl"):
        old.unlink()
    return Path(shutil.move(wheel, DIST / wheel.name))


if __name__ == "__main__":
    main()
