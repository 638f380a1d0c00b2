"""Run tests in a browser: a pytest plugin.

A test that is marked `webgpu` runs in Pyodide in headless Chromium, in a worker that has
`navigator.gpu`, and is reported as if it had run here: its assertion messages, its
output, its duration. Everything else about it is ordinary pytest, parameters, fixtures,
`-k`, `-x`, `--lf`, skips and expected failures included.

    import pytest
    import tensorgrad as tg

    @pytest.mark.webgpu
    async def test_on_the_gpu():
        double = tg.jit(lambda x: 2 * x)
        assert (await double([1.0, 2.0])).tolist() == [2.0, 4.0]

It comes with `pip install tensorgrad-webgpu[test]`, needs a Chromium on PATH (or at
`$TENSORGRAD_CHROMIUM`), and is active wherever it is installed. By default Pyodide is
loaded from its CDN; to test without a network, say where a copy of it lies.

pytest here collects the tests, in the usual way: so a module with marked tests has to
be importable on CPython, and imports `js` or `pyodide` inside of its tests. With the
first marked test one browser and one page are started for the whole run, and the page
gets copies of pytest, of tensorgrad and of the test folders' modules from this
environment; nothing is built. Fixtures of a marked test are made in the page.
Async tests and async fixtures work in the page and outside of it.

The plan cache is off in the page, so that no test depends on what another has compiled; a test
that wants it says `tg.cache.enable()`.

Under pytest-xdist each process has a browser of its own. Let a file's tests stay together (`--dist loadfile`), so
that fixtures of a module are made once.

A test that takes too long is interrupted and fails with the traceback of where it
was; if it does not react (because it waits for a promise), the page is replaced and the
next test goes on in a new one. The same happens when the page crashes.

Options, in pytest's section of `pyproject.toml` (or `pytest.ini`):
    tensorgrad_pyodide: folder (relative to the file) or address of Pyodide 314: the folder has `pyodide.mjs`,
        `pyodide-lock.json` and the wheels that the lock names. `$TENSORGRAD_PYODIDE` goes before it.
    tensorgrad_packages: import names of packages of this environment to copy into the page, pure Python only: your
        own project, as a rule.
    tensorgrad_pyodide_packages: packages to load from Pyodide besides numpy, such as scipy.
    tensorgrad_files: glob patterns, relative to the root folder, of data files to copy. Modules in the test folders
        are always copied. In the page the root folder is `/project`.
    tensorgrad_timeout: seconds that a test may take, 120 by default; `@pytest.mark.webgpu(timeout=300)` for one
        test.
    tensorgrad_start_timeout: seconds that the page may take to start, 180 by default.
    tensorgrad_chromium: path of the browser. `$TENSORGRAD_CHROMIUM` goes before it.
    tensorgrad_adapter: `swiftshader`, the default, computes on the CPU, on every machine alike; `default` takes the
        machine's GPU. `$TENSORGRAD_ADAPTER` goes before it. With `swiftshader` shaders find workgroup memory as it
        was left, not zero: compiling the zeroing takes that adapter seconds a kernel.

`tensorgrad.testing.server` and `tensorgrad.testing.browser` are the parts from which the
tests of a page of your own can be made: a static server with the right headers, and how
a Chromium with WebGPU is found and started.
"""

from tensorgrad.testing.plugin import (
    pytest_addoption,
    pytest_configure,
    pytest_fixture_setup,
    pytest_pyfunc_call,
    pytest_runtest_protocol,
    pytest_sessionfinish,
    pytest_unconfigure,
)

__all__ = [
    "pytest_addoption",
    "pytest_configure",
    "pytest_fixture_setup",
    "pytest_pyfunc_call",
    "pytest_runtest_protocol",
    "pytest_sessionfinish",
    "pytest_unconfigure",
]
