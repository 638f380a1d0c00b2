"""The test harness itself: a marked test runs in the page, and is reported as if it had run here."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tensorgrad.testing.browser import BrowserError, find_chromium
from tensorgrad.testing.server import StaticServer

PYODIDE = Path(__file__).parents[2] / "build" / "site" / "pyodide"

CONFIGURATION = f"""
[pytest]
addopts = --import-mode=importlib -p no:cacheprovider
tensorgrad_pyodide = {PYODIDE}
tensorgrad_start_timeout = 120
"""


# What runs in the page of this very run.


@pytest.mark.webgpu
async def test_the_page_has_webgpu():
    import js

    adapter = await js.navigator.gpu.requestAdapter()
    assert adapter is not None
    device = await adapter.requestDevice()
    assert device.limits.maxComputeInvocationsPerWorkgroup >= 256
    device.destroy()


@pytest.mark.webgpu
def test_the_page_is_isolated_and_python_is_pyodide():
    import js

    assert js.crossOriginIsolated
    assert sys.platform == "emscripten"
    assert Path.cwd().is_relative_to("/project")


@pytest.mark.webgpu
@pytest.mark.parametrize(("number", "double"), [(1, 2), (21, 42)], ids=["one", "many"])
def test_parameters_arrive(number: int, double: int):
    assert 2 * number == double


opened: list[str] = []


@pytest.fixture(scope="module")
async def resource() -> AsyncIterator[list[str]]:
    await asyncio.sleep(0)
    opened.append("opened")
    yield opened
    opened.append("closed")


@pytest.mark.webgpu
async def test_async_fixture_lives_for_its_scope(resource: list[str]):
    await asyncio.sleep(0)
    assert resource == ["opened"]


@pytest.mark.webgpu
def test_async_fixture_is_not_made_again(resource: list[str]):
    assert resource == ["opened"]


async def test_coroutines_run_here_too(resource: list[str]):
    assert sys.platform != "emscripten"
    await asyncio.sleep(0)
    assert resource == ["opened"]


# What is seen from outside: a project of its own, run by a pytest of its own.


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """An empty project with our plugin and a Pyodide."""
    if not (PYODIDE / "pyodide.mjs").is_file():
        pytest.fail("build/site/pyodide is not there: run `make site` first")
    pytester.path.joinpath("pytest.ini").write_text(CONFIGURATION)
    return pytester


OUTCOMES = """
import pytest, sys, warnings
sys.path.append(__file__.rpartition("/")[0])
pytestmark = pytest.mark.webgpu

def test_passes():
    from helping import three
    assert three() == 3

def test_fails():
    print("printed by the test")
    print("complained by the test", file=sys.stderr)
    left = {"a": 1, "b": 2}
    assert left == {"a": 1, "b": 3}

async def test_fails_in_a_coroutine():
    raise RuntimeError("from the coroutine")

def test_has_a_broken_fixture(broken): pass

@pytest.mark.skip(reason="not today")
def test_is_skipped(): assert False

@pytest.mark.xfail(reason="known")
def test_fails_as_expected(): assert False

def test_warns(): warnings.warn("mind the gap", DeprecationWarning)

class TestClass:
    def test_in_a_class(self): assert sys.platform == "emscripten"

@pytest.mark.parametrize("n", range(3))
def test_numbers(n): assert n < 2
"""


def test_outcomes_are_those_of_ordinary_tests(project: pytest.Pytester):
    project.makeconftest("""
        import pytest

        @pytest.fixture
        def broken():
            raise ValueError("no such thing")

        @pytest.fixture(scope="session", autouse=True)
        def session():
            yield
            print("the session ends")
    """)
    project.mkdir("tests")
    project.path.joinpath("tests", "helping.py").write_text("def three(): return 3\n")
    project.path.joinpath("tests", "test_all.py").write_text(OUTCOMES)
    result = project.runpytest_subprocess("-v", "--durations=3")
    result.assert_outcomes(passed=5, failed=3, errors=1, skipped=1, xfailed=1, warnings=1)
    result.stdout.fnmatch_lines_random(
        [
            "tests/test_all.py::test_fails FAILED*",
            "tests/test_all.py::test_is_skipped SKIPPED (not today)*",
            "tests/test_all.py::TestClass::test_in_a_class PASSED*",
            ">       assert left == {*",
            "E         {'b': 2} != {'b': 3}",
            "tests/test_all.py:*: AssertionError",
            "printed by the test",
            "complained by the test",
            "E       RuntimeError: from the coroutine",
            "E       ValueError: no such thing",
            "*DeprecationWarning: mind the gap*",
            "FAILED tests/test_all.py::test_numbers[[]2] - assert 2 < 2",
            "*slowest 3 durations*",
            "the session ends",
        ]
    )


def test_selection_and_stopping_are_this_pytests(project: pytest.Pytester):
    project.makepyfile("""
        import pytest
        pytestmark = pytest.mark.webgpu
        def test_first(): print("streamed as it comes")
        def test_second(): assert False
        def test_third(): pass
        def test_other(): pass
    """)
    result = project.runpytest_subprocess("-x", "-s", "-k", "not other")
    result.assert_outcomes(passed=1, failed=1, deselected=1)
    result.stdout.fnmatch_lines(["*streamed as it comes*"])


def test_a_hanging_test_ends_and_the_next_has_a_new_page(project: pytest.Pytester):
    project.makepyfile("""
        import pytest
        pytestmark = pytest.mark.webgpu

        @pytest.mark.webgpu(timeout=1)
        def test_spins():
            while True:
                pass

        def test_after_the_loop(): pass

        @pytest.mark.webgpu(timeout=1)
        async def test_waits():
            import js
            await js.Promise.new(lambda resolve, reject: None)

        def test_after_the_promise(): pass
    """)
    result = project.runpytest_subprocess("-v")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        [
            ">           pass",
            "E           Failed: the test was still here when its time was over*",
            "*test_waits did not end within 1 s in the page, in its call phase. The page was closed;*",
        ]
    )


def test_a_module_that_fails_in_the_page_only_is_an_error_of_its_tests(project: pytest.Pytester):
    project.makepyfile(
        test_bad="""
            import sys, pytest
            if sys.platform == "emscripten":
                import subprocess_of_the_page
            @pytest.mark.webgpu
            def test_it(): pass
        """,
        test_good="""
            import pytest
            @pytest.mark.webgpu
            def test_it(): pass
        """,
        test_skipped="""
            import sys, pytest
            if sys.platform == "emscripten":
                pytest.skip("not in pages", allow_module_level=True)
            @pytest.mark.webgpu
            def test_it(): pass
        """,
    )
    result = project.runpytest_subprocess("-rs")
    result.assert_outcomes(passed=1, errors=1, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "Collecting test_bad.py in the page failed:",
            "*ModuleNotFoundError: No module named 'subprocess_of_the_page'",
            "SKIPPED * not in pages",
        ]
    )


def test_own_packages_and_data_are_copied(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    package = project.mkpydir("mine")
    package.joinpath("word.txt").write_text("data of the package")
    project.path.joinpath("numbers.txt").write_text("1 2 3")
    with project.path.joinpath("pytest.ini").open("a") as file:
        file.write("tensorgrad_packages = mine\ntensorgrad_files = *.txt\n")
    project.mkdir("tests").joinpath("test_it.py").write_text("""
import importlib.resources, pathlib, pytest

@pytest.mark.webgpu
def test_files():
    import mine
    assert importlib.resources.files(mine).joinpath("word.txt").read_text() == "data of the package"
    assert pathlib.Path("numbers.txt").read_text() == "1 2 3"
""")
    monkeypatch.setenv("PYTHONPATH", str(project.path))
    project.runpytest_subprocess().assert_outcomes(passed=1)


def test_pyodide_can_come_from_another_origin(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    project.makepyfile("import pytest\n@pytest.mark.webgpu\ndef test_it(): pass")
    with StaticServer({"/cdn/": PYODIDE}) as server:
        monkeypatch.setenv("TENSORGRAD_PYODIDE", server.url + "/cdn")
        project.runpytest_subprocess().assert_outcomes(passed=1)
    monkeypatch.setenv("TENSORGRAD_PYODIDE", server.url + "/gone")
    result = project.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*did not start: *Failed to fetch dynamically imported module*/gone/pyodide.mjs*"])
    result.stdout.fnmatch_lines(["*Pyodide is loaded from */gone*`tensorgrad_pyodide`*TENSORGRAD_PYODIDE*"])


def test_a_crashed_page_fails_its_test_and_the_next_has_a_new_page(project: pytest.Pytester):
    project.makeconftest("""
        import asyncio
        from tensorgrad.testing.session import PageSession

        # a test cannot crash its renderer reliably, so the test that asks for it has the browser do it
        ordinary = PageSession.run

        def run(self, test, following, timeout):
            if "crashes" in test:
                self._browser._loop.call_soon_threadsafe(
                    self._browser._loop.create_task, crash(self._page)
                )
            yield from ordinary(self, test, following, timeout)

        async def crash(page):
            await asyncio.sleep(1)
            try:
                await page.goto("chrome://crash")
            except Exception:
                pass  # the page is gone

        PageSession.run = run
    """)
    project.makepyfile("""
        import asyncio, pytest
        pytestmark = pytest.mark.webgpu
        def test_before(): pass
        async def test_that_crashes(): await asyncio.sleep(60)
        def test_after(): pass
    """)
    result = project.runpytest_subprocess("-v")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*::test_after PASSED*", "*the page crashed while running *::test_that_crashes*"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("tensorgrad_pyodide = nowhere", "there is no Pyodide in */nowhere (no pyodide.mjs)*"),
        ("tensorgrad_packages = numpy", "*'numpy' is not pure Python*`tensorgrad_pyodide_packages`*"),
        (
            "tensorgrad_packages = no_such_thing",
            "*no package 'no_such_thing' in*install it*`tensorgrad_packages`*",
        ),
        ("tensorgrad_files = *.none", "*no file in * matches '[*].none'*"),
        ("tensorgrad_adapter = mine", "*it can be 'swiftshader' or 'default'*"),
        (
            "tensorgrad_chromium = /no/browser",
            "*the configured browser '/no/browser' is not an executable file*",
        ),
    ],
)
def test_a_wrong_option_says_what_to_do(project: pytest.Pytester, line: str, message: str, monkeypatch):
    monkeypatch.delenv("TENSORGRAD_CHROMIUM", raising=False)
    name = line.partition(" ")[0]
    kept = [old for old in CONFIGURATION.splitlines() if not old.startswith(name)]
    project.path.joinpath("pytest.ini").write_text("\n".join([*kept, line]))
    project.makepyfile("import pytest\n@pytest.mark.webgpu\ndef test_it(): pass\ndef test_here(): pass")
    result = project.runpytest_subprocess()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines([f"*{message}"])


def test_no_browser_at_all_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("TENSORGRAD_CHROMIUM", raising=False)
    monkeypatch.setattr("tensorgrad.testing.browser.CHROMIUM_NAMES", ("chromium",))
    with pytest.raises(BrowserError, match="apt-get install chromium-headless-shell"):
        find_chromium()


def test_warnings_are_errors_in_this_project():
    with pytest.raises(UserWarning):
        warnings.warn("as an error", stacklevel=1)
