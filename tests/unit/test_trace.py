"""The tracer: one trace at a time, leaves by role and unique names, sites, and what a traced tensor refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad import ops
from tensorgrad.device.numpy import evaluate
from tensorgrad.dtypes import bool_, f32, i32, u32
from tensorgrad.errors import TensorgradError, TraceError
from tensorgrad.graph import Graph, Value
from tensorgrad.tensor import Tensor
from tensorgrad.trace import (
    capture,
    is_tracing,
    param_input,
    state_input,
    tensor_input,
    trace,
    trace_into,
    update_state,
)


def test_one_output_or_several() -> None:
    one = trace(lambda: tensor_input("x", (2,)) + 1)
    assert [str(one.type(v)) for v in one.outputs] == ["f32[2]"]
    two = trace(lambda: [tensor_input("x", (2,)), tensor_input("y", (), i32)])
    assert [str(two.type(v)) for v in two.outputs] == ["f32[2]", "i32[]"]
    pair = trace(lambda: (tensor_input("x", (2,)), tensor_input("y", ())))
    assert pair.outputs == [Value(0), Value(1)]


def test_nodes_are_in_topological_order_and_numbered() -> None:
    graph = trace(lambda: ops.softmax(tensor_input("x", (3, 4)) * 2.0))
    assert [node.id for node in graph.nodes] == list(range(len(graph.nodes)))
    assert all(v.node < node.id for node in graph.nodes for v in node.inputs)


@pytest.mark.parametrize("result", [None, 3.0, "x", np.zeros(3), [1.0], {"y": 1}])
def test_anything_but_tensors_is_refused(result: Any) -> None:
    with pytest.raises(TraceError, match="expected a Tensor of this trace, got "):
        trace(lambda: result)
    assert not is_tracing()


def test_nesting_is_an_error_and_leaves_the_outer_trace_alone() -> None:
    def outer() -> Tensor:
        x = tensor_input("x", (2,))
        with pytest.raises(TraceError, match="do not nest"):
            trace(lambda: tensor_input("y", (2,)))
        with pytest.raises(TraceError, match="do not nest"):
            trace_into(Graph(), lambda: None)
        assert is_tracing()
        return x * 2

    graph = trace(outer)
    assert list(graph.leaves) == ["x"]
    assert not is_tracing()


@pytest.mark.parametrize(
    "call",
    [
        lambda: tensor_input("x", (2,)),
        lambda: param_input("w", (2,)),
        lambda: state_input("s", (2,)),
        lambda: ops.zeros((2,)),
        lambda: ops.exp(np.ones(2)),
        lambda: ops.add(1.0, 2.0),
        lambda: ops.uniform((2,)),
        lambda: tg.append_grad(trace_one(), []),
        lambda: trace_one() + 1.0,
        lambda: update_state(trace_one(), trace_one()),
        lambda: capture("x", trace_one()),
    ],
)
def test_an_operation_outside_a_trace_says_what_to_do(call: Any) -> None:
    with pytest.raises(TraceError, match=r"no trace is running.*tg\.compile.*tg\.jit") as caught:
        call()
    assert "test_trace.py" in str(caught.value)


def test_an_operation_outside_a_trace_is_named() -> None:
    with pytest.raises(TraceError, match=r"so relu has no graph to join.* await tg\.jit\(tg\.relu\)\(array\)"):
        tg.relu(np.ones(2))
    with pytest.raises(TraceError, match="so this operation has no graph to join"):
        _ = trace_one() + 1.0


def trace_one() -> Tensor:
    """A tensor of a trace that is over."""
    kept: list[Tensor] = []
    trace(lambda: kept.append(tensor_input("x", ())) or kept[0])
    return kept[0]


def test_the_trace_is_cleared_after_an_exception() -> None:
    def broken() -> Tensor:
        tensor_input("x", (2,))
        raise KeyError("the user's own")

    with pytest.raises(KeyError, match="the user's own"):
        trace(broken)
    assert not is_tracing()
    with pytest.raises(KeyError):
        trace_into(Graph(), broken)
    assert not is_tracing()
    assert len(trace(lambda: tensor_input("x", (2,))).nodes) == 1


@pytest.mark.parametrize("first", [tensor_input, param_input, state_input])
@pytest.mark.parametrize("second", [tensor_input, param_input, state_input])
def test_names_are_unique_whatever_the_role(first: Any, second: Any) -> None:
    def fn() -> Tensor:
        first("w", (2,))
        return second("w", (2,))

    with pytest.raises(TraceError, match="'w' is used already"):
        trace(fn)


def test_names_are_free_again_in_another_trace() -> None:
    for _ in range(2):
        assert list(trace(lambda: tensor_input("x", (2,))).leaves) == ["x"]


def test_trace_into_appends_and_returns_what_the_function_returns() -> None:
    graph = trace(lambda: tensor_input("x", (2,)) * 3.0)
    before = list(graph.nodes)

    def more() -> tuple[str, Tensor]:
        return "anything", Tensor(graph, graph.outputs[0]) + param_input("b", (2,))

    word, y = trace_into(graph, more)
    assert word == "anything"
    assert graph.nodes[: len(before)] == before
    assert graph.nodes[-1].op == "add"
    assert y.value == Value(graph.nodes[-1].id)
    assert graph.outputs == [Value(before[-1].id)]
    assert list(graph.leaves) == ["x", "b"]
    with pytest.raises(TraceError, match="'x' is used already"):
        trace_into(graph, lambda: tensor_input("x", (2,)))


def leaf_attrs(graph: Graph, name: str) -> tuple[str, float]:
    attrs = graph.node(graph.leaves[name]).attrs
    return attrs["role"], attrs["initial"]


def test_leaves_have_roles_and_states_an_initial_value() -> None:
    def fn() -> Tensor:
        param_input("w", (2, 3))
        state_input("zero", (2,))
        state_input("half", (), f32, 0.5)
        state_input("count", (), i32, 2.9)
        state_input("minus", (), i32, -2.9)
        state_input("word", (), u32, 7.5)
        state_input("flag", (), bool_, 1)
        return tensor_input("x", (2,), u32)

    graph = trace(fn)
    assert leaf_attrs(graph, "w")[0] == "param"
    assert leaf_attrs(graph, "x")[0] == "input"
    initial = {name: leaf_attrs(graph, name)[1] for name in graph.names_by_role("state")}
    assert initial == {"zero": 0, "half": 0.5, "count": 2, "minus": -2, "word": 7, "flag": 1}
    assert isinstance(initial["count"], int)
    assert graph.names_by_role("input") == {"x": graph.leaves["x"]}


def test_updates_are_of_states_and_parameters_in_their_own_type() -> None:
    def fn() -> Tensor:
        x, w = tensor_input("x", (2,)), param_input("w", (2,))
        count = state_input("count", (), i32)
        update_state(count, count + 1)
        update_state(w, w - x)
        with pytest.raises(TraceError, match="only a parameter or a state can be updated, not the result of leaf"):
            update_state(x, x + 1)
        with pytest.raises(TraceError, match="not the result of sub"):
            update_state(w - x, x)
        with pytest.raises(TraceError, match=r"'w' is f32\[2\], its update f32\[1\]"):
            update_state(w, w[:1])
        with pytest.raises(TraceError, match=r"'count' is i32\[\], its update f32\[\]"):
            update_state(count, count * 1.0)
        return x

    graph = trace(fn)
    assert {graph.leaf_name(leaf) for leaf in graph.updates} == {"count", "w"}


def test_captures_are_named_once() -> None:
    def fn() -> Tensor:
        x = tensor_input("x", (2,))
        assert capture("twice", x * 2).shape == (2,)
        with pytest.raises(TraceError, match="capture name 'twice' is used already"):
            capture("twice", x)
        return x

    graph = trace(fn)
    assert list(graph.captures) == ["twice"]


def test_a_tensor_of_another_trace_is_refused() -> None:
    old = trace_one()

    def fn() -> Tensor:
        return tensor_input("y", ()) + old

    with pytest.raises(TraceError, match=r"this tensor \(f32\[\]\) belongs to another trace; pass it .* as an input"):
        trace(fn)
    with pytest.raises(TraceError, match="belongs to another trace"):
        trace(lambda: old)


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda x: bool(x > 0), "bool()"),
        (lambda x: float(x), "float()"),
        (lambda x: int(x), "int()"),
        (lambda x: [1, 2][x], "use as an index"),
        (lambda x: x.item(), "item()"),
        (lambda x: x.numpy(), "numpy()"),
        (lambda x: np.asarray(x), "conversion to an array"),
        (lambda x: 1 if x else 2, "bool()"),
    ],
)
def test_numbers_that_do_not_exist_yet(call: Any, what: str) -> None:
    with pytest.raises(TraceError) as caught:
        trace(lambda: call(tensor_input("x", ())))
    assert what in str(caught.value)
    assert "do not exist while the function is traced" in str(caught.value)
    assert "test_trace.py" in str(caught.value)


def test_nodes_remember_the_users_line() -> None:
    graph = trace(lambda: ops.softmax(tensor_input("x", (3,))))
    sites = {(node.site.file, node.site.line) for node in graph.nodes if node.site}
    assert len(sites) == 1
    assert next(iter(sites))[0] == __file__


def test_arrays_become_constants_and_numpy_defers_to_the_tensor() -> None:
    array: Any = np.arange(3, dtype=np.float32)
    two: Any = np.float32(2)
    graph = trace(lambda: [array * tensor_input("x", (3,)), two - tensor_input("y", (3,))])
    assert [graph.node(v).op for v in graph.outputs] == ["mul", "sub"]
    assert sum(node.op == "array" for node in graph.nodes) == 1


def test_iteration_and_length() -> None:
    def fn() -> list[Tensor]:
        x = tensor_input("x", (3, 2))
        rows = list(x)
        assert (len(x), len(rows), rows[0].shape) == (3, 3, (2,))
        with pytest.raises(TypeError, match="0-d"):
            len(x.sum())
        with pytest.raises(TypeError, match="0-d"):
            list(x.sum())
        return rows

    assert len(trace(fn).outputs) == 3


def test_every_error_derives_from_one() -> None:
    with pytest.raises(TensorgradError):
        ops.zeros((2,))


def test_a_number_that_the_host_sends_has_one_slot_under_its_name() -> None:
    graph = trace(lambda: [ops.step_scalar(name) for name in ("lr", "scale", "lr")])
    assert graph.slots == {"lr": 2, "scale": 3}
    row = np.zeros(graph.type(graph.leaves["step"]).shape, np.uint32)
    row[2:4] = np.array([0.25, -3], np.float32).view(np.uint32)
    found = evaluate(graph, {"step": row})
    assert [float(found[v]) for v in graph.outputs] == [0.25, -3, 0.25]
