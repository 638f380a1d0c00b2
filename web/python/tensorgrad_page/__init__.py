"""The Python half of the page: the console that runs what is typed, `plot`, `display`,
`download`, `read_image` and `show`.

The worker copies this package into Pyodide's file system and calls `start`. Its name
begins with `tensorgrad`, so its frames are hidden from tracebacks as the library's are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorgrad_page.console import PageConsole

__all__ = ["start"]


def start(
    post: Callable[[str, str], None],
    post_file: Callable[[str, Any], None],
    choose_file: Callable[[str], Any],
    without_gpu: bool,
) -> PageConsole:
    """Make the console, in the namespace of `__main__`, with the page's own functions in it.

    Args:
        post: takes messages to the page: their type (`started`, `plot`, `display` or `show`), and their text.
        post_file: takes a file's name and bytes there, to be downloaded.
        choose_file: gives a promise of the bytes of a file that the user chooses, or of null.
        without_gpu: whether the page says already that there is no GPU, and why.
    """
    import __main__
    from tensorgrad import browser, progress
    from tensorgrad_page.connecting import connect
    from tensorgrad_page.console import PageConsole  # needs Pyodide; the other modules do not
    from tensorgrad_page.displaying import Display
    from tensorgrad_page.files import Download, read_image
    from tensorgrad_page.plotting import Plot
    from tensorgrad_page.showing import Show

    connect(post_file, choose_file)
    if without_gpu:
        warnings.filterwarnings("ignore", "running on the numpy device", RuntimeWarning)
    plot = Plot(partial(post, "plot"))
    progress.follow(plot.add)

    def started(program: bool, chart: str) -> None:
        plot.draw_in(chart)
        if program or chart:  # a cell with curves of its own is a program, too
            plot.begin()
        post("started", "")

    namespace = __main__.__dict__
    namespace.update(
        plot=plot,
        display=Display(partial(post, "display")),
        download=Download(browser.download),
        read_image=read_image,
        show=Show(partial(post, "show")),
    )
    return PageConsole(namespace, on_start=started, after_run=plot.flush)
