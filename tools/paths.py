"""Where the tools put things, and the few helpers that several of them use."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
DIST = ROOT / "dist"
OUT = ROOT / "out"

DOWNLOADS = BUILD / "downloads"
"""Pyodide and its wheels exactly as published, verified."""

PYODIDE = BUILD / "pyodide"
"""The same with bytecode in place of the sources, before our wheel joins."""

SITE = BUILD / "site"
"""The static site: the contents of web/, `pyodide/` and `data/`."""

SOURCE_DATE_EPOCH = "1767225600"
"""The time stamp inside what is built, 2026-01-01: the same source gives the same bytes."""


def run(command: Sequence[str | Path], *, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """Run a command, return what it printed; on failure show that and exit."""
    words = [str(word) for word in command]
    if shutil.which(words[0]) is None:
        fail(f"{words[0]} was not found; install it and run this again.")
    done = subprocess.run(
        words,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        text=True,
        capture_output=True,
    )
    if done.returncode != 0:
        fail(f"{' '.join(words)}\nfailed with exit status {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def fail(message: str) -> NoReturn:
    """Say what went wrong and stop."""
    print(f"error: {message}", file=sys.stderr)
    raise SystemExit(1)


def integrity(digest: str) -> str:
    """A SHA-256 in hex as `fetch` and the service worker want it."""
    return "sha256-" + base64.b64encode(bytes.fromhex(digest)).decode()


def sha256(path: Path) -> str:
    """The hash that Pyodide's lock file uses."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fresh(folder: Path) -> Path:
    """An empty folder at that path."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
