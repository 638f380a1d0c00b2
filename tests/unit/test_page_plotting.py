"""`plot` of the page's Python half, without Pyodide."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest


def points(sent: list[str]) -> dict[str, list[Any]]:
    series: dict[str, list[Any]] = {}
    for message in map(json.loads, sent):
        for name, some in message.get("series", {}).items():
            series.setdefault(name, []).extend(some)
    return series


def test_plot_gathers_points_and_sends_few_messages() -> None:
    from tensorgrad_page.plotting import Plot

    sent: list[str] = []
    plot = Plot(sent.append)
    for i in range(5_000):
        plot(i / 2)
    plot.flush()
    assert points(sent)["loss"] == [[i + 1, i / 2] for i in range(5_000)]
    assert len(sent) < 100


def test_plot_is_told_by_what_a_call_does() -> None:
    from tensorgrad_page.describing import told
    from tensorgrad_page.plotting import Plot

    answer = told("plot?", {"plot": Plot(print)})
    assert "value: the height of the point" in answer
    assert "post" not in answer  # that is the page's side


def test_each_chart_counts_its_own_steps() -> None:
    from tensorgrad_page.plotting import Plot

    sent: list[str] = []
    plot = Plot(sent.append)
    for chart, count in (("a", 10), ("b", 4), ("a", 1)):
        plot.draw_in(chart)
        for _ in range(count):
            plot(0.0)
    plot.flush()
    assert [step for step, _ in points(sent)["loss"]] == [*range(1, 11), *range(1, 5), 11]


def test_plot_numbers_steps_by_curve_and_leaves_gaps() -> None:
    from tensorgrad_page.plotting import Plot

    sent: list[str] = []
    plot = Plot(sent.append)
    plot(1.0)
    plot(float("nan"))
    plot(3, "other", step=10)
    plot(4, "other")
    plot.clear("loss")
    plot(5.0)
    plot.flush()
    assert points(sent) == {"loss": [[1, 1.0], [2, None], [1, 5.0]], "other": [[10, 3.0], [11, 4.0]]}
    assert {"kind": "clear", "name": "loss"} in map(json.loads, sent)


def test_a_run_of_the_program_begins_new_curves_and_the_prompt_goes_on() -> None:
    from tensorgrad_page.plotting import Plot

    sent: list[str] = []
    plot = Plot(sent.append)
    plot(1.0)
    plot(2.0, "other")
    plot.begin()  # of a run that plots nothing: the curves stay, as the run before's
    plot.flush()
    assert '{"kind": "clear", "name": null}' not in sent
    assert sent[-1] == '{"kind": "old"}'
    plot.begin()
    with pytest.raises(TypeError):
        plot("much")  # type: ignore[arg-type]
    assert '{"kind": "clear", "name": null}' not in sent
    plot(3.0)
    plot.flush()
    assert sent[-2:] == ['{"kind": "clear", "name": null}', '{"kind": "points", "series": {"loss": [[1, 3.0]]}}']
    plot(4.0)
    plot(5.0, "other")
    plot.flush()
    assert json.loads(sent[-1])["series"] == {"loss": [[2, 4.0]], "other": [[1, 5.0]]}


def test_plot_says_what_it_takes() -> None:
    from tensorgrad_page.plotting import Plot

    with pytest.raises(TypeError, match=r"plot\(\) takes a number, such as result\.loss, not str"):
        Plot(lambda text: None)("much")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"name as a string, not 2; a step goes in by name: step=2"):
        Plot(lambda text: None)(1, 2)  # type: ignore[arg-type]
    for step in (math.nan, math.inf, "x"):  # NaN and infinity are no JSON
        with pytest.raises(TypeError, match=r"plot\(\) takes a finite number as step"):
            Plot(lambda text: None)(1, step=step)  # type: ignore[arg-type]
