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

WIDE = np.array([[-30.0, -3.5, -3.0, -1.0, -0.5], [-0.1, 0.0, 0.25, 0.5, 1.0], [3.0, 5.5, 6.0, 6.5, 30.0]], np.float32)
FUNCTIONS = [
    *["ReLU(True)", "ReLU6(inplace=True)", "SiLU()", "Mish()", "SELU()", "Hardswish()", "Hardsigmoid()"],
    *["Tanh()", "Sigmoid()", "LogSigmoid()", "Softsign()", "Tanhshrink()", "GELU()", "GELU('tanh')"],
    *["LeakyReLU()", "LeakyReLU(0.2, True)", "ELU()", "ELU(0.5)", "CELU(2.0)", "Softplus()", "Softplus(2.0, 1.5)"],
    *["Hardtanh()", "Hardtanh(-2.0, 0.75)", "Threshold(0.3, 2.0)", "Softshrink()", "Hardshrink(0.75)"],
    *["Softmax(0)", "Softmin(dim=1)", "LogSoftmax(-1)"],
]
IMAGES, LINES = {"x": normal(2, 4, 5, 6)}, {"x": normal(2, 4, 7)}

ACTIVATIONS = {
    # one module of all, on the same numbers
    "activations": Called(
        f"nn.ModuleList([{', '.join(f'nn.{name}' for name in FUNCTIONS)}])", {"x": WIDE}, "tuple(f(x * 1.0) for f in m)"
    ),
    "glu": Called("nn.GLU()", {"x": normal(3, 4)}),
    "softmax of channels": Called("nn.Softmax2d()", IMAGES),
    "prelu": Called("nn.ModuleList([nn.PReLU(), nn.PReLU(4, 0.5)])", LINES, "tuple(f(x) for f in m)"),
}

NORMS = {
    "layer norms": Called(
        "nn.ModuleList([nn.LayerNorm((5, 6), bias=False), nn.LayerNorm(6, 1e-3), nn.LayerNorm(6, 1e-5, False)])",
        IMAGES,
        "tuple(f(x) for f in m)",
    ),
    "rms norms": Called(
        "nn.ModuleList([nn.RMSNorm((5, 6)), nn.RMSNorm(6, 1e-2), nn.RMSNorm(6, elementwise_affine=False)])",
        IMAGES,
        "tuple(f(x) for f in m)",
    ),
    "group norms": Called(
        "nn.ModuleList([nn.GroupNorm(2, 4), nn.GroupNorm(1, 4, 1e-2, bias=False), nn.GroupNorm(4, 4, affine=False)])",
        IMAGES,
        "tuple(f(x) for f in m)",
    ),
    "instance norms": Called(
        "nn.ModuleList([nn.InstanceNorm1d(4), nn.InstanceNorm1d(4, 1e-2, affine=True)])",
        LINES,
        "(m[0](x), m[1](x), m[1](x[0]))",
    ),
    "instance norm of images": Called("nn.InstanceNorm2d(4, affine=True)", IMAGES),
    "batch norms": Called(
        "nn.ModuleList([nn.BatchNorm2d(4), nn.BatchNorm2d(4, affine=False), "
        "nn.BatchNorm2d(4, track_running_stats=False, bias=False)])",
        IMAGES,
        "tuple(f(x) for f in m)",
        training=False,
    ),
}

IMAGE_MODULES = {
    "convolutions": Called(
        "nn.ModuleList([nn.Conv2d(4, 3, 3, dilation=2, padding=2), nn.Conv2d(4, 2, (3, 2), 1, 'same', bias=False), "
        "nn.Conv2d(4, 8, 3, groups=4, padding='valid'), nn.Conv2d(4, 2, 3, (2, 1), (1, 0), groups=2)])",
        IMAGES,
        "tuple(f(x) for f in m)",
    ),
    "padding modes": Called(
        "nn.ModuleList([nn.Conv2d(4, 2, 3, padding=(1, 2), padding_mode='reflect'), "
        "nn.Conv2d(4, 2, (3, 2), padding='same', dilation=2, padding_mode='circular')])",
        IMAGES,
        "tuple(f(x) for f in m)",
    ),
    "convolutions of lines": Called(
        "nn.ModuleList([nn.Conv1d(4, 3, 3, dilation=2), nn.Conv1d(4, 2, 4, padding='same', padding_mode='replicate')])",
        LINES,
        "tuple(f(x) for f in m)",
    ),
    "pools": Called(
        "nn.ModuleList([nn.MaxPool2d(2), nn.MaxPool2d((3, 2), 1, (1, 0), ceil_mode=True), nn.AvgPool2d(3, 2, 1), "
        "nn.AvgPool2d(3, 2, 1, True, False), nn.AvgPool2d(2, divisor_override=3), nn.AdaptiveAvgPool2d((5, 2))])",
        IMAGES,
        "tuple(f(x) for f in m)",
    ),
    "pools of lines": Called(
        "nn.ModuleList([nn.MaxPool1d(2), nn.MaxPool1d(3, 1, 1, 2), nn.AvgPool1d(3), "
        "nn.AvgPool1d(2, 3, 1, True, False)])",
        LINES,
        "tuple(f(x) for f in m)",
    ),
    "paddings": Called(
        "nn.ModuleList([nn.ZeroPad2d((1, 2, 0, -1)), nn.ConstantPad2d(1, 2.5), nn.ReflectionPad2d((2, 1, 1, 0)), "
        "nn.ReplicationPad2d(1), nn.CircularPad2d((1, 0, 2, 1)), nn.ZeroPad1d(1), nn.ConstantPad1d((0, 2), -1.0), "
        "nn.ReflectionPad1d(2), nn.ReplicationPad1d((1, 2)), nn.CircularPad1d(1)])",
        {"x": normal(1, 1, 3, 4)},
        "tuple(f(x if i < 5 else x[0]) for i, f in enumerate(m))",
    ),
    "transposed convolutions": Called(
        "nn.ModuleList([nn.ConvTranspose2d(4, 3, 3, 2, 1, 1), nn.ConvTranspose2d(4, 4, (2, 3), groups=2, bias=False), "
        "nn.ConvTranspose2d(4, 2, 2, (1, 2), dilation=2)])",
        IMAGES,
        "tuple(f(x) for f in m)",
    ),
    "transposed convolution to a size": Called(
        "nn.ModuleList([nn.ConvTranspose2d(4, 2, 3, (2, 3), 1), nn.ConvTranspose1d(4, 2, 3, 2, bias=False)])",
        {"x": normal(2, 4, 2, 3)},
        "(m[0](x, [3, 9]), m[0](x, output_size=(2, 4, 4, 7)), m[1](x[:, :, 0], [8]))",
    ),
    "transposed convolution of lines": Called("nn.ConvTranspose1d(4, 2, 3, 2, 1)", LINES),
    "convolutions of volumes": Called(
        "nn.Sequential(nn.Conv3d(1, 2, 2, padding=1), nn.ConvTranspose3d(2, 1, (1, 2, 3), 1, (0, 1, 1)))",
        {"x": normal(1, 1, 2, 3, 4)},
    ),
    "adaptive pools": Called(
        "nn.ModuleList([nn.AdaptiveAvgPool2d((2, None)), nn.AdaptiveMaxPool2d((3, 2)), nn.AdaptiveMaxPool2d(1)])",
        IMAGES,
        "tuple(f(x) for f in m)",
    ),
    "adaptive pools of lines": Called(
        "nn.ModuleList([nn.AdaptiveAvgPool1d(3), nn.AdaptiveMaxPool1d(2)])", LINES, "tuple(f(x) for f in m)"
    ),
    "resized": Called(
        "nn.ModuleList([nn.Upsample(scale_factor=2), nn.Upsample((3, 4), mode='bilinear'), "
        "nn.UpsamplingNearest2d(size=7), nn.UpsamplingBilinear2d(scale_factor=1.5)])",
        {"x": normal(1, 2, 4, 5)},
        "tuple(f(x) for f in m)",
    ),
    "shuffled": Called(
        "nn.ModuleList([nn.PixelShuffle(2), nn.ChannelShuffle(2), nn.PixelUnshuffle(2), nn.Unfold((2, 3), 1, 1, 2)])",
        {"x": normal(1, 4, 4, 6)},
        "tuple(f(x) for f in m)",
    ),
    "folded": Called("nn.Fold((4, 5), (2, 3), stride=(2, 1))", {"x": normal(2, 6, 6)}),
    "flattened": Called("nn.Sequential(nn.Flatten(2), nn.Unflatten(2, (3, -1)), nn.Flatten(0, 1))", IMAGES),
}

OTHERS = {
    "bilinear": Called("nn.Bilinear(3, 4, 5)", {"x": normal(2, 6, 3), "y": normal(2, 6, 4)}, "m(x, y)"),
    "bilinear without bias": Called("nn.Bilinear(3, 1, 2, False)", {"x": normal(2, 3), "y": normal(2, 1)}, "m(x, y)"),
    "embedding": Called("nn.Embedding(5, 3, 1)", {"i": np.array([[0, 1, 4], [1, 1, 0]], np.int32)}, "m(i)"),
    "a table of one's own": Called(
        "nn.Embedding.from_pretrained(nn.Linear(2, 3).weight, freeze=False)", {"i": np.array([2, 0], np.int32)}, "m(i)"
    ),
    "dropouts": Called(
        "nn.Sequential(nn.Dropout(0.5, True), nn.Dropout2d(), nn.AlphaDropout(0.2), nn.Identity())",
        IMAGES,
        training=False,
    ),
    "dropout of lines": Called("nn.Dropout1d()", LINES, training=False),
    "batch norms of rows": Called("nn.BatchNorm1d(4)", {"x": normal(6, 4)}, training=False),
    "parameters": Called(
        "nn.ParameterList([nn.Linear(3, 2).weight, nn.Linear(3, 2).bias])", {"x": normal(2, 3)}, "x @ m[0].T + m[1]"
    ),
    "parameters by name": Called(
        "nn.ParameterDict({'b': nn.Linear(3, 2).weight, 'a': nn.Linear(3, 2).bias})",
        {"x": normal(2, 3)},
        "x @ m['b'].T + m['a']",
    ),
    "modules by name": Called(
        "nn.ModuleDict({'b': nn.Linear(3, 2), 'a': nn.Tanh()})", {"x": normal(2, 3)}, "m['a'](m['b'](x))"
    ),
}

CLASSES = {"x": normal(4, 5), "t": np.array([0, 4, 2, 2], np.int32)}
SIDES = {"x": normal(3, 4), "y": normal(3, 4, seed=1), "t": np.array([1, -1, 1], np.int32)}

LOSSES = {
    "losses of numbers": Called(
        "nn.ModuleList([nn.MSELoss(), nn.L1Loss(reduction='sum'), nn.SmoothL1Loss(beta=0.5), "
        "nn.HuberLoss('none', 0.75)])",
        {"x": normal(3, 4), "y": normal(3, 4, seed=1)},
        "tuple(f(x, y) for f in m)",
    ),
    "losses of classes": Called(
        "nn.ModuleList([nn.CrossEntropyLoss(), nn.CrossEntropyLoss(ignore_index=2, label_smoothing=0.1), "
        "nn.NLLLoss(reduction='none')])",
        CLASSES,
        "(m[0](x, t), m[1](x, t), m[2](nn.functional.log_softmax(x, -1), t))",
    ),
    "losses of probabilities": Called(
        "nn.ModuleList([nn.BCEWithLogitsLoss(), nn.BCELoss(reduction='sum'), "
        "nn.KLDivLoss(reduction='batchmean', log_target=True)])",
        {"x": normal(3, 4), "y": normal(3, 4, seed=1)},
        "(m[0](x, nn.functional.sigmoid(y)), m[1](nn.functional.sigmoid(x), nn.functional.sigmoid(y)), m[2](x, y))",
    ),
    "losses of angles": Called(
        "nn.ModuleList([nn.CosineSimilarity(), nn.CosineSimilarity(0, 1e-3), nn.CosineEmbeddingLoss(0.2)])",
        SIDES,
        "(m[0](x, y), m[1](x, y), m[2](x, y, t))",
    ),
}

MARGINS = {
    "losses of margins": Called(
        "nn.ModuleList([nn.SoftMarginLoss(), nn.HingeEmbeddingLoss(0.5), nn.MarginRankingLoss(0.1, reduction='sum')])",
        {"x": normal(3, 4), "y": normal(3, 4, seed=1), "t": np.array([[1, -1, 1, 1]] * 3, np.int32)},
        "(m[0](x, t), m[1](x, t), m[2](x, y, t))",
    ),
    "losses of triplets": Called(
        "nn.ModuleList([nn.TripletMarginLoss(), nn.TripletMarginLoss(0.5, 1.5, swap=True, reduction='none'), "
        "nn.TripletMarginWithDistanceLoss(distance_function=nn.PairwiseDistance(1.0), margin=2.0)])",
        {"a": normal(3, 4), "p": normal(3, 4, seed=1), "n": normal(3, 4, seed=2)},
        "tuple(f(a, p, n) for f in m)",
    ),
    "losses of margins of classes": Called(
        "nn.ModuleList([nn.MultiMarginLoss(), nn.MultiMarginLoss(2, 0.5), nn.MultiLabelMarginLoss(), "
        "nn.MultiLabelSoftMarginLoss(reduction='sum')])",
        {**CLASSES, "l": np.array([[3, 0, -1, 1, 1]] * 4, np.int32), "y": (normal(4, 5) > 0).astype(np.float32)},
        "(m[0](x, t), m[1](x, t), m[2](x, l), m[3](x, y))",
    ),
    "losses of likelihoods": Called(
        "nn.ModuleList([nn.PoissonNLLLoss(), nn.PoissonNLLLoss(False, reduction='none'), "
        "nn.GaussianNLLLoss(full=True)])",
        {"x": np.abs(normal(3, 4)), "y": normal(3, 4, seed=1)},
        "(m[0](x, y), m[1](x, y), m[2](x, y, x + 0.5))",
    ),
    "pools of powers": Called(
        "nn.ModuleList([nn.LPPool2d(2, 2), nn.LocalResponseNorm(3, k=2.0), nn.MaxPool2d(2, return_indices=True)])",
        {"x": np.abs(normal(2, 4, 5, 6))},
        "(m[0](x), m[1](x), m[2](x)[0])",
    ),
    "pools of powers of lines": Called("nn.LPPool1d(3.0, 3, 2)", {"x": np.abs(normal(2, 4, 7))}),
    "norms of volumes": Called(
        "nn.ModuleList([nn.BatchNorm3d(2), nn.InstanceNorm3d(2, affine=True), nn.InstanceNorm3d(2, 0.1)])",
        {"x": normal(2, 2, 2, 3, 2)},
        "tuple(f(x) for f in m)",
        training=False,
    ),
}

CALLED = RECURRENT | ATTENTION | TRANSFORMERS | ACTIVATIONS | NORMS | IMAGE_MODULES | OTHERS | LOSSES | MARGINS
