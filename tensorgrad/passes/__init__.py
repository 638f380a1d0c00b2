"""Passes over graphs: each takes one and returns another that computes the same."""

from tensorgrad.graph import Graph
from tensorgrad.passes.cse import cse
from tensorgrad.passes.dce import dce
from tensorgrad.passes.simplify import simplify

__all__ = ["cse", "dce", "optimize", "simplify"]


def optimize(graph: Graph) -> Graph:
    """All passes, in the order that leaves least to do."""
    return dce(cse(simplify(dce(graph))))
