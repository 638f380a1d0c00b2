"""The headers that the static server sends."""

from __future__ import annotations

import urllib.request
from email.message import Message
from pathlib import Path

import pytest

from tensorgrad.testing.server import StaticServer


def headers_at(server: StaticServer, path: str) -> Message:
    with urllib.request.urlopen(server.url + path) as answer:
        return answer.headers


def test_a_folder_has_its_own_headers_and_everything_is_isolated(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("page")
    (tmp_path / "_headers").write_text("/*\n  X-Content-Type-Options: nosniff\n  Policy: default-src 'self'; a:b\n")
    with StaticServer({"/here/": tmp_path, "/other.html": b"other"}) as server:
        own, other = headers_at(server, "/here/page.html"), headers_at(server, "/other.html")
    assert own["Policy"] == "default-src 'self'; a:b"
    assert own["X-Content-Type-Options"] == "nosniff"
    assert other["Policy"] is None
    for headers in (own, other):
        assert headers.get_all("Cross-Origin-Opener-Policy") == ["same-origin"]
        assert headers.get_all("Cross-Origin-Embedder-Policy") == ["require-corp"]


def test_a_host_that_sets_none(tmp_path: Path) -> None:
    (tmp_path / "_headers").write_text("/*\n  Policy: x\n")
    with StaticServer({"/": tmp_path}, headers={}) as server:
        headers = headers_at(server, "/_headers")
    assert headers["Policy"] is headers["Cross-Origin-Opener-Policy"] is None
    assert headers["Content-Length"] == "15"


def test_headers_of_single_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "_headers").write_text("/page.html\n  Policy: x\n")
    with (
        StaticServer({"/": tmp_path}) as server,
        pytest.raises(ValueError, match=r"headers for /page\.html; only those for /\*"),
    ):
        server.headers_of("/page.html")
