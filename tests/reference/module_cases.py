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

L, S, E = 3, 4, 6
QUERY = {"q": normal(L, N, E), "k": normal(S, N, E, seed=1), "v": normal(S, N, E, seed=2)}
CAUSAL = np.triu(np.ones((S, S), bool), 1)
PADDING = np.array([[False, False, True, False], [False, True, True, True]])
ADDED = {"a": normal(L, S), "p": normal(N, S)}
SOURCE, TARGET = {"x": normal(S, N, E)}, {"y": normal(L, N, E, seed=1), "x": normal(S, N, E, seed=2)}

ATTENTION = {
    "self-attention": Called("nn.MultiheadAttention(6, 2)", SOURCE, "m(x, x, x)"),
    "attention": Called("nn.MultiheadAttention(6, 3, bias=False)", QUERY, "m(q, k, v, average_attn_weights=False)"),
    "attention of one key and value": Called("nn.MultiheadAttention(6, 2)", QUERY, "m(q, k, k, need_weights=False)[0]"),
    "attention of sizes": Called(
        "nn.MultiheadAttention(6, 2, kdim=5, vdim=3, batch_first=True)",
        {"q": normal(N, L, E), "k": normal(N, S, 5), "v": normal(N, S, 3)},
        "m(q, k, v)",
    ),
    "attention without a batch": Called(
        "nn.MultiheadAttention(6, 1)", {"q": normal(L, E), "k": normal(S, E)}, "m(q, k, k)"
    ),
    "causal attention": Called(
        "nn.MultiheadAttention(6, 2)", SOURCE | {"c": CAUSAL}, "m(x, x, x, attn_mask=c, is_causal=True)"
    ),
    "hidden keys": Called(
        "nn.MultiheadAttention(6, 2)",
        SOURCE | {"c": CAUSAL, "p": PADDING},
        "m(x, x, x, key_padding_mask=p, attn_mask=c, average_attn_weights=False)",
    ),
    "added masks": Called("nn.MultiheadAttention(6, 2)", QUERY | ADDED, "m(q, k, v, p, attn_mask=a)"),
    "masks by head": Called(
        "nn.MultiheadAttention(6, 2, batch_first=True)",
        {"x": normal(N, S, E), "a": normal(2 * N, S, S)},
        "m(x, x, x, attn_mask=a)",
    ),
}

PADDED = "m(y, x, None, None, None, p)"

TRANSFORMERS = {
    "encoder layer": Called("nn.TransformerEncoderLayer(6, 2, 8, 0.0)", SOURCE),
    "encoder layer, norm first": Called(
        "nn.TransformerEncoderLayer(6, 2, 8, 0.0, 'gelu', 1e-3, True, True, False)",
        {"x": normal(N, S, E), "c": CAUSAL, "p": PADDING},
        "m(x, c, p)",
    ),
    "encoder": Called(
        "nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 3, 8, 0.0), 2, nn.LayerNorm(6), False)",
        SOURCE | {"c": CAUSAL},
        "m(x, c, is_causal=True)",
    ),
    "encoder in evaluation": Called(
        "nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8), 1, enable_nested_tensor=False)",
        SOURCE,
        training=False,
    ),
    "decoder layer": Called(
        "nn.TransformerDecoderLayer(6, 2, 8, 0.0)", TARGET | {"p": PADDING}, "m(y, x, None, None, None, p)"
    ),
    "decoder": Called(
        "nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2, 8, 0.0, norm_first=True), 2)",
        TARGET | {"c": CAUSAL[:L, :L]},
        "m(y, x, c)",
    ),
    "transformer": Called(
        "nn.Transformer(6, 2, 1, 1, 8, 0.0)", TARGET, "m(x, y, tgt_mask=m.generate_square_subsequent_mask(3))"
    ),
}

CALLED = RECURRENT | ATTENTION | TRANSFORMERS
