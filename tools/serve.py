"""Serve `build/site` on 127.0.0.1 until Ctrl-C."""

from __future__ import annotations

import os
import time

from paths import SITE
from tensorgrad.testing.server import StaticServer


def main() -> None:
    """Serve on the port in the environment variable PORT (8000 by default)."""
    port = int(os.environ.get("PORT") or 8000)
    try:
        server = StaticServer({"/": SITE}, port=port)
    except OSError as error:
        raise SystemExit(f"error: port {port} is not free ({error.strerror}); try `make serve PORT=8001`") from None
    with server:
        print(f"{SITE.name} is at {server.url}/ (Ctrl-C ends it)", flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
