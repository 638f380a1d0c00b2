"""Running a module under the reference rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from reference.agree import weights
from reference.stored import arrays, run
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


def leaves(nest: Any) -> list[Tensor]:
    """The tensors of nested tuples."""
    return [t for part in nest for t in leaves(part)] if isinstance(nest, tuple) else [nest]


def called(case: dict[str, Any]) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """A stored call of a module with the stored state: its results, and the gradients of parameters and inputs."""
    module: nn.Module = eval(case["module"], {"nn": nn})
    assert list(module.state_dict()) == list(case["state"])
    module.load_state_dict(arrays(case["state"]))
    inputs = arrays(case["inputs"])
    count = 0

    def fn(**given: Tensor) -> list[Tensor]:
        nonlocal count
        results = leaves(eval(case["call"], {"m": module, "nn": nn, **given}))
        count = len(results)
        loss = sum((ops.sum(y * weights(y)) for y in results), start=ops.zeros(()))
        wanted = {**dict(module.named_parameters()), **given}
        return [*results, *append_grad(loss, [wanted[name] for name in case["grads"]])]

    found = run(fn, inputs, training=case["training"])
    return found[:count], dict(zip(case["grads"], found[count:], strict=True))


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
