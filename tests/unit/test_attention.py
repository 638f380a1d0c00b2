"""Attention: its errors, what it chooses, its kernels' tiles and buffers, and its composite."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import tensorgrad as tg
from attention_cases import Sizes, lower, make, normal
from programs import Program, assert_close, lowered, on_interpret, on_numpy, program
from tensorgrad import ops
from tensorgrad.autodiff import append_grad
from tensorgrad.device import interpret
from tensorgrad.device.base import Limits
from tensorgrad.errors import DtypeError, InputError, ShapeError
from tensorgrad.graph import Value
from tensorgrad.inspect.reference import judge
from tensorgrad.inspect.work import flops
from tensorgrad.lower.kernel import Kernel
from tensorgrad.lower.lowering import lower as lower_graph
from tensorgrad.passes import optimize
from tensorgrad.tensor import Tensor
from tensorgrad.wgsl.attention import generate
from tensorgrad.wgsl.attention_tiles import REGISTERS, TILES, choose, fits, registers
from tensorgrad.wgsl.generate import generate as generate_all
from tensorgrad.wgsl.matmul_tiles import Tile

LARGE = Limits(invocations=1024, workgroup_storage=49_152)
PLAIN = Sizes(2, 3, 5, 7, 8, 4)


def ops_of(fn: Callable[..., Any], *shapes: tuple[int, ...]) -> list[str]:
    """The operations of a traced function of f32 tensors."""
    return [node.op for node in program(fn, [normal(*shape) for shape in shapes]).traced.nodes]


@pytest.mark.parametrize(
    ("shapes", "options", "message"),
    [
        (((4,), (5, 4), (5, 4)), {}, r"at least two axes, got query \[4\], key \[5, 4\], value \[5, 4\]"),
        (((3, 4), (5, 8), (5, 4)), {}, "the last axes of query and key differ"),
        (((3, 4), (5, 4), (6, 4)), {}, r"differ in length \(axis -2\)"),
        (((2, 3, 4), (3, 5, 4), (3, 5, 4)), {}, "leading axes do not broadcast"),
        (((4, 3, 4), (3, 5, 4), (3, 5, 4)), {"enable_gqa": True}, "a multiple of those of key and value"),
        (((3, 4), (5, 4), (5, 4)), {"dropout_p": 1.5}, "from 0 to 1, got 1.5"),
        (((3, 4), (5, 4), (5, 4)), {"attn_mask": np.ones((4, 5), bool)}, r"attn_mask \[4, 5\] does not broadcast"),
    ],
)
def test_bad_shapes_are_told_with_all_operands(
    shapes: tuple[tuple[int, ...], ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ShapeError, match=message) as error:
        ops_of(lambda *x: ops.scaled_dot_product_attention(*x, **options), *shapes)
    assert "test_attention.py" in str(error.value)


def test_bad_masks() -> None:
    with pytest.raises(DtypeError, match="bools or floats, got i32"):
        ops_of(lambda q: ops.scaled_dot_product_attention(q, q, q, np.ones((3, 3), np.int32)), (3, 4))
    with pytest.raises(InputError, match="attn_mask or is_causal, not both"):
        ops_of(lambda q: ops.scaled_dot_product_attention(q, q, q, np.ones((3, 3), bool), is_causal=True), (3, 4))


@pytest.mark.parametrize(
    ("shapes", "options", "fused"),
    [
        (((3, 8), (5, 8), (5, 128)), {}, True),
        (((3, 6), (5, 6), (5, 8)), {}, False),
        (((3, 8), (5, 8), (5, 132)), {}, False),
        (((3, 8), (5, 8), (5, 8)), {"dropout_p": 0.5}, False),
        (((0, 3, 8), (5, 8), (5, 8)), {}, False),
    ],
)
def test_kernels_are_used_where_they_can(
    shapes: tuple[tuple[int, ...], ...], options: dict[str, Any], fused: bool
) -> None:
    found = ops_of(lambda *x: ops.scaled_dot_product_attention(*x, **options), *shapes)
    assert ("attention" in found) == fused
    assert ("matmul" in found) != fused


def test_dropout_keeps_the_mean() -> None:
    x = normal(64, 16)

    def fn(q: Tensor) -> Tensor:
        return ops.scaled_dot_product_attention(q * 0.0, q * 0.0, ops.ones_like(q), dropout_p=0.25)

    (y,) = on_numpy(program(fn, [x]))
    # 64 weights of 1/64 a row, of which a quarter is zero and the others are 4/3 as large
    assert abs(float(y.mean()) - 1) < 0.05
    assert np.unique(y[:, 0]).size > 3


@pytest.mark.parametrize("kind", ["plain", "causal", "bools", "bias"])
def test_the_composite_computes_the_same(kind: str) -> None:
    mask = {"bools": normal(5, 7, seed=3) < 0.3, "bias": normal(2, 1, 5, 7)}.get(kind)

    def fn(q: Tensor, k: Tensor, v: Tensor) -> list[Tensor]:
        y = ops.scaled_dot_product_attention(q, k, v, mask, is_causal=kind == "causal")
        return [y, *append_grad(ops.sum(y * y), [q, k, v])]

    p = program(fn, [normal(2, 3, 5, 8), normal(2, 3, 7, 8, seed=1), normal(2, 3, 7, 4, seed=2)])
    whole = optimize(p.traced, Limits(software=True))
    assert not {"attention", "attention_vjp"} & {node.op for node in whole.nodes}
    # the gradient takes its weights from the forward pass
    assert sum(node.op == "exp" for node in whole.nodes) == 1
    for a, b in zip(on_numpy(Program(p.traced, whole, p.values)), on_numpy(p), strict=True):
        assert_close(a, b, 1e-5, 5e-6)


@pytest.mark.parametrize(
    ("length", "keys", "software", "kept"),
    [
        (16, 16, False, 3),
        (15, 99, False, 0),
        (99, 1, False, 0),
        (64, 64, True, 0),
        (1024, 1024, False, 0),  # 8 MB of scores, for which matmuls are faster
        (4200, 4200, False, 3),  # 141 MB, too much to store
    ],
)
def test_kernels_are_for_gpus_and_for_more_than_a_few_queries(
    length: int, keys: int, software: bool, kept: int
) -> None:
    def fn(q: Tensor, k: Tensor) -> list[Tensor]:
        return append_grad(ops.sum(ops.scaled_dot_product_attention(q, k, k) ** 2), [q, k])

    p = program(fn, [normal(2, length, 8), normal(2, keys, 8)])
    graph = optimize(p.traced, Limits(software=software))
    low = lower_graph(graph, {str(n): v for n, v in enumerate(graph.outputs)})
    assert sum(kernel.kind == "attention" for kernel in low.kernels) == kept


@pytest.mark.parametrize("mask", ["", "bools", "scores"])
def test_kernels_bind_no_more_buffers_than_every_device_has(mask: str) -> None:
    low, _ = lower(PLAIN, "split", mask)
    assert sorted(k.attention.part for k in low.kernels if k.attention) == ["dkv", "dq", "out"]
    for spec in generate_all(low, Limits()):
        assert len(spec.bindings) <= 8


def test_split_heads_are_read_and_merged_in_place() -> None:
    def fn(x: Tensor, w: Tensor) -> Tensor:
        q, k, v = (x.reshape(2, 6, 3, 2, 8)[:, :, n].permute(0, 2, 1, 3) for n in range(3))
        y = ops.scaled_dot_product_attention(q, k, v, is_causal=True)
        return y.permute(0, 2, 1, 3).reshape(12, 16) @ w

    low = lowered(program(fn, [normal(2, 6, 48), normal(16, 5)]))
    assert [k.kind for k in low.kernels] == ["attention", "matmul"]
    assert len(low.kernels[0].loads()) == 1
    assert low.kernels[0].writes == [low.kernels[0].stores[0].value], "nobody reads the log-sum-exp"


def test_no_matrix_of_all_scores_is_planned() -> None:
    low, _ = lower(Sizes(1, 2, 256, 256, 8, 8), "split", causal=True)
    assert max(b.nbytes for b in low.memory.plan.buffers) < 256 * 256 * 4


def test_a_gradient_that_nobody_wants_is_not_computed() -> None:
    def fn(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return append_grad(ops.sum(ops.sin(ops.scaled_dot_product_attention(q, k, v))), [v])[0].mT.mT

    p = program(fn, [normal(3, 8), normal(5, 8), normal(5, 8)])
    low = lowered(p)
    assert [k.attention.part for k in low.kernels if k.attention] == ["out", "dkv"]
    source = generate(low.kernels[-1], Limits())
    assert len(source.bindings) == 5, "q, k, the output's gradient, the log-sum-exp and dv"
    assert_close(on_interpret(p, low)[0], on_numpy(p)[0], 1e-5, 1e-6)


def test_a_bias_gets_its_gradient() -> None:
    def fn(q: Tensor, bias: Tensor) -> Tensor:
        y = ops.scaled_dot_product_attention(q, q, q, bias)
        return append_grad(ops.sum(y * y), [bias])[0]

    p = program(fn, [normal(2, 5, 8), normal(5, 5)])
    wide = {name: a.astype(np.float64) for name, a in p.values.items()}
    assert_close(on_interpret(p, lowered(p))[0], on_numpy(p, values=wide)[0].astype(np.float32), 1e-5, 1e-5)


def test_a_result_is_stored_where_its_reader_wants_it() -> None:
    """By head, as here, turned around, and by position for whoever reads that too."""

    def fn(q: Tensor) -> list[Tensor]:
        y = ops.scaled_dot_product_attention(q, q + 1.0, q * 2.0)
        return [y, y.mT, y.permute(0, 2, 1, 3)]

    p = program(fn, [normal(2, 3, 5, 8)])
    low = lowered(p)
    assert [k.kind for k in low.kernels if k.writes[0].node >= low.kernels[-1].writes[0].node] == ["attention"]
    assert len(low.kernels[-1].stores) == 3
    for a, b in zip(on_interpret(p, low), on_numpy(p), strict=True):
        assert_close(a, b, 1e-5, 1e-6)
    assert generate(low.kernels[-1], Limits()).wgsl.count("fn put") == 3


# Text ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", [Limits(), LARGE], ids=["guaranteed", "large"])
@pytest.mark.parametrize("size", [4, 36, 64, 128])
def test_every_head_size_has_a_tile(size: int, limits: Limits) -> None:
    low, _ = lower(Sizes(1, 1, 300, 300, size, size), "split", causal=True)
    for kernel in low.kernels:
        if kernel.attention:
            tile = choose(kernel.attention, limits)
            assert fits(tile, kernel.attention, limits)
            assert registers(tile, kernel.attention) <= REGISTERS
            text = generate(kernel, limits).wgsl
            held = re.findall(r"array<array<vec4<f32>, (\d+)>, (\d+)>", text)
            assert sum(16 * int(a) * int(b) for a, b in held) <= limits.workgroup_storage
            assert f"@workgroup_size({tile.threads})" in text


def test_the_tile_leaves_no_core_idle() -> None:
    """Of long sequences a large block, of a few of 64 one of which there are twice as many."""
    many, few = (
        next(k.attention for k in lower(Sizes(heads, 1, 64, 64, 128, 128), "split")[0].kernels if _is_dkv(k))
        for heads in (80, 8)
    )
    assert many
    assert few
    assert (choose(many, LARGE).m, choose(few, LARGE).m) == (64, 32)


def _is_dkv(kernel: Kernel) -> bool:
    return kernel.attention is not None and kernel.attention.part == "dkv"


def test_a_tile_needs_whole_steps() -> None:
    inner = make(PLAIN, "split")[0].kernel.attention
    assert inner
    assert not fits(Tile(32, 16, 32, 4, 4), inner, LARGE)
    assert all(fits(tile, inner, LARGE) for tile in TILES)


def test_aligned_operands_are_read_as_vectors_and_others_are_not() -> None:
    for layout, count in (("split", 4), ("loose", 1), ("computed", 1)):
        source = generate(make(Sizes(1, 2, 20, 24, 12, 12), layout)[0].kernel, Limits())
        assert ("q_ati(" in source.wgsl) == (layout == "computed")
        assert source.wgsl.count("array<vec4<f32>>") == count, layout


def test_equal_layers_are_written_once() -> None:
    first, second = (make(PLAIN, "split")[0].kernel for _ in range(2))
    assert generate(first, Limits()).wgsl is generate(second, Limits()).wgsl


def test_formula_work_and_names() -> None:
    low, _ = lower(Sizes(1, 1, 10, 10, 4, 8), "split", causal=True)
    kernels = {k.attention.part: k for k in low.kernels if k.attention}
    out, dq, dkv = (kernels[part] for part in ("out", "dq", "dkv"))
    lines = low.formula(out).splitlines()
    assert lines[0] == "s[i, j] = sum_e(x0[e + i*4] * x1[e + j*4]) * 0.5 where j <= i"
    assert lines[1] == "acc = sum_j(softmax_j(s) * x2[f + j*8]), log(sum_j(exp(s)))"
    assert low.formula(dq).splitlines()[3] == "acc = sum_j(d * x1[e + j*4])"
    exponentials = [flops(k) - 55 * 2 * n for k, n in ((out, 12), (dq, 16), (dkv, 24))]
    assert len(set(exponentials)) == 1, "55 scores of a causal attention, an exponential each"
    names = {s.name for s in generate_all(low, Limits()) if s.name.startswith("attention")}
    assert {tuple(name.split()[1:3]) for name in names} == {(part, "16x16x8") for part in kernels}


def test_third_derivatives_are_not_lost() -> None:
    def fn(v: Tensor) -> Tensor:
        y = ops.sum(ops.scaled_dot_product_attention(v, v, v) ** 2)
        for _ in range(3):
            (g,) = append_grad(y, [v])
            y = ops.sum(g * np.cos(np.arange(12)).reshape(3, 4))
        return y

    def composite(v: Tensor) -> Tensor:
        y = ops.sum((ops.softmax((v @ v.mT) * 0.5) @ v) ** 2)
        for _ in range(3):
            (g,) = append_grad(y, [v])
            y = ops.sum(g * np.cos(np.arange(12)).reshape(3, 4))
        return y

    x = normal(3, 4).astype(np.float64)
    found, wanted = (on_numpy(p, values={"x0": x})[0] for p in (program(f, [x]) for f in (fn, composite)))
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_it_runs_under_jit_and_interpret() -> None:
    x = normal(2, 5, 8)
    a, b = (
        tg.sync(tg.jit(lambda x: tg.scaled_dot_product_attention(x, x, x), device=device)(x))
        for device in ("numpy", "interpret")
    )
    assert_close(a, b, 1e-5, 1e-6)


def test_lowering_without_fusion_computes_everything() -> None:
    low, values = lower(PLAIN, "heads")
    outputs = {str(n): v for n, v in enumerate(low.graph.outputs)}
    apart = lower_graph(low.graph, outputs, fuse=False)
    # each gradient is moved by a kernel of its own
    assert [k.kind for k in apart.kernels].count("map") == 3
    found, wanted = (interpret.run(program_, values) for program_ in (apart, low))
    for name in outputs:
        a, b = (buffers[x.memory.plan.outputs[name]] for buffers, x in ((found, apart), (wanted, low)))
        assert_close(a, b, 1e-6, 1e-7)


def test_a_check_judges_the_kernels_and_finds_a_wrong_number() -> None:
    low, values = lower(PLAIN, "split", "scores")
    judged: list[str] = []

    def watch(i: int, buffers: Mapping[int, np.ndarray]) -> None:
        kernel = low.kernels[i]
        if kernel.attention:
            results = {v: interpret.result(low, buffers, v, low.memory.where[v]) for v in kernel.writes}

            def read(value: Value) -> np.ndarray:
                return interpret.result(low, buffers, value, low.memory.where[value])

            assert judge(low.graph, kernel, read, results).difference is None
            value = kernel.writes[0]
            wrong = results[value].copy()
            wrong.flat[3] += 0.01
            difference = judge(low.graph, kernel, read, results | {value: wrong}).difference
            assert difference is not None
            assert difference.count == 1
            judged.append(kernel.attention.part)

    interpret.run(low, values, watch)
    assert sorted(judged) == ["dkv", "dq", "out"]
