"""Build the wheel into `dist/`, the same bytes for the same source."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from paths import BUILD, DIST, ROOT, SOURCE_DATE_EPOCH, fresh, run, sha256


def main() -> None:
    """Build, and show the wheel's hash."""
    built = build(BUILD / "wheel")
    DIST.mkdir(exist_ok=True)
    for old in DIST.glob("tensorgrad_webgpu-*.whl"):
        old.unlink()
    wheel = Path(shutil.move(built, DIST / built.name))
    print(f"{wheel.relative_to(ROOT)}  sha256 {sha256(wheel)}  {wheel.stat().st_size / 1e3:.0f} kB")


def build(target: Path) -> Path:
    """Build the wheel as the only file of that folder, and return its path."""
    run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", fresh(target), ROOT],
        env={"SOURCE_DATE_EPOCH": SOURCE_DATE_EPOCH},
    )
    (wheel,) = target.glob("*.whl")
    return wheel


if __name__ == "__main__":
    main()
