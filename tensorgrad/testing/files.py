"""What the page needs of this machine, packed into one archive.

Two kinds of files go into Pyodide's file system: the tests with what is beside them, at
`/project`, which stands for pytest's root folder; and Python packages of this
environment, at `/packages`, so that the page has the same pytest, the same tensorgrad
and the same project under test as this process, without building anything.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import io
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

PYTEST_PACKAGES = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")
"""pytest and all that it imports; each is pure Python."""

SKIPPED_FOLDERS = {"__pycache__", "node_modules", "build", "dist", "venv"}
BINARY_SUFFIXES = (".so", ".pyd", ".dylib")


class FilesError(Exception):
    """Something that was to be sent to the page cannot be."""


def bundle(root: Path, tests: Iterable[Path], packages: Iterable[str], patterns: Iterable[str]) -> bytes:
    """A zip archive, to be unpacked at `/`.

    Args:
        root: pytest's root folder.
        tests: the test files that will run.
        packages: import names of packages to copy.
        patterns: glob patterns, relative to the root, of further files.
    """
    content = {f"project/{file.relative_to(root).as_posix()}": file for file in _project_files(root, tests, patterns)}
    for package in packages:
        content |= {f"packages/{name}": file for file, name in _package_files(package)}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, file in sorted(content.items()):
            archive.writestr(zipfile.ZipInfo(name), file.read_bytes())
    return buffer.getvalue()


def _project_files(root: Path, tests: Iterable[Path], patterns: Iterable[str]) -> set[Path]:
    """All modules in the test files' top folders, the root's conftest.py, and what the patterns name."""
    files = {root / "conftest.py"} & set(root.glob("conftest.py"))
    for test in set(tests):
        if not test.is_relative_to(root):
            raise FilesError(f"{test} is outside of pytest's root folder {root}, so it cannot run in a page")
        top = test.relative_to(root).parts[0]
        files.update(_modules(root / top) if (root / top).is_dir() else root.glob("*.py"))
    for pattern in patterns:
        found = {path for path in root.glob(pattern) if path.is_file()}
        if not found:
            raise FilesError(f"tensorgrad_files: no file in {root} matches {pattern!r}")
        files |= found
    return files


def _modules(folder: Path) -> Iterator[Path]:
    """Every Python file in a folder and those below it, but for caches and hidden folders."""
    for entry in folder.iterdir():
        if entry.is_dir():
            if entry.name not in SKIPPED_FOLDERS and not entry.name.startswith("."):
                yield from _modules(entry)
        elif entry.suffix in (".py", ".pyi"):
            yield entry


def _package_files(name: str) -> Iterator[tuple[Path, str]]:
    """The files of a package or module of this environment with their names in the archive."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise FilesError(
            f"there is no package {name!r} in this Python environment to send to the page; install it here, or take it "
            "out of `tensorgrad_packages`"
        )
    if spec.submodule_search_locations is None:
        if spec.origin is None or not spec.origin.endswith(".py"):
            raise FilesError(f"{name!r} is not pure Python; Pyodide needs a build of its own of it")
        yield Path(spec.origin), f"{name}.py"
    for place in spec.submodule_search_locations or ():
        for file in sorted(Path(place).rglob("*")):
            if file.suffix in BINARY_SUFFIXES:
                raise FilesError(
                    f"{name!r} is not pure Python ({file.name}). If Pyodide has a build of it, name it in "
                    "`tensorgrad_pyodide_packages` and not in `tensorgrad_packages`."
                )
            if file.is_file() and "__pycache__" not in file.parts:
                yield file, f"{name}/{file.relative_to(place).as_posix()}"
    yield from _metadata_files(name)


def _metadata_files(name: str) -> Iterator[tuple[Path, str]]:
    """The METADATA file of the package's distribution, for `importlib.metadata.version`."""
    for distribution in importlib.metadata.packages_distributions().get(name, ())[:1]:
        for file in importlib.metadata.files(distribution) or ():
            if file.name == "METADATA":
                yield Path(str(file.locate())), file.as_posix()
