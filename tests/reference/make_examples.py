"""Writes `examples.json`: the losses of the first steps of every example, as PyTorch has them.

    pip install torch==2.13.0 && PYTHONPATH=.:tests:examples python tests/reference/make_examples.py

The tests read the file and do not need PyTorch.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import json
from pathlib import Path

import pytorch_digits
import pytorch_gan
import pytorch_sequences

EXAMPLES = {**pytorch_digits.EXAMPLES, **pytorch_sequences.EXAMPLES, **pytorch_gan.EXAMPLES}


def main() -> None:
    """One example a line."""
    lines = (f'  "{name}": {json.dumps(losses())}' for name, losses in EXAMPLES.items())
    Path(__file__).with_name("examples.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
