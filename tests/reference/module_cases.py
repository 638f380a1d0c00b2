"""The modules that are compared with PyTorch: expressions that both libraries evaluate, of small sizes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from operations import normal


class Called(NamedTuple):
    """A module and a call of it.

    Attributes:
        module: the expression that makes it, of `nn`.
        inputs: arrays by name. Integers are indices.
        call: what to do with the module `m`; it gives a tensor, or several, nested in tuples.
        training: whether the module is in training; modules here draw no random numbers.
    """

    module: str
    inputs: dict[str, np.ndarray]
    call: str = "m(x)"
    training: bool = True


T, N, I, H = 4, 2, 3, 5
SEQUENCE, BATCHES = {"x": normal(T, N, I)}, {"x": normal(N, T, I)}


def _state(layers: int, *names: str) -> dict[str, np.ndarray]:
    return {name: normal(layers, N, H, seed=at + 3) for at, name in enumerate(names)}


RECURRENT = {
    "rnn": Called(f"nn.RNN({I}, {H})", SEQUENCE),
    "rnn relu": Called(f"nn.RNN({I}, {H}, 2, 'relu', False, bidirectional=True)", SEQUENCE),
    "rnn from a state": Called(f"nn.RNN({I}, {H}, batch_first=True)", BATCHES | _state(1, "h"), "m(x, h)"),
    "gru": Called(f"nn.GRU({I}, {H})", SEQUENCE),
    "gru layers": Called(f"nn.GRU({I}, {H}, 2, True, True, bidirectional=True)", BATCHES | _state(4, "h"), "m(x, h)"),
    "gru without bias": Called(f"nn.GRU({I}, {H}, bias=False)", SEQUENCE | _state(1, "h"), "m(x, h)"),
    "gru of one sequence": Called(f"nn.GRU({I}, {H})", {"x": normal(T, I)}),
    "lstm": Called(f"nn.LSTM({I}, {H})", SEQUENCE),
    "lstm layers": Called(
        f"nn.LSTM({I}, {H}, num_layers=2, batch_first=True, bidirectional=True)",
        BATCHES | _state(4, "h", "c"),
        "m(x, (h, c))",
    ),
    "lstm of one sequence": Called(f"nn.LSTM({I}, {H}, bias=False)", {"x": normal(1, I)}),
    "rnn cell": Called(f"nn.RNNCell({I}, {H}, nonlinearity='relu')", {"x": normal(N, I)}),
    "gru cell": Called(f"nn.GRUCell({I}, {H}, bias=False)", {"x": normal(N, I), "h": normal(N, H)}, "m(x, m(x, h))"),
    "lstm cell": Called(f"nn.LSTMCell({I}, {H})", {"x": normal(I)}, "m(x, m(x))"),
}

CALLED = RECURRENT
