"""Modules: PyTorch's names, defaults and state-dict keys."""

from tensorgrad.nn import functional, init
from tensorgrad.nn.activations import GELU, LogSoftmax, ReLU, Sigmoid, SiLU, Softmax, Tanh
from tensorgrad.nn.attention import MultiheadAttention
from tensorgrad.nn.batch_norm import BatchNorm1d, BatchNorm2d
from tensorgrad.nn.containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from tensorgrad.nn.convolution import AdaptiveAvgPool2d, AvgPool2d, Conv1d, Conv2d, MaxPool2d
from tensorgrad.nn.layers import Dropout, Embedding, Flatten, Identity, LayerNorm, Linear
from tensorgrad.nn.losses import (
    BCELoss,
    BCEWithLogitsLoss,
    CosineEmbeddingLoss,
    CosineSimilarity,
    CrossEntropyLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)
from tensorgrad.nn.module import Module, leaf_names
from tensorgrad.nn.parameter import Buffer, Parameter
from tensorgrad.nn.recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
from tensorgrad.nn.transformer import (
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)

__all__ = [
    "GELU",
    "GRU",
    "LSTM",
    "RNN",
    "AdaptiveAvgPool2d",
    "AvgPool2d",
    "BCELoss",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "Buffer",
    "Conv1d",
    "Conv2d",
    "CosineEmbeddingLoss",
    "CosineSimilarity",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "GRUCell",
    "HuberLoss",
    "Identity",
    "KLDivLoss",
    "L1Loss",
    "LSTMCell",
    "LayerNorm",
    "Linear",
    "LogSoftmax",
    "MSELoss",
    "MaxPool2d",
    "Module",
    "ModuleDict",
    "ModuleList",
    "MultiheadAttention",
    "NLLLoss",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "RNNCell",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SmoothL1Loss",
    "Softmax",
    "Tanh",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "functional",
    "init",
    "leaf_names",
]
