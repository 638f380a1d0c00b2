"""Fetch puppeteer-core, by which the tests drive Firefox, and all that it needs, into `build/puppeteer`."""

from __future__ import annotations

import json

from paths import BUILD
from vendor import LIST, install


def main() -> None:
    install(BUILD / "puppeteer", json.loads(LIST.read_text())["firefox"], {})


if __name__ == "__main__":
    main()
