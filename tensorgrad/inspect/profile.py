"""`await train.profile()`: where the time of a step goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tensorgrad.device.base import KernelTime
from tensorgrad.device.peaks import Peaks
from tensorgrad.graph import Graph, Node
from tensorgrad.inspect.graphs import show_call, show_site
from tensorgrad.inspect.program import Shown
from tensorgrad.inspect.tables import counted, html_table, short, show_time, table


@dataclass(frozen=True, slots=True)
class Timed:
    """One kernel's part of a step (on a device without kernels, one node's).

    Attributes:
        index: of the kernel in `train.kernels`, or of the node in the graph.
        name: what it is.
        nanoseconds: its time.
        share: of the whole step's time, 0 to 1.
        gbps: 10**9 bytes a second that it moved, from the estimate of `train.kernels`.
        gflops: 10**9 arithmetic operations a second; None for a node.
        source: the user's line.
        of_peak: how near it is to the device's roofline, as a part of 1; None where the peaks are unknown. What
            stays in the device's caches may be faster than its memory, and so above 1.
        bound: `memory` or `compute`, which of the peaks it is nearer to.
    """

    index: int
    name: str
    nanoseconds: float
    share: float
    gbps: float
    gflops: float | None
    source: str
    of_peak: float | None = None
    bound: str = ""


class Profile:
    """The times of one step, longest first. Printing it shows the top 20.

    Attributes:
        rows: everything that was timed.
        nanoseconds: all of it together; what lies between kernels is not in it.
        what: `kernel` or `node`.
        note: how it was measured.
        peaks: of the device, as it was measured when the first profile was made; None without a GPU.
    """

    def __init__(self, rows: Sequence[Timed], what: str, note: str, peaks: Peaks | None = None) -> None:
        self.rows = tuple(sorted(rows, key=lambda row: -row.nanoseconds))
        self.nanoseconds = sum(row.nanoseconds for row in rows)
        self.what, self.note, self.peaks = what, note, peaks

    _HEADER = (">#", "", ">time", ">share", ">GB/s", ">GFLOP/s", ">of peak", "source")

    def against(self, gbps: float, gflops: float) -> Profile:
        """The same times against other peaks, those of a data sheet for example; see `Peaks`."""
        peaks = Peaks(gbps, gflops)
        return Profile([_against(row, peaks) for row in self.rows], self.what, self.note, peaks)

    def top(self, count: int | None = 20) -> str:
        """A table of the longest; None is all of them."""
        rows = self._cells(count)
        rest = len(self.rows) - len(rows)
        more = [f"and {counted(rest, self.what)} more; .top(None) shows all"] if rest else []
        return "\n".join([self._total(), table(self._HEADER, rows), *more])

    def _cells(self, count: int | None) -> list[tuple[object, ...]]:
        return [
            (
                row.index,
                row.name,
                show_time(row.nanoseconds),
                f"{row.share:.1%}",
                f"{row.gbps:.3g}",
                "" if row.gflops is None else f"{row.gflops:.3g}",
                "" if row.of_peak is None else f"{row.of_peak:.0%} {row.bound}",
                row.source,
            )
            for row in self.rows[:count]
        ]

    def _total(self) -> str:
        peaks = f"; peaks {self.peaks}" if self.peaks else ""
        return f"{show_time(self.nanoseconds)} in {counted(len(self.rows), self.what)}, {self.note}{peaks}"

    def __str__(self) -> str:
        return self.top()

    def __repr__(self) -> str:
        return f"<profile: {self._total()}; print it for a table>"

    def _repr_html_(self) -> str:
        return html_table(self._HEADER, self._cells(20), self._total())


def _against(row: Timed, peaks: Peaks | None) -> Timed:
    if peaks is None or row.gflops is None:
        return row
    of_peak, bound = peaks.share(row.gbps, row.gflops)
    return replace(row, of_peak=of_peak, bound=bound)


def kernel_profile(
    shown: Shown, times: Sequence[KernelTime], on_gpu: bool = True, peaks: Peaks | None = None
) -> Profile:
    """The report on timed kernels; where there is no GPU, every one of them was evaluated."""
    views = [k for k, spec in zip(shown.kernels, shown.specs, strict=True) if spec.runs or not on_gpu]
    total = sum(t.nanoseconds for t in times) or 1.0
    rows = []
    for view, time in zip(views, times, strict=True):
        # work per nanosecond is 10**9 of it per second; a timer's tick may be longer than a kernel
        ns = time.nanoseconds or float("nan")
        source = show_site(view.site, 48) if view.site else ""
        share = time.nanoseconds / total
        rows.append(Timed(view.index, view.name, time.nanoseconds, share, view.nbytes / ns, view.flops / ns, source))
    note = "timed one by one on the GPU" if on_gpu else "by the clock of this computer: formulas, on no GPU"
    return Profile([_against(row, peaks) for row in rows], "kernel", note, peaks)


def node_profile(graph: Graph, times: Sequence[KernelTime]) -> Profile:
    """The report on a device that evaluates the graph node by node."""
    total = sum(t.nanoseconds for t in times) or 1.0
    rows = []
    for time in times:
        node = graph.nodes[time.op_index]
        ns = time.nanoseconds or float("nan")
        source = "" if node.site is None else show_site(node.site, 48)
        share, name = time.nanoseconds / total, short(show_call(node), 48)
        rows.append(Timed(node.id, name, time.nanoseconds, share, _moved(graph, node) / ns, None, source))
    return Profile(rows, "node", "by the clock of this computer: NumPy evaluates the graph, there is no GPU")


def _moved(graph: Graph, node: Node) -> int:
    return sum(graph.type(v).nbytes for v in node.inputs) + sum(t.nbytes for t in node.types)
