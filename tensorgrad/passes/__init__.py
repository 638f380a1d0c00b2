"""Passes over graphs: each takes one and returns another that computes the same."""

from tensorgrad.device.base import Limits
from tensorgrad.graph import Graph
from tensorgrad.passes.cse import cse
from tensorgrad.passes.dce import dce
from tensorgrad.passes.expand import expand
from tensorgrad.passes.simplify import simplify
from tensorgrad.passes.split import split

__all__ = ["cse", "dce", "expand", "optimize", "optimize_for", "simplify", "split"]


def optimize(graph: Graph, *, many_cores: bool = False) -> Graph:
    """All passes, in the order that leaves least to do.

    Args:
        many_cores: cut long sums and matmuls of small results into partial ones, for a GPU.
    """
    graph = cse(simplify(dce(graph)))
    return dce(simplify(split(graph)) if many_cores else graph)


def optimize_for(limits: Limits, graph: Graph) -> Graph:
    """All passes, as they pay on a device: a CPU has few cores, and multiplies whole matrices faster than blocks."""
    return optimize(expand(graph, everything=limits.software), many_cores=not limits.software)
