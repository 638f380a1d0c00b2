"""The buffer plan: pooling, states updated in place or copied back, and its verifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from programs import Program, assert_close, bound, lowered, on_interpret, on_numpy, program
from tensorgrad import ops
from tensorgrad.autodiff import append_grad
from tensorgrad.dtypes import f32, i32
from tensorgrad.graph import Value
from tensorgrad.lower.lowering import Lowered
from tensorgrad.lower.memory import Memory, PlanError, verify
from tensorgrad.tensor import Tensor
from tensorgrad.trace import param_input, state_input, update_state

RNG = np.random.default_rng(0)
SQUARE = RNG.normal(size=(8, 8)).astype(np.float32)


def checked(fn: Callable[..., Any], *inputs: np.ndarray, states: Mapping[str, np.ndarray] | None = None) -> Lowered:
    """The fused program, after its results were compared with the reference's, unfused too."""
    p = program(fn, inputs, states)
    wanted = on_numpy(p)
    fused = lowered(p)
    for low in (fused, lowered(p, fuse=False)):
        for found, expected in zip(on_interpret(p, low), wanted, strict=True):
            assert_close(found, expected, 1e-5, 1e-5)
    return fused


def temps(low: Lowered) -> list[int]:
    return [spec.nbytes for spec in low.memory.plan.buffers if spec.kind == "temp"]


def inplace(low: Lowered) -> set[str]:
    leaves = {leaf for kernel in low.kernels for leaf in kernel.inplace.values()}
    return {str(low.graph.leaf_name(leaf)) for leaf in leaves}


# Pooling -----------------------------------------------------------------------------------------


def chain(x: Tensor) -> Tensor:
    for _ in range(10):
        x = ops.tanh(x @ x)
    return x


def test_small_values_live_where_large_ones_will() -> None:
    """The largest value gets its buffer first; the first small one is in it until then."""
    shapes = [(8, 8), (8, 4), (4, 4), (4, 64), (64, 2)]

    def chain(x: Tensor, *weights: Tensor) -> Tensor:
        for weight in weights:
            x = x @ weight
        return x

    low = checked(chain, *(RNG.normal(size=shape).astype(np.float32) for shape in shapes))
    assert sorted(temps(low)) == [4 * 8 * 4, 4 * 8 * 64]


def test_a_chain_of_products_needs_two_buffers() -> None:
    low = checked(chain, SQUARE * 0.1)
    assert len(low.kernels) == 10
    assert temps(low) == [256, 256]


def test_what_is_needed_until_the_end_keeps_its_buffer() -> None:
    def fn(x: Tensor) -> list[Tensor]:
        first = ops.tanh(x @ x)
        return [chain(first) @ first, first]

    low = checked(fn, SQUARE * 0.1)
    assert len(temps(low)) == 2


def test_sizes_that_differ_much_do_not_share() -> None:
    def fn(x: Tensor) -> Tensor:
        small = x[:1, :2] @ x[:2, :1]  # 4 bytes
        large = (x @ x) @ (x * small)  # 256 bytes
        return (large @ x).sum(1) @ x

    low = checked(fn, SQUARE)
    assert max(temps(low)) == 256


def test_every_buffer_is_a_multiple_of_four_bytes_and_never_empty() -> None:
    low = checked(lambda x: [x[:0] * 2, (x > 0)[0, :3], x.sum(), x[:, :0] @ x[:0]], SQUARE)
    assert all(spec.nbytes % 4 == 0 and spec.nbytes >= 4 for spec in low.memory.plan.buffers)


# States --------------------------------------------------------------------------------------------


def test_elementwise_updates_are_in_place() -> None:
    def fn(x: Tensor) -> Tensor:
        p, m = param_input("p", (8, 8)), state_input("m", (8, 8), f32, 0.5)
        momentum = m * 0.9 + x
        update_state(m, momentum)
        update_state(p, p - momentum * 0.1)
        return ops.sum(p * x)

    low = checked(fn, SQUARE, states={"p": SQUARE.T.copy()})
    assert inplace(low) == {"p", "m"}
    assert low.memory.plan.writebacks == ()


def test_an_update_that_reads_other_elements_is_copied_back() -> None:
    def fn() -> Tensor:
        p = param_input("p", (8, 8))
        update_state(p, p - p.T * 0.5)
        return ops.sum(p)

    low = checked(fn, states={"p": SQUARE})
    assert inplace(low) == set()
    assert len(low.memory.plan.writebacks) == 1


def test_the_update_of_a_product_with_itself() -> None:
    """`inplace_alias`: the gradient reads p through a transpose."""
    p0 = RNG.normal(size=(65, 65)).astype(np.float32)

    def fn() -> Tensor:
        p = param_input("p", (65, 65))
        loss = ops.sum((p @ p.T) ** 2)
        (g,) = append_grad(loss, [p])
        update_state(p, p - g * 1e-4)
        return loss

    p = program(fn, [], {"p": p0})
    wide = p0.astype(np.float64)
    wanted = wide - 1e-4 * 4 * (wide @ wide.T) @ wide
    for fuse in (True, False):
        loss, new = on_interpret(p, lowered(p, fuse))
        np.testing.assert_allclose(loss, np.sum((wide @ wide.T) ** 2), rtol=1e-5)
        np.testing.assert_allclose(new, wanted, rtol=1e-4, atol=1e-5)


def test_states_may_change_places() -> None:
    def fn() -> Tensor:
        a, b, c = (state_input(name, (4,), f32, n) for n, name in enumerate("abc"))
        update_state(a, b)
        update_state(b, c)
        update_state(c, a)
        return ops.sum(a)

    checked(fn)


def test_a_state_that_takes_anothers_old_value() -> None:
    def fn() -> list[Tensor]:
        a, b = state_input("a", (4,), f32, 1), state_input("b", (4,), f32, 2)
        update_state(b, b * 2.0)
        update_state(a, b)
        return [a, b, b.reshape(2, 2)]

    low = checked(fn)
    assert [low.memory.plan.buffers[i].shape for i in low.memory.plan.outputs.values()] == [(4,), (4,), (2, 2)]


def test_two_states_of_one_value() -> None:
    def fn(x: Tensor) -> list[Tensor]:
        a, b = state_input("a", (8, 8)), state_input("b", (8, 8), f32, 2)
        new = a + x
        update_state(a, new)
        update_state(b, new)
        return [new.reshape(64)]

    checked(fn, SQUARE)


def test_a_state_updated_with_itself_stays() -> None:
    def fn(x: Tensor) -> Tensor:
        a = state_input("a", (8, 8), f32, 3)
        update_state(a, a * 1.0)
        return a * x

    low = checked(fn, SQUARE)
    assert low.memory.plan.writebacks == ()


def test_a_reader_of_the_old_value_runs_before_the_update() -> None:
    def fn(x: Tensor) -> list[Tensor]:
        p = param_input("p", (8, 8))
        update_state(p, p + x)
        return [ops.softmax(p.T @ x), ops.max(p, 0)]

    assert inplace(checked(fn, SQUARE, states={"p": SQUARE})) == {"p"}


def test_a_row_that_is_read_along_its_columns_is_not_overwritten_by_one_lane() -> None:
    """The row kernel stores `s` once a row, while all lanes of the row still read it."""

    def fn(x: Tensor) -> Tensor:
        s = state_input("s", (8, 1), f32, 2)
        update_state(s, s + ops.sum(x, 1, keepdims=True))
        return x * s

    low = checked(fn, SQUARE)
    for kernel in low.kernels:
        assert not (kernel.cols and kernel.inplace)


def test_states_of_no_size() -> None:
    def fn(x: Tensor) -> Tensor:
        s = state_input("s", (0, 3))
        update_state(s, s * 2.0 + 1.0)
        return x + ops.sum(s)

    checked(fn, SQUARE)


def test_integer_states_are_exact() -> None:
    def fn() -> Tensor:
        n = state_input("n", (), i32, 2**30)
        update_state(n, n + 1)
        return n * 2

    checked(fn)


def test_a_gradient_norm_over_forty_parameters() -> None:
    def fn(x: Tensor) -> Tensor:
        params = [param_input(f"p{n}", (3 + n % 4, 5)) for n in range(40)]
        loss = sum((ops.sum(ops.tanh(p @ x[:5])) for p in params), start=ops.zeros(()))
        grads = append_grad(loss, params)
        norm = ops.sqrt(sum((ops.sum(ops.square(g)) for g in grads), start=ops.zeros(())))
        for p, g in zip(params, grads, strict=True):
            update_state(p, p - g * (0.1 / norm))
        return norm

    states = {f"p{n}": RNG.normal(size=(3 + n % 4, 5)).astype(np.float32) for n in range(40)}
    low = checked(fn, SQUARE, states=states)
    assert max(map(bound, low.kernels)) <= 8
    assert len(inplace(low)) == 40


# The verifier ------------------------------------------------------------------------------------------


def plan_of(fn: Callable[..., Any], *inputs: np.ndarray, **states: np.ndarray) -> tuple[Program, Lowered]:
    p = program(fn, inputs, states)
    return p, lowered(p)


def reverify(low: Lowered, **changed: Any) -> None:
    """The verifier on a changed plan; every root is stored by itself in these programs."""
    memory = changed.get("memory", low.memory)
    graph = low.graph
    verify(graph, changed.get("kernels", low.kernels), memory, {v: v for v in {*graph.roots(), *graph.leaves.values()}})


def moved(low: Lowered, value: Value, buffer: int) -> Memory:
    return Memory(low.memory.plan, {**low.memory.where, value: buffer})


def products(x: Tensor) -> Tensor:
    a = ops.tanh(x @ x)
    b = ops.tanh(a @ x)
    return a @ b


def test_the_verifier_accepts_what_was_planned() -> None:
    _, low = plan_of(products, SQUARE)
    reverify(low)


def test_it_finds_two_live_values_in_one_buffer() -> None:
    _, low = plan_of(products, SQUARE)
    first, second, _ = (kernel.writes[0] for kernel in low.kernels)
    with pytest.raises(PlanError, match=r"kernel 2 reads %\d+; temp\d+ holds %\d+|in one buffer"):
        reverify(low, memory=moved(low, second, low.memory.where[first]))


def test_it_finds_a_kernel_that_runs_too_early() -> None:
    _, low = plan_of(products, SQUARE)
    with pytest.raises(PlanError, match=r"kernel 1 reads %\d+; temp\d+ holds None"):
        reverify(low, kernels=[low.kernels[0], low.kernels[2], low.kernels[1]])


def test_it_finds_a_read_and_a_write_of_one_buffer() -> None:
    _, low = plan_of(products, SQUARE)
    out = low.kernels[2].writes[0]
    with pytest.raises(PlanError, match=r"kernel 2 reads %\d+ and writes %\d+ in one buffer"):
        reverify(low, memory=moved(low, out, low.memory.where[low.kernels[1].writes[0]]))


def test_it_finds_an_overwritten_result() -> None:
    _, low = plan_of(lambda x: [ops.exp(x).sum(0), (x @ x) @ x], SQUARE)
    out = low.graph.outputs[0]
    last = low.kernels[-1].writes[0]
    with pytest.raises(PlanError, match=f"{out} is read after the kernels; its buffer holds|of f32|reads"):
        reverify(low, memory=moved(low, last, low.memory.where[out]))


def test_it_finds_a_buffer_that_is_too_small() -> None:
    _, low = plan_of(products, SQUARE)
    value = low.kernels[0].writes[0]
    at = low.memory.where[value]
    plan = low.memory.plan
    buffers = tuple(spec._replace(nbytes=252) if spec.id == at else spec for spec in plan.buffers)
    with pytest.raises(PlanError, match=r"kernel 0 writes %\d+ of f32\[8, 8\] to 252 bytes"):
        reverify(low, memory=Memory(plan._replace(buffers=buffers), low.memory.where))


def test_it_finds_two_results_of_a_kernel_in_one_buffer() -> None:
    _, low = plan_of(lambda x: [x * 2.0, x * 3.0], SQUARE)
    (kernel,) = low.kernels
    a, b = kernel.writes
    with pytest.raises(PlanError, match="kernel 0 writes two values to one buffer"):
        reverify(low, memory=moved(low, b, low.memory.where[a]))


def test_it_finds_an_update_in_place_before_a_reader() -> None:
    def fn(x: Tensor) -> Tensor:
        p = param_input("p", (8, 8))
        update_state(p, p + x)
        return ops.softmax(p.T @ x)

    _, low = plan_of(fn, SQUARE, p=SQUARE)
    at = next(i for i, kernel in enumerate(low.kernels) if kernel.inplace)
    early = [low.kernels[at], *(k for i, k in enumerate(low.kernels) if i != at)]
    with pytest.raises(PlanError, match=r"reads %\d+; p holds %\d+"):
        reverify(low, kernels=early)


def test_it_finds_an_update_in_place_that_nobody_allowed() -> None:
    def fn() -> Tensor:
        p = param_input("p", (8, 8))
        new = p - p.T
        update_state(p, new)
        return ops.sum(new)

    _, low = plan_of(fn, p=SQUARE)
    new, leaf = next(iter(low.graph.updates.values())), low.graph.leaves["p"]
    with pytest.raises(PlanError, match=r"reads %0 and writes %\d+ in one buffer"):
        reverify(low, memory=moved(low, new, low.memory.where[leaf]))
