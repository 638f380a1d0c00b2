"""Passes over graphs: each takes one and returns another that computes the same."""

from tensorgrad.device.base import Limits
from tensorgrad.graph import Graph
from tensorgrad.passes.autocast import autocast
from tensorgrad.passes.cse import cse
from tensorgrad.passes.dce import dce
from tensorgrad.passes.expand import expand
from tensorgrad.passes.merge import merge
from tensorgrad.passes.partials import defer
from tensorgrad.passes.simplify import simplify
from tensorgrad.passes.split import split
from tensorgrad.passes.transpose import transpose

__all__ = ["autocast", "cse", "dce", "defer", "expand", "merge", "optimize", "simplify", "split", "transpose"]


def optimize(graph: Graph, limits: Limits | None = None, *, half: bool = False) -> Graph:
    """All passes, in the order that leaves least to do.

    Args:
        limits: of the device. A GPU gets long sums and matmuls of small results cut into partial ones; None
            leaves out what depends on the device.
        half: round what is multiplied to f16 (mixed precision).
    """
    if limits is None:
        return dce(cse(simplify(graph)))
    # a CPU has few cores, and multiplies whole matrices faster than blocks
    graph = cse(simplify(expand(graph, everything=limits.software)))
    if half:
        graph = cse(simplify(autocast(graph)))
    if limits.software:
        return dce(graph)
    graph = merge(dce(simplify(transpose(graph))), limits)
    graph = simplify(split(graph, limits))
    return dce(simplify(defer(graph, limits)))
