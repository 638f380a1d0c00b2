"""Shape rules: what each gives, and what a wrong call says: operation, operands, the rule and the user's line."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorgrad import ops
from tensorgrad import shape as s
from tensorgrad.dtypes import i32
from tensorgrad.errors import ShapeError
from tensorgrad.tensor import Tensor
from tensorgrad.trace import tensor_input, trace


def test_helpers() -> None:
    assert s.shapes_equal((2, 3), [2, 3])
    assert not s.shapes_equal((2, 3), (3, 2))
    assert not s.shapes_equal((2,), (2, 1))
    assert s.shapes_equal((), ())
    assert [s.shape_size(x) for x in ((), (0,), (3, 0, 2), (4, 5))] == [1, 0, 0, 20]
    assert [s.show_shape(x) for x in ((), (7,), (2, 3))] == ["[]", "[7]", "[2, 3]"]


@pytest.mark.parametrize(
    ("shapes", "wanted"),
    [
        ((), ()),
        (((),), ()),
        (((2, 3), ()), (2, 3)),
        (((), (2, 3)), (2, 3)),
        (((3,), (2, 3)), (2, 3)),
        (((2, 1), (3,)), (2, 3)),
        (((4, 1, 3), (2, 1)), (4, 2, 3)),
        (((1,), (0,)), (0,)),
        (((0, 3), (1, 3)), (0, 3)),
        (((2, 3), (2, 1), (1, 3)), (2, 3)),
        (((2, 3), (2,)), None),
        (((0,), (2,)), None),
        (((1, 2), (3, 1), (3,)), None),
    ],
)
def test_broadcast_trailing_is_numpys(shapes: tuple[tuple[int, ...], ...], wanted: tuple[int, ...] | None) -> None:
    assert s.broadcast_trailing(*shapes) == wanted
    try:
        assert np.broadcast_shapes(*shapes) == wanted
    except ValueError:
        assert wanted is None


RIGHT: list[tuple[Callable[..., Any], tuple[Any, ...], tuple[int, ...]]] = [
    (s.infer_elementwise_binop, ((2, 1), (3,)), (2, 3)),
    (s.infer_elementwise_binop, ((), (0, 4)), (0, 4)),
    (s.infer_unary, ((3, 0),), (3, 0)),
    (s.infer_where, ((3, 1), (), (4,)), (3, 4)),
    (s.infer_reduce, ((2, 3, 4), 1), (2, 4)),
    (s.infer_reduce, ((2, 3, 4), (-1, 0)), (3,)),
    (s.infer_reduce, ((2, 3), None), ()),
    (s.infer_reduce, ((2, 3), 0, True), (1, 3)),
    (s.infer_reduce, ((2, 3), ()), (2, 3)),
    (s.infer_reduce, ((0, 3), 0), (3,)),
    (s.infer_mean_last, ((2, 3),), (2, 1)),
    (s.infer_sum_last, ((2, 3),), (2,)),
    (s.infer_sum_last, ((5,),), ()),
    (s.infer_reshape, ((2, 6), (3, -1)), (3, 4)),
    (s.infer_reshape, ((2, 6), (12,)), (12,)),
    (s.infer_reshape, ((1,), ()), ()),
    (s.infer_reshape, ((0, 3), (3, 0, 5)), (3, 0, 5)),
    (s.infer_reshape, ((0, 3), (-1, 3)), (0, 3)),
    (s.infer_transpose, ((2, 3, 4), (2, 0, 1)), (4, 2, 3)),
    (s.infer_transpose, ((2, 3, 4), (-1, 0, -2)), (4, 2, 3)),
    (s.infer_transpose, ((), ()), ()),
    (s.infer_matmul, ((2, 3), (3, 4)), (2, 4)),
    (s.infer_matmul, ((5, 2, 3), (3, 4)), (5, 2, 4)),
    (s.infer_matmul, ((2, 3), (5, 3, 4)), (5, 2, 4)),
    (s.infer_matmul, ((2, 1, 2, 3), (5, 3, 4)), (2, 5, 2, 4)),
    (s.infer_matmul, ((3,), (3,)), ()),
    (s.infer_matmul, ((3,), (3, 4)), (4,)),
    (s.infer_matmul, ((2, 3), (3,)), (2,)),
    (s.infer_matmul, ((3,), (5, 3, 4)), (5, 4)),
    (s.infer_matmul, ((5, 2, 3), (3,)), (5, 2)),
    (s.infer_matmul, ((2, 0), (0, 3)), (2, 3)),
    (s.infer_matmul_batched, ((5, 2, 3), (5, 3, 4)), (5, 2, 4)),
    (s.infer_matmul_batched, ((2, 3), (3, 4)), (2, 4)),
    (s.infer_one_hot, ((2, 3), 5), (2, 3, 5)),
    (s.infer_one_hot, ((), 5), (5,)),
    (s.infer_where_causal, ((2, 4, 4),), (2, 4, 4)),
    (s.infer_slice, ((5, 6), ((1, 3, 1), (5, 3, -2))), (3, 3)),
    (s.infer_slice, ((5,), ((0, 0, 1),)), (0,)),
    (s.infer_slice_last_range, ((2, 5), 1, 4), (2, 3)),
    (s.infer_slice_last_range, ((5,), 2, 2), (0,)),
    (s.infer_broadcast_to, ((3, 1), (2, 3, 4)), (2, 3, 4)),
    (s.infer_broadcast_to, ((1,), (0,)), (0,)),
    (s.infer_sum_to_shape, ((2, 3, 4), (3, 1)), (3, 1)),
    (s.infer_sum_to_shape, ((2, 3), ()), ()),
    (s.infer_relu_grad, ((2, 3), (2, 3)), (2, 3)),
    (s.infer_concat, ([(2, 3), (2, 0), (2, 4)], 1), (2, 7)),
    (s.infer_concat, ([(2, 3), (1, 3)], -2), (3, 3)),
    (s.infer_gather, ((5, 3), (2, 4), 0), (2, 4, 3)),
    (s.infer_gather, ((5, 3), (), -1), (5,)),
]


@pytest.mark.parametrize(("rule", "args", "wanted"), RIGHT, ids=lambda x: getattr(x, "__name__", str(x)))
def test_right_calls(rule: Callable[..., Any], args: tuple[Any, ...], wanted: tuple[int, ...]) -> None:
    assert rule("op", *args) == wanted


WRONG: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
    (s.infer_elementwise_binop, ((2, 3), (2,)), r"op: shapes \[2, 3\] and \[2\] do not broadcast.*equal or 1"),
    (s.infer_elementwise_binop, ((0,), (2,)), r"op: shapes \[0\] and \[2\] do not broadcast"),
    (s.infer_where, ((2,), (3,), ()), r"op: condition \[2\] and values \[3\] and \[\] do not broadcast"),
    (s.infer_reduce, ((2, 3), 2), "op: axis 2 is out of range for a tensor with 2 axes"),
    (s.infer_reduce, ((2, 3), -3), "op: axis -3 is out of range for a tensor with 2 axes"),
    (s.infer_reduce, ((2, 3), (0, -2)), r"op: an axis is named twice in \(0, -2\)"),
    (s.infer_reduce, ((), 0), "op: axis 0 is out of range for a tensor with 0 axes"),
    (s.infer_mean_last, ((),), "op: there is no last axis in a 0-d tensor"),
    (s.infer_sum_last, ((),), "op: there is no last axis in a 0-d tensor"),
    (s.infer_reshape, ((2, 3), (4,)), r"op: \[2, 3\] has 6 elements, \[4\] has 4"),
    (s.infer_reshape, ((2, 3), (4, -1)), r"op: \[2, 3\] has 6 elements.*\[4, -1\].*do not divide"),
    (s.infer_reshape, ((2, 3), (-1, -1)), r"op: \[-1, -1\] has more than one -1"),
    (s.infer_reshape, ((2, 3), (-2, 3)), r"op: \[-2, 3\] has a negative size"),
    (s.infer_reshape, ((0, 3), (0, -1)), "do not divide"),
    (s.infer_transpose, ((2, 3), (0,)), r"op: \[2, 3\] has 2 axes, the permutation \(0,\) names 1"),
    (s.infer_transpose, ((2, 3), (0, 2)), "op: axis 2 is out of range"),
    (s.infer_transpose, ((2, 3), (0, -2)), r"op: the permutation \(0, -2\) names an axis twice"),
    (s.infer_matmul, ((2, 3), (4, 5)), r"op: the inner sizes of \[2, 3\] @ \[4, 5\] differ.* is 3, .* is 4"),
    (s.infer_matmul, ((), (2, 2)), r"op: needs operands with at least one axis, got \[\] and \[2, 2\]"),
    (s.infer_matmul, ((2, 2, 3), (5, 3, 4)), r"op: the leading axes of \[2, 2, 3\] and \[5, 3, 4\] do not broadcast"),
    (s.infer_matmul, ((3,), (4,)), "op: the inner sizes"),
    (s.infer_matmul_batched, ((3,), (3, 4)), r"op: needs operands with at least two axes, got \[3\] and \[3, 4\]"),
    (s.infer_matmul_batched, ((2, 2, 3), (3, 3, 4)), r"op: the leading axes of \[2, 2, 3\] and \[3, 3, 4\] differ"),
    (s.infer_matmul_batched, ((2, 3), (4, 5)), "op: the inner sizes"),
    (s.infer_one_hot, ((2,), 0), "op: the number of classes must be positive, got 0"),
    (s.infer_where_causal, ((2, 3),), r"op: a causal mask needs the last two axes to have one size, got \[2, 3\]"),
    (s.infer_where_causal, ((3,),), r"op: a causal mask .* got \[3\]"),
    (s.infer_slice, ((5,), ((3, 3, 1),)), "op: elements 3 to 5 of axis 0 are not all inside its size 5"),
    (s.infer_slice, ((5,), ((1, 3, -1),)), "op: elements 1 to -1 of axis 0 are not all inside"),
    (s.infer_slice, ((5, 5), ((0, 1, 1),)), r"op: \[5, 5\] has 2 axes, 1 slices were given"),
    (s.infer_slice_last_range, ((2, 5), 3, 6), r"op: the range \[3, 6\) is not inside the last axis of \[2, 5\]"),
    (s.infer_slice_last_range, ((2, 5), 4, 3), r"op: the range \[4, 3\) is not inside"),
    (s.infer_slice_last_range, ((), 0, 0), "op: there is no last axis"),
    (s.infer_broadcast_to, ((3,), (3, 2)), r"op: \[3\] does not broadcast to \[3, 2\].*equal to the target's or 1"),
    (s.infer_broadcast_to, ((2, 3), (3,)), r"op: \[2, 3\] does not broadcast to \[3\]"),
    (s.infer_broadcast_to, ((3,), (1,)), r"op: \[3\] does not broadcast to \[1\]"),
    (s.infer_sum_to_shape, ((2, 3), (2,)), r"op: \[2, 3\] is not what \[2\] broadcasts to"),
    (s.infer_sum_to_shape, ((1, 3), (2, 3)), r"op: \[1, 3\] is not what \[2, 3\] broadcasts to"),
    (s.infer_relu_grad, ((2, 3), (3, 2)), r"op: the input \[2, 3\] and the output's gradient \[3, 2\] must have one"),
    (s.infer_concat, ([(2, 3), (3, 3)], 1), r"op: \[2, 3\] and \[3, 3\] differ in an axis other than 1"),
    (s.infer_concat, ([(2, 3), (2,)], 0), r"op: \[2, 3\] and \[2\] differ"),
    (s.infer_concat, ([], 0), "op: needs at least one tensor"),
    (s.infer_concat, ([()], 0), "op: axis 0 is out of range"),
    (s.infer_gather, ((5, 3), (2,), 2), "op: axis 2 is out of range"),
]


@pytest.mark.parametrize(("rule", "args", "message"), WRONG, ids=lambda x: getattr(x, "__name__", str(x)))
def test_wrong_calls_name_operands_and_rule(rule: Callable[..., Any], args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ShapeError, match=message) as caught:
        rule("op", *args)
    site = caught.value.site
    assert site is not None
    assert site.file == __file__
    assert f"{__file__}:{site.line} in test_wrong_calls_name_operands_and_rule" in str(caught.value)


def test_every_rule_has_right_and_wrong_calls() -> None:
    rules = {name for name in vars(s) if name.startswith("infer_")}
    assert {rule.__name__ for rule, _, _ in RIGHT} == rules
    assert {rule.__name__ for rule, _, _ in WRONG} == rules - {"infer_unary"}  # which has no wrong call


def lines_of(*calls: str) -> list[Any]:
    return [pytest.param(call, id=call) for call in calls]


@pytest.mark.parametrize(
    "call",
    lines_of(
        "x + y",
        "y * x",
        "x @ x",
        "x.sum(2)",
        "x.mean(axis=(0, 0))",
        "x.reshape(4)",
        "x.reshape(-1, -1)",
        "x.permute(0)",
        "x.swapaxes(0, 5)",
        "x.broadcast_to(2, 2)",
        "ops.sum_to_shape(x, (5,))",
        "ops.concat([x, y])",
        "ops.concat([])",
        "ops.stack([x, y])",
        "ops.where(x > 0, x, y)",
        "ops.where_causal(x)",
        "ops.softmax_causal(x)",
        "ops.one_hot(n, 0)",
        "ops.take(x, n, 2)",
        "ops.take(x, [0, 2], 0)",
        "ops.scatter_add(x, 0, n, x)",
        "ops.embedding(x, np.array([5]))",
        "ops.softmax(x, 2)",
        "ops.layer_norm(x, 4)",
        "ops.mse_loss(x, y)",
        "ops.cross_entropy(x, n)",
        "ops.pad(x, -1)",
        "ops.pad(x, ((1, 2), (3, 4), (5, 6)))",
        "ops.split(x, [1, 1], 1)",
        "ops.narrow(x, 1, 2, 5)",
        "ops.squeeze(x, 1)",
        "ops.expand_dims(x, 4)",
        "ops.flip(x, 2)",
        "ops.flatten(x, 1, 0)",
        "ops.iota((3,), 1)",
        "ops.arange(0, 5, 0)",
        "ops.max(x[:0], 0)",
        "ops.argmax(x[:, :0], 1)",
        "x[2]",
        "x[:, 3]",
        "x[0, 0, 0]",
        "x[..., 0, ...]",
        "x['a']",
        "x[[0, 5]]",
    ),
)
def test_messages_carry_the_users_line(call: str) -> None:
    """Typed into a console: the line is found in `linecache`, as tracebacks find it."""
    name = f"<console {call}>"
    source = f"def typed(x, y, n):\n    a = 1\n    return {call}\n"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    scope: dict[str, Any] = {"ops": ops, "np": np, "__name__": "__main__"}
    exec(compile(source, name, "exec"), scope)

    def traced() -> Tensor:
        return scope["typed"](tensor_input("x", (2, 3)), tensor_input("y", (4,)), tensor_input("n", (3,), i32))

    with pytest.raises(ShapeError) as caught:
        trace(traced)
    assert str(caught.value).endswith(f"at {name}:3 in typed")
    del linecache.cache[name]
