"""The Python half of the page: the console that runs what is typed, `plot`, and files.

The worker copies this package into Pyodide's file system and calls `start`. Its name
begins with `tensorgrad`, so its frames are hidden from tracebacks as the library's are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorgrad_page.console import PageConsole

__all__ = ["start"]


def start(
    post_plot: Callable[[str], None], post_file: Callable[[str, Any], None], choose_file: Callable[[str], Any]
) -> PageConsole:
    """Make the console, in the namespace of `__main__`, with `plot` in it.

    Args:
        post_plot: takes the plot messages of `plotting.Plot` to the page.
        post_file: takes a file's name and bytes there, to be downloaded.
        choose_file: gives a promise of the bytes of a file that the user chooses, or of null.
    """
    import __main__
    from tensorgrad_page.console import PageConsole  # needs Pyodide; the other modules do not
    from tensorgrad_page.files import connect
    from tensorgrad_page.plotting import Plot

    connect(post_file, choose_file)
    plot = Plot(post_plot)
    namespace = __main__.__dict__
    namespace["plot"] = plot
    return PageConsole(namespace, after_run=plot.flush)
