"""Reading a compiled program: its graph, kernels and memory, where its time goes, and whether it is right."""

from tensorgrad.inspect.check import CheckReport, check
from tensorgrad.inspect.face import Inspected, programs
from tensorgrad.inspect.graphs import Line, by_line, show_graph, show_site
from tensorgrad.inspect.kernels import Bound, Kernels, KernelView
from tensorgrad.inspect.memory import MemoryReport
from tensorgrad.inspect.profile import Profile, Timed
from tensorgrad.inspect.reference import Difference

__all__ = [
    "Bound",
    "CheckReport",
    "Difference",
    "Inspected",
    "KernelView",
    "Kernels",
    "Line",
    "MemoryReport",
    "Profile",
    "Timed",
    "by_line",
    "check",
    "programs",
    "show_graph",
    "show_site",
]
