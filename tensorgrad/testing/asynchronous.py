"""Tests and fixtures written as coroutines, on CPython and in a page."""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

OTHER_MARKS = ("asyncio", "anyio", "trio")
"""Marks with which other plugins claim a coroutine."""

OTHER_PLUGINS = ("asyncio", "anyio", "trio")
"""Names under which those plugins are registered. Where one is, it has the async fixtures."""

_runner: asyncio.Runner | None = None


def run_coroutine(work: Coroutine[Any, Any, Any]) -> Any:
    """Wait for a coroutine from code that is not one."""
    global _runner
    __tracebackhide__ = True
    if sys.platform == "emscripten":
        from pyodide.ffi import run_sync

        error, value = run_sync(_outcome(work))
        if error is not None:
            raise error
        return value
    if asyncio._get_running_loop() is not None:  # as while Playwright's synchronous interface is in use
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, work).result()
    if _runner is None:
        _runner = asyncio.Runner()  # one loop for all: what a fixture opens, its test can use
    return _runner.run(work)


async def _outcome(work: Coroutine[Any, Any, Any]) -> tuple[BaseException | None, Any]:
    """What a coroutine ends with. (Pyodide prints the traceback of one that raises.)"""
    try:
        return None, await work
    except BaseException as error:
        return error, None


def pytest_unconfigure() -> None:
    """Close the event loop."""
    global _runner
    if _runner is not None:
        _runner.close()
        _runner = None


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine function, unless another plugin's mark claims it."""
    claimed = any(map(pyfuncitem.get_closest_marker, OTHER_MARKS))
    if claimed or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    __tracebackhide__ = True
    names = pyfuncitem._fixtureinfo.argnames
    run_coroutine(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> None:
    """Give pytest an ordinary function in place of an async fixture's; nothing else changes."""
    if any(map(request.config.pluginmanager.hasplugin, OTHER_PLUGINS)):
        return
    if inspect.iscoroutinefunction(fixturedef.func):
        replacement = _waiting(fixturedef.func)
    elif inspect.isasyncgenfunction(fixturedef.func):
        replacement = _generating(fixturedef.func)
    else:
        return
    object.__setattr__(fixturedef, "func", replacement)


def _waiting(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def fixture(*args: Any, **kwargs: Any) -> Any:
        return run_coroutine(function(*args, **kwargs))

    return _plain(fixture)


def _generating(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def fixture(*args: Any, **kwargs: Any) -> Iterator[Any]:
        generator = function(*args, **kwargs)
        yield run_coroutine(anext(generator))
        try:
            run_coroutine(anext(generator))
        except StopAsyncIteration:
            return
        pytest.fail(f"the fixture {function.__name__} yields more than once")

    return _plain(fixture)


def _plain(fixture: Any) -> Callable[..., Any]:
    """Without the link to the async function that `functools.wraps` leaves, which pytest would follow."""
    del fixture.__wrapped__
    return fixture
