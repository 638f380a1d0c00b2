"""What a compiled program shows of itself: graph, kernels, memory, profile, and the debug levels."""

from __future__ import annotations

import asyncio
import gc
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from inspected import BATCH, compiled, lowered, weights
from models import CharGPT, next_token_loss
from tensorgrad import optim
from tensorgrad.graph import Graph
from tensorgrad.inspect import KernelView, Profile, Timed, by_line, programs, show_site, work
from tensorgrad.inspect.tables import show_bytes, show_time, table
from tensorgrad.lower.lowering import lower
from tensorgrad.passes import optimize


@pytest.fixture(scope="module")
def train() -> tg.Train:
    return compiled()


# Graphs -------------------------------------------------------------------------------------------


def small_graph() -> Graph:
    def fn() -> tg.Tensor:
        x = tg.tensor_input("x", (2, 3))
        count = tg.state_input("count", (), tg.i32)
        tg.update_state(count, count + 1)
        tg.capture("doubled", x * 2.0)
        return x.T.sum(axis=0)

    return optimize(tg.trace(fn))


def test_a_graph_prints_aligned_with_the_lines_that_made_it() -> None:
    lines = str(small_graph()).splitlines()
    assert lines[0].startswith("%0: f32[2, 3] = input x")
    equals = {line.index(" = ") for line in lines if " = " in line and line.startswith("%")}
    assert len(equals) == 1, "the equals signs stand under each other"
    assert any(line.startswith("%") and "permute(%0, perm=[1, 0])" in line for line in lines)
    transposed = next(line for line in lines if "permute" in line)
    assert transposed.endswith("return x.T.sum(axis=0)")
    assert "# test_inspect.py:" in transposed
    assert any(line.startswith("return %") for line in lines)
    assert any(line.startswith("update count <- %") for line in lines)
    assert any(line.startswith("capture doubled = %") for line in lines)


def test_a_graphs_html_is_escaped() -> None:
    graph = tg.trace(lambda: tg.tensor_input("<x> & y", (1,)) * 2)
    html = graph._repr_html_()
    assert "&lt;x&gt; &amp; y" in html
    assert "<x>" not in html


def test_the_operations_of_a_gradient_belong_to_the_line_of_the_forward_pass(train: tg.Train) -> None:
    weight_gradient = next(n for n in train.graph.nodes if n.op == "place" and n.attrs["slot"] == "hidden.weight")
    products = [n for n in train.graph.nodes if n.op == "matmul" and n.id < weight_gradient.id]
    assert {n.site.function for n in products if n.site} == {"forward"}


# Kernels ------------------------------------------------------------------------------------------


def by_write(train: tg.Train, name: str) -> KernelView:
    return next(k for k in train.kernels if name in k.writes)


def test_the_kernels_are_a_sequence_and_a_table(train: tg.Train) -> None:
    kernels = train.kernels
    assert len(kernels) == len(lowered(train).kernels) > 5
    assert [k.index for k in kernels] == list(range(len(kernels)))
    assert kernels[-1].index == len(kernels) - 1
    assert [k.index for k in kernels[1:3]] == [1, 2]
    lines = str(kernels).splitlines()
    assert lines[0].split()[:2] == ["#", "kernel"]
    for kernel, line in zip(kernels, lines[1:], strict=False):
        assert line.split()[0] == str(kernel.index)
        assert kernel.name in line
    assert f"{len(kernels)} kernels" in str(kernels)


def test_a_kernel_shows_its_formula_source_and_wgsl(train: tg.Train) -> None:
    kernel = train.kernels[0]
    assert kernel.template == "matmul"
    assert kernel.variant.endswith("nt")
    first, *stores = kernel.formula.splitlines()
    assert first == "acc[m, n] = sum_k x[k + m*20] * hidden.weight[k + n*20]"
    assert stores[-1].split(" = ")[1] == "where(acc + hidden.bias[n] <= 0, 0, acc + hidden.bias[n])"
    text = str(kernel)
    assert "the hidden layer's line" in text
    assert "@compute" in text
    assert kernel.formula.splitlines()[0] in text
    assert "@compute" not in kernel.show(wgsl=False)
    assert [b.name for b in kernel.bindings][:2] == ["x", "hidden.weight"]
    assert {b.access for b in kernel.bindings} == {"read", "write"}


def test_a_formula_names_what_occurs_twice(train: tg.Train) -> None:
    formula = by_write(train, "loss").formula.splitlines()
    named = [line.split(" = ")[0] for line in formula if line.startswith("v")]
    assert named == [f"v{i}" for i in range(len(named))]
    assert named
    body = "\n".join(formula)
    for name in named:
        assert body.count(name) > 2, f"{name} is defined and used once only"


def test_a_kernel_says_why_it_is_one(train: tg.Train) -> None:
    assert "computed as an epilogue" in train.kernels[0].why
    softmax = next(k for k in train.kernels if "max_k0" in k.formula)
    assert "within the row" in softmax.why or "within each row" in softmax.why
    update = train.kernels[-1]
    assert "in place" in update.why
    assert [b.access for b in update.bindings].count("read_write") == 3
    hidden = train.kernels[0].writes[-1]
    readers = [k.index for k in train.kernels if any(b.name == hidden and b.access == "read" for b in k.bindings)]
    # the logits, the weight's gradient and ReLU's own
    assert len(readers) == 3
    assert f"kernels {', '.join(map(str, readers))} read it" in train.kernels[0].why
    assert "a matmul reads its operands from memory" in train.kernels[0].why


def test_without_fusion_nothing_was_joined() -> None:
    train = compiled("interpret")
    low = lower(train.graph, {"loss": train.graph.outputs[0]}, fuse=False)
    assert not any(k.joined for k in low.kernels)
    assert any(k.joined for k in lowered(train).kernels)


def test_work_and_traffic_are_counted(train: tg.Train) -> None:
    kernel = train.kernels[0]
    products, epilogue = 2 * 8 * 16 * 20, 8 * 16 * 3  # an addition, a comparison and a selection each
    assert kernel.flops == products + epilogue
    moved = 8 * 20 + 16 * 20 + 16 + len(kernel.writes) * 8 * 16
    assert kernel.nbytes == 4 * moved
    total = sum(k.flops for k in train.kernels)
    assert train.kernels.flops == total


def test_a_lookup_reads_only_its_rows() -> None:
    def fn() -> tg.Tensor:
        return tg.embedding(tg.tensor_input("table", (1000, 4)), tg.tensor_input("rows", (3,), tg.i32))

    graph = optimize(tg.trace(fn))
    low = lower(graph, {"0": graph.outputs[0]})
    assert work.traffic(low, low.kernels[0]) == 4 * (3 + 3 * 4 + 3 * 4)


def test_the_sites_of_a_kernel_are_the_lines_that_it_computes(train: tg.Train) -> None:
    lines = [show_site(site) for site in train.kernels[0].sites]
    assert len(lines) == 1
    assert lines[0].endswith("hidden = tg.relu(self.hidden(x))  # the hidden layer's line")


def test_html_has_the_kernels_escaped(train: tg.Train) -> None:
    html = train.kernels._repr_html_()
    assert html.count("<details>") == len(train.kernels)
    assert "hidden.bias[n] &lt;= 0" in html
    assert "http" not in html
    one = train.kernels[0]._repr_html_()
    assert train.kernels[0].name in one
    assert "var&lt;storage" in one
    assert "var<storage" not in one
    assert "<table>" in train.memory._repr_html_()


def test_the_numpy_device_shows_what_a_gpu_would_run(train: tg.Train) -> None:
    on_numpy = compiled("numpy")
    assert [k.formula for k in on_numpy.kernels] == [k.formula for k in train.kernels]
    assert "numpy device" in str(on_numpy.kernels)


# Memory -------------------------------------------------------------------------------------------


def test_memory_adds_up(train: tg.Train) -> None:
    memory, plan = train.memory, lowered(train).memory.plan
    assert memory.total == plan.nbytes
    assert memory.by_kind["param"] == (4, 4 * (20 * 16 + 16 + 16 * 10 + 12)), "10 numbers take the place of 12"
    assert memory.by_kind["output"] == (1, 16)
    pool = [b for b in plan.buffers if b.kind == "temp" and b.arena is None]
    assert memory.pool == sum(b.nbytes for b in pool)
    assert memory.peak[0] <= memory.pool <= memory.unpooled
    assert memory.peak == (max(memory.needed), memory.needed.index(max(memory.needed)))
    assert len(memory.needed) == len(train.kernels)
    counts, nbytes = zip(*(found for kind, found in memory.by_kind.items() if kind != "temp"), strict=True)
    assert (sum(counts), sum(nbytes)) == (len(memory.resident), sum(b.nbytes for b in memory.resident))
    text = str(memory)
    for buffer in pool:
        assert buffer.name in text
    assert "optim.pack0.param" in text
    assert memory.arenas == plan.arenas


def test_lifetimes_in_one_buffer_do_not_overlap() -> None:
    model = CharGPT(layers=1, width=32, heads=2, context=16, vocabulary=20)
    specs = {"x": tg.i32[2, 16], "y": tg.i32[2, 16]}
    memory = asyncio.run(tg.compile(model, next_token_loss, optim.AdamW(), specs, device="interpret")).memory
    assert any(len(buffer.values) > 1 for buffer in memory.pooled), "nothing is shared"
    for buffer in memory.pooled:
        for before, after in zip(buffer.values, buffer.values[1:], strict=False):
            assert before.last < after.first, f"{buffer.name}: {before} {after}"
    assert memory.unpooled > memory.pool


# Profiles -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["numpy", "interpret"])
def test_a_profile_counts_as_a_step_and_says_what_it_timed(device: str) -> None:
    train, twin = compiled(device), compiled(device)
    profile = asyncio.run(train.profile(**BATCH))
    asyncio.run(twin.step(**BATCH))
    assert (train.state.calls, train.state.steps) == (1, 1)
    for mine, other in zip(*(weights(t).values() for t in (train, twin)), strict=True):
        np.testing.assert_array_equal(mine, other)
    count = len(train.graph.nodes) if device == "numpy" else len(train.kernels)
    assert len(profile.rows) == count
    assert sum(row.share for row in profile.rows) == pytest.approx(1)
    assert profile.nanoseconds == pytest.approx(sum(row.nanoseconds for row in profile.rows))
    assert ("NumPy" if device == "numpy" else "formulas") in str(profile)
    assert len(profile.top(3).splitlines()) == 3 + 3
    assert len(profile.top(None).splitlines()) == count + 2


def test_a_profile_without_inputs_takes_the_last_ones() -> None:
    train = compiled("numpy")
    asyncio.run(train.run_steps(2, {name: np.asarray(array)[None] for name, array in BATCH.items()}))
    for again in (train.profile, train.check):
        with pytest.raises(tg.InputError, match=r"no `step` or `submit` yet .*`run_steps` has its on the device"):
            asyncio.run(again())
    asyncio.run(train.step(**BATCH))
    asyncio.run(train.profile())
    assert train.state.calls == 4


def test_a_profile_tells_how_near_a_kernel_is_to_the_devices_peaks() -> None:
    rows = [Timed(0, "matmul", 1e6, 0.5, 100.0, 8_000.0, ""), Timed(1, "map", 1e6, 0.5, 1_500.0, 10.0, "")]
    plain = Profile(rows, "kernel", "timed")
    assert "%" in str(plain)
    assert "memory" not in str(plain)
    profile = plain.against(gbps=2_000, gflops=10_000)
    assert [(row.of_peak, row.bound) for row in profile.rows] == [(0.8, "compute"), (0.75, "memory")]
    assert "peaks 2,000 GB/s, 10,000 GFLOP/s" in str(profile)
    assert "80% compute" in str(profile)
    assert "75% memory" in profile._repr_html_()
    # a node of a graph that NumPy evaluates has no operations to count
    nodes = Profile([replace(rows[0], gflops=None)], "node", "").against(1, 1)
    assert nodes.rows[0].of_peak is None


# Debug levels ---------------------------------------------------------------------------------------


@pytest.fixture
def level() -> Any:
    before = tg.debug()
    yield
    tg.debug(before)


@pytest.mark.usefixtures("level")
def test_debug_levels_tell_more_and_more(capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for level in range(5):
        tg.debug(level)
        compiled()
        out = capsys.readouterr()
        assert out.out == ""
        texts.append(out.err)
    assert texts[0] == ""
    assert len(texts[1].splitlines()) == 1
    for word in ("interpret", "nodes", "9 kernels", "trace", "passes", "lower"):
        assert word in texts[1]
    assert "buffers" in texts[2]
    assert "sum_k" not in texts[2]
    assert "acc[m, n] = sum_k" in texts[3]
    assert "@compute" not in texts[3]
    assert texts[4].count("@compute") == 9


@pytest.mark.usefixtures("level")
def test_debug_refuses_other_levels() -> None:
    with pytest.raises(tg.InputError, match="0 to 4"):
        tg.debug(7)
    tg.debug(1)
    assert tg.debug() == 1


def test_the_environment_sets_the_first_level(monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorgrad.debug import _from_environment

    for text, level in (("3", 3), ("", 0), ("loud", 0), ("9", 4)):
        monkeypatch.setenv("TENSORGRAD_DEBUG", text)
        assert _from_environment() == level


# Tables ---------------------------------------------------------------------------------------------


def test_tables_align_and_numbers_have_units() -> None:
    assert table(("name", ">n"), [("a", 1), ("long", 100)]).splitlines() == ["name    n", "a       1", "long  100"]
    assert [show_bytes(n) for n in (0, 640, 1_500, 12_345_678)] == ["0 B", "640 B", "1.5 kB", "12.3 MB"]
    assert [show_time(n) for n in (12, 3_400, 999_600, 2e9)] == ["12 ns", "3.4 µs", "1 ms", "2 s"]


def test_a_lowering_keeps_its_reasons() -> None:
    graph = small_graph()
    low = lower(graph, {"0": graph.outputs[0], "doubled": graph.captures["doubled"]})
    assert {v for k in low.kernels for v in k.writes} <= set(low.reasons)


def test_what_was_compiled_comes_last_first_and_is_not_kept() -> None:
    step = compiled()
    double = tg.jit(lambda x: x * 2, device="numpy")
    asyncio.run(double(np.arange(3.0)))
    assert [program.title for program in programs()[:2]] == ["jit of <lambda>", "training step of MLP"]
    assert programs()[0].graph.outputs
    assert programs()[1] is step
    asyncio.run(double(np.arange(3.0)))  # nothing new
    predict = asyncio.run(step.attach(lambda model, x: model(x), {"x": tg.f32[None, 20]}))
    assert predict not in programs()
    asyncio.run(predict(x=np.ones((2, 20), np.float32)))
    assert [program.title for program in programs()[:2]] == ["<lambda> of MLP", "jit of <lambda>"]
    gone = weakref.ref(double)
    del double
    gc.collect()
    assert gone() is None
    assert programs()[:2] == [predict, step]


def test_a_graph_by_lines_has_the_step_in_three_parts(train: tg.Train) -> None:
    lines = by_line(train.graph)
    assert sorted(node.id for line in lines for node in line.nodes) == list(range(len(train.graph.nodes)))
    parts = [line.part for line in lines]
    assert parts == sorted(parts, key=["forward", "backward", "update"].index)
    of_layers = {line.part: line for line in lines if line.site and "self.dropout" in show_site(line.site)}
    assert {node.op for node in of_layers["forward"].nodes} >= {"leaf", "matmul", "add"}
    assert "matmul" in {node.op for node in of_layers["backward"].nodes}
    updates = [node for line in lines if line.part == "update" for node in line.nodes]
    assert {"place", "pack", "isfinite"} <= {node.op for node in updates}
    assert "matmul" not in {node.op for node in updates}
    assert {line.site.function for line in lines if line.part == "backward" and line.site} <= {"forward", "loss_fn"}


def test_a_graph_without_a_training_step_has_one_part() -> None:
    assert {line.part for line in by_line(tg.trace(lambda: tg.tensor_input("x", (2,)) * 2))} == {"forward"}
