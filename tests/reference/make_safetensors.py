"""Writes `pytorch.safetensors`: a state dict of PyTorch's, by the format's own library, and what the model gives.

    pip install torch==2.13.0 safetensors==0.8.0 && python tests/reference/make_safetensors.py

The tests read the file and need neither. `x` and the output `y` are in its header.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

OUT = Path(__file__).with_name("pytorch.safetensors")


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.ReLU(), nn.Linear(7, 3))
    model(torch.randn(16, 5))  # moves the running statistics
    x = torch.randn(4, 5)
    y = model.eval()(x).detach()
    texts = {"format": "pt", "x": json.dumps(x.tolist()), "y": json.dumps(y.tolist())}
    save_file(model.state_dict(), OUT, texts)


if __name__ == "__main__":
    main()
