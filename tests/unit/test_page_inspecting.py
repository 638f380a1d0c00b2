"""What the page's inspector is told, as far as that runs without Pyodide."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from inspected import BATCH, compiled
from tensorgrad.inspect import Profile


@pytest.fixture(scope="module")
def train() -> tg.Train:
    step = compiled()
    asyncio.run(step.step(**BATCH))
    return step


def ask(what: str, **more: Any) -> dict[str, Any]:
    from tensorgrad_page.inspecting import answer

    return json.loads(asyncio.run(answer(json.dumps({"what": what, **more}))))


def number() -> int:
    """Of the training step, which was compiled last."""
    return next(p["program"] for p in ask("programs")["programs"] if p["title"] == "training step of MLP")


def test_the_last_program_is_the_first_and_keeps_its_number(train: tg.Train) -> None:
    before = number()
    double = tg.jit(lambda x: x * 2, device="numpy")
    asyncio.run(double(np.arange(3.0)))
    newest, *others = ask("programs")["programs"]
    assert not newest["trains"]
    assert others[0]["trains"]
    assert newest["title"] == "jit of <lambda>"
    assert newest["program"] > before == number()
    assert "training steps only" in ask("kernels", program=newest["program"])["unmeasured"]
    del double
    assert "gone" in ask("kernels", program=newest["program"])["error"]


def test_kernels_are_those_of_the_library(train: tg.Train) -> None:
    found = ask("kernels", program=number())
    assert [row["formula"] for row in found["rows"]] == [kernel.formula for kernel in train.kernels]
    assert found["flops"] == sum(row["flops"] for row in found["rows"])
    assert {row["site"]["text"] for row in found["rows"]} >= {"return self.out(self.dropout(hidden))"}
    one = ask("kernel", program=number(), index=1)
    assert (one["wgsl"], "\n".join(one["why"])) == (train.kernels[1].wgsl, train.kernels[1].why)


def test_a_profile_is_the_median_of_steps_that_count(train: tg.Train, monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorgrad_page import inspecting

    steps, made = train.state.steps, []

    async def profile() -> Profile:
        found = await tg.Train.profile(train)
        # The first ones are slow; of the others the third is in the middle.
        factor = [100.0, 100.0, 1.0, 5.0, 3.0, 2.0, 4.0][len(made)]
        rows = [dataclasses.replace(row, nanoseconds=factor * (row.index + 1)) for row in found.rows]
        made.append(Profile(rows, found.what, found.note))
        return made[-1]

    monkeypatch.setattr(train, "profile", profile)
    found = ask("profile", program=number())
    assert (found["steps"], found["measured"], len(made)) == (7, 5, 7)
    assert train.state.steps == steps + 7
    assert [row["nanoseconds"] for row in found["rows"]] == [3.0 * (row["index"] + 1) for row in found["rows"]]
    assert found["rows"][0]["nanoseconds"] == max(row["nanoseconds"] for row in found["rows"])
    # Where a step takes long, two are enough: one to warm up and one that is measured.
    made.clear()
    monkeypatch.setattr(inspecting, "PATIENCE", 0.0)
    found = ask("profile", program=number())
    assert (found["steps"], found["measured"]) == (2, 1)
    assert sorted(row["index"] for row in found["rows"]) == list(range(len(train.kernels)))
    assert found["nanoseconds"] == pytest.approx(sum(row["nanoseconds"] for row in found["rows"]))


def test_where_times_cannot_be_measured_it_says_why(train: tg.Train, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask("kernels", program=number())["unmeasured"] == ""
    gpu = SimpleNamespace(name="webgpu", limits=SimpleNamespace(features=frozenset({"shader-f16"})))
    monkeypatch.setattr(train.state, "backend", gpu)
    assert "timestamp queries are missing" in ask("kernels", program=number())["unmeasured"]
    gpu.limits.features |= {"timestamp-query"}
    assert ask("kernels", program=number())["unmeasured"] == ""


def test_the_memory_over_the_kernels(train: tg.Train) -> None:
    found, memory = ask("memory", program=number()), train.memory
    assert found["total"] == memory.total
    assert sum(one["nbytes"] for one in found["resident"]) == sum(b.nbytes for b in memory.resident)
    assert len(found["needed"]) == len(train.kernels)
    alive = [
        sum(nbytes for buffer in found["pooled"] for first, last, nbytes, _ in buffer["values"] if first <= k <= last)
        for k in range(len(train.kernels))
    ]
    assert found["needed"] == alive
    assert found["peak"] == [max(alive), alive.index(max(alive))]


def test_parameters_are_those_of_the_state_and_change_nothing(train: tg.Train) -> None:
    found = ask("parameters", program=number())
    assert [row["name"] for row in found["rows"]] == ["hidden.weight", "hidden.bias", "out.weight", "out.bias"]
    assert found["gradients"] is False
    numbers = ask("numbers", program=number(), names=["out.weight", "out.bias"])
    weight = asyncio.run(train.state_dict())["model"]["out.weight"]
    of_weight = numbers["values"]["out.weight"]
    assert (of_weight["low"], of_weight["high"]) == (weight.min(), weight.max())
    assert sum(of_weight["counts"]) == weight.size
    picture = of_weight["picture"]
    pixels = np.frombuffer(base64.b64decode(picture["data"]), np.int8).reshape(picture["height"], picture["width"])
    np.testing.assert_allclose(pixels / 127 * np.abs(weight).max(), weight, atol=np.abs(weight).max() / 127)
    assert "picture" not in numbers["values"]["out.bias"]
    assert (numbers["steps"], numbers["gradients"]) == (train.state.steps, {})


def test_gradients_are_shown_once_a_step_was_made(train: tg.Train) -> None:
    loss_fn, specs = lambda model, x: tg.mean(model(x) ** 2), {"x": tg.f32[3, 2]}

    async def kept() -> tg.Train:
        return await tg.compile(tg.nn.Linear(2, 2), loss_fn, tg.optim.SGD(0.1), specs, device="numpy", keep_grads=True)

    async def resumed() -> tg.Train:
        before, step = await kept(), await kept()
        await before.step(x=np.ones((3, 2)))
        await step.load_state_dict(await before.state_dict())
        return step

    step = asyncio.run(resumed())
    program = ask("programs")["programs"][0]["program"]
    numbers = ask("numbers", program=program, names=["weight"])
    assert (numbers["steps"], numbers["gradients"]) == (1, {})
    asyncio.run(step.step(x=np.ones((3, 2))))
    assert list(ask("numbers", program=program, names=["weight"])["gradients"]) == ["weight"]


def test_what_is_not_finite_is_counted_and_large_arrays_are_thinned() -> None:
    from tensorgrad_page.inspecting import COUNTED, PICTURED, _like

    array = np.zeros((1000, 300), np.float32)
    array[0, 0], array[0, 1] = np.nan, np.inf
    found = _like(array)
    json.dumps(found, allow_nan=False)
    assert 0 < found["bad"] <= 2
    assert COUNTED <= sum(found["counts"]) + found["bad"] <= 2 * COUNTED
    assert max(found["picture"]["height"], found["picture"]["width"]) <= PICTURED


def test_the_graph_is_folded_by_lines_and_unfolds_to_its_nodes(train: tg.Train) -> None:
    found = ask("graph", program=number())
    rows = found["rows"]
    assert "MLP.forward" in {row["scope"] for row in rows}
    assert found["nodes"] == sum(row["count"] for row in rows) == len(train.graph.nodes)
    unfolded = [ask("nodes", program=number(), row=i)["nodes"] for i in range(len(rows))]
    texts = {f"{node['result']} = {node['call']}" for nodes in unfolded for node in nodes}
    assert texts == {str(node) for node in train.graph.nodes}
    for i, nodes in enumerate(unfolded):
        assert {row for node in nodes for _, row in node["inputs"]} - {i} == set(rows[i]["reads"])
    assert [node["ends"] for nodes in unfolded for node in nodes if "is returned" in node["ends"]] == [["is returned"]]
