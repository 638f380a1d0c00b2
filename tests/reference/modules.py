"""Running a module under the reference rules, as it was traced."""

from __future__ import annotations

import numpy as np

from tensorgrad import nn, ops
from tensorgrad.autodiff import append_grad
from tensorgrad.device.numpy import evaluate
from tensorgrad.dtypes import from_numpy
from tensorgrad.graph import Graph
from tensorgrad.tensor import Tensor
from tensorgrad.trace import tensor_input, trace


def traced(module: nn.Module, *inputs: np.ndarray, training: bool = False) -> Graph:
    """The module on inputs x0, x1, ...; its output, then the gradients of its parameters."""

    def fn() -> list[Tensor]:
        leaves = [tensor_input(f"x{at}", a.shape, from_numpy(a.dtype)) for at, a in enumerate(inputs)]
        y = module(*leaves)
        loss = ops.sum(y * np.cos(np.arange(y.size, dtype=np.float32)).reshape(y.shape))
        return [y, *append_grad(loss, list(module.parameters()))]

    return trace(fn, training=training, names=nn.leaf_names(module))


def call(module: nn.Module, *inputs: np.ndarray, training: bool = False) -> list[np.ndarray]:
    graph = traced(module, *inputs, training=training)
    values = {**module.state_dict(), **{f"x{at}": a for at, a in enumerate(inputs)}, "step": np.zeros(64, np.uint32)}
    results = evaluate(graph, values)
    return [results[value] for value in graph.outputs]


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(4, 3)
        self.head = nn.Linear(3, 4, bias=False)
        self.head.weight = self.embed.weight
        self.scale = nn.Parameter(np.ones(2))
        self.register_buffer("mean", np.zeros(3))
        self.hidden = nn.Buffer(np.zeros(1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.embed(x))
