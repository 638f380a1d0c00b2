"""What the frame of the site's pages says to the browser in advance."""

from __future__ import annotations

import re

from pages import WEB, modules_of, rendered


def test_a_page_asks_at_once_for_every_module_that_its_script_needs() -> None:
    page = rendered()["index.html"]
    asked = re.findall(r'<link rel="modulepreload" href="\./([^"]+)">', page)
    assert asked == modules_of("js/main.js")
    assert len(asked) == len(set(asked))
    assert {"js/repl.js", "js/session.js", "vendor/uPlot.esm.js"} <= set(asked)
    assert "js/inspector.js" not in asked  # imported when it is opened
    assert "js/main.js" not in asked
    for module in asked:
        assert module.startswith("vendor/") or (WEB / module).is_file()


def test_what_is_fetched_first_is_there() -> None:
    (file,) = re.findall(r'<link rel="preload" as="fetch" href="\./([^"]+)" crossorigin>', rendered()["index.html"])
    assert (WEB / file).stat().st_size < 30_000
