"""The console: takes one input (a line or a block), runs it, and says what came of it.

It is Pyodide's console (top-level await, packages loaded on import, `__future__` imports
remembered) with five differences: an input is a whole block, each input has its own file
name whose lines are in `linecache`, tracebacks show the user's lines only, an input
that waits can be stopped at its await, and `name?` tells what a name is, as in IPython.
"""

from __future__ import annotations

import asyncio
import builtins
import io
import json
import linecache
import sys
from codeop import PyCF_ALLOW_INCOMPLETE_INPUT, PyCF_DONT_IMPLY_DEDENT  # type: ignore[attr-defined]
from collections.abc import Callable
from typing import Any

from pyodide.code import CodeRunner
from pyodide.console import Console, PyodideConsole, shorten
from pyodide.ffi import create_proxy
from pyodide_js import checkInterrupt, loadPackagesFromImports

from tensorgrad import DeviceLostError
from tensorgrad_page.blocks import could_go_on
from tensorgrad_page.completing import complete
from tensorgrad_page.describing import describe, imported, told
from tensorgrad_page.forgotten import Forgotten
from tensorgrad_page.frames import format_exception, line_in
from tensorgrad_page.hints import hint
from tensorgrad_page.replaced import replace

LONGEST_REPR = 20_000
INCOMPLETE = PyCF_DONT_IMPLY_DEDENT | PyCF_ALLOW_INCOMPLETE_INPUT


class PageConsole(PyodideConsole):
    """Runs inputs one after the other in one namespace.

    Args:
        namespace: the globals of every input.
        on_start: called when an input is complete and starts, with whether it is the program, and its chart.
        after_run: called after each input, whatever came of it.
    """

    def __init__(
        self, namespace: dict[str, Any], on_start: Callable[[bool, str], None], after_run: Callable[[], None]
    ) -> None:
        super().__init__(namespace)
        self._on_start, self._after_run = on_start, after_run
        self._package_messages = create_proxy(lambda message: None)
        self._package_errors = create_proxy(lambda message: print(message, file=sys.stderr))
        self._latest = {"input": (0, ""), "program": (0, "")}  # how many texts of each kind have run, and the last
        self._task: asyncio.Task[dict[str, Any]] | None = None
        self._interrupted = False
        replace(checkInterrupt)
        sys.stdout, sys.stderr = _unbuffered(1), _unbuffered(2)
        self._forgotten = Forgotten.watch(lambda file: file.startswith(("<input ", "<program")))

    async def run_input(self, source: str, force: bool = False, program: bool = False, chart: str = "") -> str:
        """Run one input and return a JSON object: `status` and, by status, `text`.

        `incomplete` asks for more lines; `ok` has the value's repr (or nothing); `error` and
        `interrupted` have the traceback, the `line` of the input, perhaps a `hint`, and whether the GPU is `lost`;
        `exit` is a call of `exit()`.

        Args:
            source: the input.
            force: run it even where the last block could go on.
            program: whether it is the program beside the console, whose file is called so.
            chart: of the page, in which it plots.
        """
        if answer := told(source, self.globals):
            return json.dumps({"status": "ok", "text": answer})
        kind = "program" if program else "input"
        number, before = self._latest[kind]
        number += source != before  # what runs over and over is one text: it keeps its name
        filename = "<program>" if program and number == 1 else f"<{kind} {number}>"
        try:
            code = self._compiled(source, filename, force)
        except (OverflowError, SyntaxError, ValueError) as error:
            text, line = self.formatsyntaxerror(error), line_in(error, filename)
            return json.dumps({"status": "error", "text": text, "line": line})
        if code is None:
            return json.dumps({"status": "incomplete"})
        self._on_start(program, chart)
        self._latest[kind] = number, source
        # No modification time: linecache.checkcache then leaves the entry alone.
        lines = [line + "\n" for line in source.split("\n")]
        linecache.cache[filename] = (len(source), None, lines, filename)
        self._interrupted = False
        self._task = asyncio.ensure_future(self._outcome(source, code, filename))
        try:
            outcome = await self._task
        except BaseException as error:  # an interrupt that struck outside the input's own frames
            outcome = {"status": "interrupted", "text": f"{type(error).__name__}\n"}
        finally:
            self._task = None
            self._after_run()
        return json.dumps(outcome)

    def _compiled(self, source: str, filename: str, force: bool) -> CodeRunner | None:
        """The code of an input, or None where more of it should come."""
        if force:
            compiler = self._compile.compiler
            kept = compiler.flags & INCOMPLETE
            compiler.flags &= ~INCOMPLETE  # its own `incomplete_input` has no effect
            try:
                return compiler(source, filename, "exec")
            finally:
                compiler.flags |= kept
        code = self._compile(source, filename, "exec")
        return None if could_go_on(source) else code

    def interrupt(self) -> bool:
        """Stop the running input at the await where it stands.

        Returns:
            Whether it stood at an await, so that it is sure to hear of it.
        """
        task = self._task
        if task is None or task.done():
            return False
        self._interrupted = True
        waiter = getattr(task, "_fut_waiter", None)
        if waiter is not None and is_plain(waiter) and not waiter.done():
            # The input's own `except KeyboardInterrupt` gets to see it.
            waiter.set_exception(KeyboardInterrupt())
            return True
        task.cancel()
        return waiter is not None

    def complete_line(self, line: str, program: str = "") -> str:
        """Completions of the last word of `line`, as a JSON object of `items` and `start`.

        Args:
            line: the text from the start of the line to the cursor.
            program: what the line stands in; what it imports is known before it has run.
        """
        self._completer.namespace = self._known_in(program)
        items, start = complete(line, self.complete)
        return json.dumps({"items": items, "start": start})

    def describe_name(self, expression: str, program: str = "") -> str:
        """The signature and the docstring of a dotted name, or null, as JSON."""
        return json.dumps(describe(expression, self._known_in(program)))

    def _known_in(self, program: str) -> dict[str, Any]:
        return {**imported(program), **self.globals}

    async def runcode(self, source: str, code: CodeRunner) -> Any:
        """Load the hosted packages that the source imports, without a word where all goes well; run it."""
        await loadPackagesFromImports(
            source, messageCallback=self._package_messages, errorCallback=self._package_errors
        )
        return await Console.runcode(self, source, code)

    async def _outcome(self, source: str, code: CodeRunner, filename: str) -> dict[str, Any]:
        """Run the code; nothing that it raises leaves here, so that the event loop never sees it."""
        try:
            value = await self.runcode(source, code)
            if value is None:
                return {"status": "ok"}
            builtins._ = value  # type: ignore[attr-defined]
            return {"status": "ok", "text": shorten(repr(value), LONGEST_REPR) + "\n" + self._forgotten.hint(value)}
        except SystemExit:
            return {"status": "exit"}
        except BaseException as error:
            sys.last_exc = error  # type: ignore[attr-defined]  new in Python 3.12; traceback.print_last() shows it
            cancelled = isinstance(error, asyncio.CancelledError) and self._interrupted
            stopped = cancelled or isinstance(error, KeyboardInterrupt)
            if cancelled:
                error = KeyboardInterrupt().with_traceback(error.__traceback__)
            status, line = "interrupted" if stopped else "error", line_in(error, filename)
            told = {"status": status, "text": format_exception(error), "line": line, "hint": hint(error)}
            return {**told, "lost": isinstance(error, DeviceLostError)}
        finally:
            # A cancellation that came too late to be raised must not undo the outcome.
            while self._task is not None and self._task.cancelling():
                self._task.uncancel()


def is_plain(waiter: asyncio.Future[Any]) -> bool:
    """Whether a future stands for one event, not for tasks that have to be cancelled with it."""
    return not isinstance(waiter, asyncio.Task) and type(waiter).__module__.partition(".")[0] != "asyncio"


class _Transcript(io.TextIOWrapper):
    """A stream to the page, which goes back to the start of the line at a carriage return, as terminals do."""

    def isatty(self) -> bool:
        return True


def _unbuffered(descriptor: int) -> io.TextIOWrapper:
    """A text stream whose every write goes out at once, so that a dot printed in a busy loop is seen."""
    raw = open(descriptor, "wb", buffering=0, closefd=False)  # noqa: SIM115  open as long as Python runs
    return _Transcript(raw, encoding="utf-8", errors="backslashreplace", write_through=True)
