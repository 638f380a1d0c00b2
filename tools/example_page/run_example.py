"""Runs in the page: an example, whose result becomes JSON."""

from __future__ import annotations

import dataclasses
import importlib
import json
import time
import warnings
from typing import Any

import numpy as np

import example


async def run(name: str, arguments: str, on_step: example.OnStep) -> str:
    """The result of an example's `main`, and the seconds that it took.

    Args:
        name: of its module.
        arguments: of `main`, as JSON.
        on_step: called after every step.
    """
    warnings.simplefilter("error")  # above all the one that says that there is no GPU
    module = importlib.import_module(name)
    data = example.load(module.DATA)
    began = time.monotonic()
    result = await module.main(data, on_step=on_step, **json.loads(arguments))
    seconds = time.monotonic() - began
    return json.dumps({**dataclasses.asdict(result), "seconds": seconds}, default=_plain)


def _plain(value: Any) -> Any:
    """An array's numbers, of which pictures need three digits."""
    return np.round(np.asarray(value, np.float64), 3).tolist()
