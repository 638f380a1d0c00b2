"""Passes over graphs: each takes one and returns another that computes the same."""

from tensorgrad.graph import Graph
from tensorgrad.passes.cse import cse
from tensorgrad.passes.dce import dce
from tensorgrad.passes.simplify import simplify
from tensorgrad.passes.split import split

__all__ = ["cse", "dce", "optimize", "simplify", "split"]


def optimize(graph: Graph, *, many_cores: bool = False) -> Graph:
    """All passes, in the order that leaves least to do.

    Args:
        many_cores: cut long sums and matmuls of small results into partial ones, for a GPU.
    """
    graph = cse(simplify(graph))
    return dce(simplify(split(graph)) if many_cores else graph)
