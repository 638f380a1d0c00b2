"""Gradient clipping and normalization, as functions of a graph."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import reduce

import numpy as np

from tensorgrad import ops
from tensorgrad.dtypes import f32
from tensorgrad.errors import InputError
from tensorgrad.ops.arena import ALIGNMENT, parts, slot_size
from tensorgrad.tensor import Tensor


def grad_norm(grads: Mapping[str, Tensor], norm_type: float = 2.0) -> Tensor:
    """The norm of all gradients as one vector, an f32 scalar.

    Args:
        grads: gradients by name.
        norm_type: 2, another positive number, or `math.inf` for the largest element.
    """
    if not norm_type > 0:
        raise InputError(f"grad_norm: norm_type must be positive, got {norm_type}")
    if not grads:
        return ops.zeros(())
    if norm_type == math.inf:
        largest = [ops.max(ops.abs(g)) for g in grads.values() if g.size]
        return reduce(ops.maximum, largest) if largest else ops.zeros(())
    if norm_type == 2:
        return ops.sqrt(reduce(ops.add, [ops.sum(ops.square(g)) for g in grads.values()]))
    powers = [ops.sum(ops.pow(ops.abs(g), norm_type)) for g in grads.values()]
    return ops.pow(reduce(ops.add, powers), 1 / norm_type)


def clip_grad_norm(grads: Mapping[str, Tensor], max_norm: float, norm_type: float = 2.0) -> dict[str, Tensor]:
    """The gradients, scaled down together where their norm is larger than `max_norm`.

    Args:
        grads: gradients by name.
        max_norm: the largest norm that stays.
        norm_type: as `grad_norm`.

    Source: Pascanu, Mikolov and Bengio, On the difficulty of training recurrent neural networks
    (2012), with the 1e-6 in the quotient that PyTorch adds.
    """
    scale = ops.minimum(max_norm / (grad_norm(grads, norm_type) + 1e-6), 1.0)
    return {name: grad * scale for name, grad in grads.items()}


def clip_grad_value(grads: Mapping[str, Tensor], clip_value: float) -> dict[str, Tensor]:
    """The gradients with each element cut off at `-clip_value` and `clip_value`."""
    return {name: ops.clamp(grad, -clip_value, clip_value) for name, grad in grads.items()}


EPS = 1e-8
"""Added to the norm that a gradient is divided by."""


def normalize_grad(grads: Mapping[str, Tensor], eps: float = EPS) -> dict[str, Tensor]:
    """The gradients, each divided by its own norm, so that all parameters have gradients of length 1.

    Args:
        grads: gradients by name.
        eps: added to the norms; a gradient of zeros stays.

    Source: Yu et al., Block-normalized gradient method (2017).
    """
    return {name: grad * (1.0 / (grad_norm({name: grad}) + eps)) for name, grad in grads.items()}


def normalize_packed(packs: Mapping[str, Tensor], grads: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """`normalize_grad` of gradients that may lie side by side, as the parameters of the same name in `packs` do."""
    found = {}
    for name, grad in grads.items():
        graph = packs[name].graph
        types = [graph.type(value) for value, _ in parts(graph, packs[name].value)]
        if not types:
            found |= normalize_grad({name: grad})
            continue
        # a block of an arena belongs to one parameter: sums of blocks, of which each parameter adds up its own
        block = ALIGNMENT // types[0].dtype.itemsize
        owner = np.repeat(np.arange(len(types), dtype=np.int32), [slot_size(type_) // block for type_ in types])
        blocks = ops.reshape(grad, len(owner), block)
        squares = ops.sum(ops.square(ops.cast(blocks, f32)), 1)
        norms = ops.sqrt(ops.scatter_add(ops.zeros(len(types)), 0, owner, squares))
        scale = ops.cast(1.0 / (norms + EPS), grad.dtype)
        found[name] = ops.reshape(blocks * ops.expand_dims(ops.take(scale, owner), 1), grad.size)
    return found
