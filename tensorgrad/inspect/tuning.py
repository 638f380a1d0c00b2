"""`train.tuning`: what the measurements of `tune=True` have chosen."""

from __future__ import annotations

from tensorgrad.inspect.tables import counted, html_table, show_time, table
from tensorgrad.program import Choice, Tuning


class TuningReport:
    """The choices of a tuning, the most expensive kernel first. Printing it shows them.

    Attributes:
        choices: a `Choice` for each text that was measured.
        before, after: nanoseconds of a step's measured kernels, as the defaults and as they run.
        seconds, budget: what measuring took, and might take.
        left: kernels for which no time was left.
    """

    def __init__(self, tuning: Tuning) -> None:
        self.choices, self.budget, self.seconds, self.left = tuning
        self.before = sum(c.repeats * c.before for c in self.choices)
        self.after = sum(c.repeats * c.after for c in self.choices)

    _HEADER = ("kernel, as by default", ">times", ">default", ">chosen", ">of", "variant")

    def _cells(self) -> list[tuple[object, ...]]:
        return [
            (c.kernel, c.repeats, show_time(c.before), show_time(c.after), c.tried, _variant(c)) for c in self.choices
        ]

    def _total(self) -> str:
        changed = sum(c.after < c.before for c in self.choices)
        left = f"; no time was left for {counted(self.left, 'more kernel')}" if self.left else ""
        return (
            f"{changed} of {counted(len(self.choices), 'kernel')} changed: {show_time(self.before)} -> "
            f"{show_time(self.after)} of a step, measured in {self.seconds:.1f} s of {self.budget:g} s{left}"
        )

    def __str__(self) -> str:
        return "\n".join([self._total(), table(self._HEADER, self._cells())])

    def __repr__(self) -> str:
        return f"<tuning: {self._total()}; print it for a table>"

    def _repr_html_(self) -> str:
        return html_table(self._HEADER, self._cells(), self._total())


def _variant(choice: Choice) -> str:
    return choice.variant if choice.after < choice.before else "default"
