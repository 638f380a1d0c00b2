"""The plugin's options, and what of pytest's own configuration the page gets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tensorgrad.testing.browser import CHROMIUM_FLAGS, QUICK_SHADERS, SOFTWARE_ADAPTER, find_chromium, is_url
from tensorgrad.testing.files import PYTEST_PACKAGES, bundle
from tensorgrad.testing.session import PageConfig

PYODIDE_CDN = "https://cdn.jsdelivr.net/pyodide/v314.0.3/full/"

SHARED_INI = (
    "python_files",
    "python_classes",
    "python_functions",
    "markers",
    "filterwarnings",
    "usefixtures",
    "pythonpath",
)
"""Configuration that tests depend on wherever they run. Other options are not known in the page."""

SHARED_OPTIONS = ("tbstyle", "showlocals", "verbose", "fulltrace", "runxfail")
"""Command line options that change how a test is judged or a failure is shown."""


def add_options(parser: pytest.Parser) -> None:
    """Declare the configuration options; `tensorgrad.testing` documents them."""
    parser.addini("tensorgrad_pyodide", f"folder or address of Pyodide (default: {PYODIDE_CDN})", default=None)
    parser.addini("tensorgrad_pyodide_packages", "packages loaded from Pyodide", type="args", default=["numpy"])
    parser.addini("tensorgrad_packages", "pure Python packages of this environment to copy", type="args", default=[])
    parser.addini("tensorgrad_files", "glob patterns of further files to copy", type="args", default=[])
    parser.addini("tensorgrad_chromium", "the browser's executable (default: found on PATH)", default=None)
    parser.addini("tensorgrad_adapter", "'swiftshader' (default), or 'default' for the machine's GPU", default=None)
    parser.addini("tensorgrad_timeout", "seconds that one test may take in the page", default="120")
    parser.addini("tensorgrad_start_timeout", "seconds that the page may take to start", default="180")


def timeout_of(item: pytest.Item) -> float:
    """Seconds that a test may take: `@pytest.mark.webgpu(timeout=...)`, else the option."""
    mark = item.get_closest_marker("webgpu")
    given = mark.kwargs.get("timeout") if mark is not None else None
    return float(item.config.getini("tensorgrad_timeout") if given is None else given)


def page_config(config: pytest.Config, items: list[pytest.Item]) -> PageConfig:
    """What the page for these tests is started with.

    Raises:
        pytest.UsageError: an option has a value that cannot work. The message says what to do.
        BrowserError: there is no browser.
        FilesError: a file or package that was asked for cannot be sent.
    """
    tests = {item.path for item in items}
    return PageConfig(
        pyodide=_pyodide(config),
        pyodide_packages=tuple(dict.fromkeys(["numpy", *config.getini("tensorgrad_pyodide_packages")])),
        executable=find_chromium(config.getini("tensorgrad_chromium")),
        flags=_flags(config),
        start_timeout=float(config.getini("tensorgrad_start_timeout")),
        archive=bundle(
            config.rootpath,
            tests,
            [*PYTEST_PACKAGES, "tensorgrad", *config.getini("tensorgrad_packages")],
            config.getini("tensorgrad_files"),
        ),
        pytest=_pytest_in_page(config, tests),
    )


def _pyodide(config: pytest.Config) -> str:
    place = os.environ.get("TENSORGRAD_PYODIDE") or config.getini("tensorgrad_pyodide") or PYODIDE_CDN
    if is_url(place):
        return place
    base = config.inipath.parent if config.inipath is not None else config.rootpath
    folder = base / Path(place).expanduser()
    if not (folder / "pyodide.mjs").is_file():
        raise pytest.UsageError(
            f"there is no Pyodide in {folder} (no pyodide.mjs). Put one there, or point `tensorgrad_pyodide` "
            "in pytest's configuration, or the environment variable TENSORGRAD_PYODIDE, to a folder or an "
            f"address that has it, such as {PYODIDE_CDN}"
        )
    return str(folder)


def _flags(config: pytest.Config) -> tuple[str, ...]:
    adapter = os.environ.get("TENSORGRAD_ADAPTER") or config.getini("tensorgrad_adapter") or "swiftshader"
    if adapter == "swiftshader":
        return (*CHROMIUM_FLAGS, SOFTWARE_ADAPTER, QUICK_SHADERS)
    if adapter == "default":
        return CHROMIUM_FLAGS
    raise pytest.UsageError(f"tensorgrad_adapter is {adapter!r}; it can be 'swiftshader' or 'default'")


def _pytest_in_page(config: pytest.Config, tests: set[Path]) -> dict[str, Any]:
    root = config.rootpath
    cwd = config.invocation_params.dir
    lines = ["[pytest]"]
    for name in SHARED_INI:
        values = [_value_in_page(value, root) for value in config.getini(name)]
        lines += [f"{name} ="] + [f"    {value.replace('%', '%%')}" for value in values] if values else []
    lines.append(f"xfail_strict = {'true' if config.getini('xfail_strict') else 'false'}")
    warnings = [word for given in config.getoption("pythonwarnings") or () for word in ("-W", given)]
    return {
        "args": [
            *("-c", "/project.ini", "--rootdir", "/project", "--capture", _capture(config)),
            *(f"--import-mode={config.getoption('importmode')}", "--continue-on-collection-errors"),
            *("-p", "no:terminal", "-p", "no:cacheprovider", "-p", "no:faulthandler", *warnings),
            *(f"/project/{test.relative_to(root).as_posix()}" for test in sorted(tests)),
        ],
        "options": {name: config.getoption(name) for name in SHARED_OPTIONS},
        "ini": "\n".join(lines) + "\n",
        "cwd": f"/project/{cwd.relative_to(root).as_posix()}" if cwd.is_relative_to(root) else "/project",
        "env": {
            "HOME": "/home/pyodide",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            **{name: os.environ[name] for name in ("CI", "BUILD_NUMBER") if name in os.environ},
        },
    }


def _value_in_page(value: Any, root: Path) -> str:
    """A configuration value as it reads in the page, where the root folder is `/project`."""
    if isinstance(value, Path) and value.is_relative_to(root):
        return f"/project/{value.relative_to(root).as_posix()}"
    return str(value)


def _capture(config: pytest.Config) -> str:
    return "no" if config.getoption("capture") == "no" else "sys"
