"""A static web server for pages that need WebGPU, threads and Pyodide.

It serves folders, and files held in memory, on 127.0.0.1, with the two headers that make
a page cross-origin isolated (so that it may have SharedArrayBuffer, with which Python is
interrupted), and with right types for modules and WebAssembly. A folder's own headers, in
a file `_headers` as several static hosts read it, are sent with its files.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ISOLATION = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "cross-origin",
}

ALWAYS = {"Access-Control-Allow-Origin": "*", "Cache-Control": "no-cache"}


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    extensions_map = {  # noqa: RUF012
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".json": "application/json",
        ".wasm": "application/wasm",
        ".whl": "application/zip",
        ".zip": "application/zip",
        ".py": "text/plain",
    }
    server: StaticServer  # type: ignore[assignment]

    def translate_path(self, path: str) -> str:
        clean = unquote(urlsplit(path).path)
        for prefix, place in self.server.mounts.items():
            if isinstance(place, Path) and clean.startswith(prefix):
                parts = [part for part in clean[len(prefix) :].split("/") if part not in ("", ".", "..")]
                return str(place.joinpath(*parts)) + ("/" if clean.endswith("/") else "")
        return ""

    def do_GET(self) -> None:
        body = self.server.mounts.get(urlsplit(self.path).path)
        if not isinstance(body, bytes):
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(urlsplit(self.path).path))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def end_headers(self) -> None:
        for name, value in {**ALWAYS, **self.server.headers_of(urlsplit(self.path).path)}.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        if self.server.verbose:
            super().log_message(format, *args)


class StaticServer(ThreadingHTTPServer):
    """Serves `mounts` on 127.0.0.1 from a thread; a context manager.

    Args:
        mounts: what is served. A key that ends with `/` is the prefix of a folder, any
            other the path of a file whose content is given as bytes.
        port: 0 takes a free one.
        verbose: whether requests are printed.
        headers: what is sent in place of those of isolation and of `_headers` files; an empty dictionary makes
            a host that sets none.

    Example:
        >>> import urllib.request
        >>> with StaticServer({"/hello.txt": b"hello"}) as server:
        ...     urllib.request.urlopen(server.url + "/hello.txt").read()
        b'hello'
    """

    daemon_threads = True

    def __init__(
        self,
        mounts: Mapping[str, Path | bytes],
        *,
        port: int = 0,
        verbose: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.mounts = dict(sorted(mounts.items(), key=lambda entry: -len(entry[0])))
        self.verbose = verbose
        self._headers = headers
        super().__init__(("127.0.0.1", port), _Handler)
        self._thread = threading.Thread(target=self.serve_forever, name="tensorgrad-server", daemon=True)

    @property
    def url(self) -> str:
        """The address, without a slash at the end."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def headers_of(self, path: str) -> Mapping[str, str]:
        """What is sent with the file at a path of this server."""
        if self._headers is not None:
            return self._headers
        for prefix, place in self.mounts.items():
            if isinstance(place, Path) and path.startswith(prefix):
                return {**ISOLATION, **_headers_in(place / "_headers")}
        return ISOLATION

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that closed its connection in the middle."""

    def __enter__(self) -> StaticServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


def _headers_in(file: Path) -> dict[str, str]:
    """The headers for all files, `/*`, in a `_headers` file; none where there is no file."""
    if not file.is_file():
        return {}
    lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    if lines[0] != "/*":
        raise ValueError(f"{file} has headers for {lines[0]}; only those for /* are read")
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
