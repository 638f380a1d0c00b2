"""The kernels under a second shader compiler: naga, Firefox's, where the browser's tests have Chromium's.

Every source must compile. Many run too, those for GPUs among them, which the browser's adapter, a CPU, is not given.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import pytest
import wgpu

import matmul_cases
import tensorgrad as tg
from attention_cases import Sizes, make
from matmul_variants import SMALL
from native import backend, native
from on_device import in_one, verify_attentions, verify_matmuls, verify_row
from programs import lowered
from steps import LARGE, STEPS, step
from table_rows import TABLE
from tensorgrad import nn, optim
from tensorgrad.device.base import Limits
from tensorgrad.plan import KernelSpec
from tensorgrad.wgsl import attention, matmul, rows
from tensorgrad.wgsl.attention_tiles import TILES as BLOCKS
from tensorgrad.wgsl.attention_tiles import fits
from tensorgrad.wgsl.generate import generate
from tensorgrad.wgsl.matmul_tiles import TILES, Tile
from tensorgrad.wgsl.shader import Source

ADAPTERS = {
    "GPU": LARGE,
    "CPU": LARGE._replace(software=True, subgroup_size=4),
    "guaranteed limits": Limits(),
}
DIRECT = (
    Tile(4, 16, 0, 1, 4),
    Tile(8, 32, 0, 8, 8),
    Tile(16, 16, 0, 16, 4, quads=True, steps=4),
    Tile(32, 16, 0, 8, 16, quads=True, steps=4),
)


# Every source compiles ------------------------------------------------------------------------


class Text(NamedTuple):
    """A kernel: its name, its source, and for each binding `w` where it is written, else `r`."""

    name: str
    source: str
    access: str


def text(name: str, source: str, writes: Iterable[bool]) -> Text:
    return Text(name, source, "".join("w" if write else "r" for write in writes))


def of_spec(where: str, spec: KernelSpec) -> Text:
    return text(f"{where}: {spec.name}", spec.wgsl, (b.write for b in spec.bindings))


def of_source(where: str, source: Source) -> Text:
    return text(f"{source.name}: {where}", source.wgsl, (write for _, write in source.bindings))


def check(kernels: Iterable[Text], compile_: Callable[[Text], object]) -> None:
    """That naga takes every distinct source; a failure shows the lines that it does not."""
    distinct = {(k.source, k.access): k for k in kernels if k.source}
    problems = []
    for kernel in distinct.values():
        try:
            compile_(kernel)
        except wgpu.GPUError as error:
            problems.append(f"{kernel.name}\n{error}")
    assert distinct
    assert not problems, f"naga refuses {len(problems)} of {len(distinct)} kernels\n" + "\n\n".join(problems[:5])


def translated(kernel: Text) -> object:
    """As far as the driver, which takes longer than naga."""
    return native().pipeline(kernel.source, kernel.access)


def validated(kernel: Text) -> object:
    return native().module(kernel.source)


def test_a_refusal_shows_the_line() -> None:
    wrong = text("wrong", "@compute @workgroup_size(64) fn main() {\n  let x: f32 = 1u;\n}", [])
    with pytest.raises(AssertionError, match=r"naga refuses 1 of 1 kernels(?s:.*)let x: f32 = 1u;"):
        check([wrong], validated)


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_the_workloads_compile(adapter: str) -> None:
    limits = ADAPTERS[adapter]
    check((of_spec(name, k) for name in STEPS for k in step(name, limits).kernels), translated)


@pytest.mark.parametrize("part", range(4))
def test_the_table_compiles(part: int) -> None:
    cases = [case for row in TABLE[part::4] for case in row.cases]
    programs = [(case.name, lowered(in_one([case]))) for case in cases]
    check(
        (of_spec(name, k) for name, low in programs for limits in ADAPTERS.values() for k in generate(low, limits)),
        validated,
    )


def test_the_variants_of_matmul_compile() -> None:
    variants = itertools.product((*TILES, *DIRECT), ("nn", "nt", "tn", "tt"), ((2, 256, 256, 64), (1, 257, 131, 33)))
    cases = ((matmul_cases.shape_only(sizes, layout), tile) for tile, layout, sizes in variants)
    check((of_source(case.name, matmul.generate(case.kernel, LARGE, tile=tile)) for case, tile in cases), validated)


def test_the_variants_of_attention_compile() -> None:
    sizes = Sizes(1, 1, 9, 7, 20, 12)
    cases = [*make(sizes, "split", causal=True), *make(sizes, "heads", "bools")]
    variants = ((c, t) for c in cases for t in BLOCKS if c.kernel.attention and fits(t, c.kernel.attention, LARGE))
    check((of_source(case.name, attention.generate(case.kernel, LARGE, tile=t)) for case, t in variants), translated)


# Many of them run -----------------------------------------------------------------------------


def test_matmuls_without_barriers() -> None:
    names = tg.sync(verify_matmuls(native(), matmul_cases.spread(DIRECT, 3)))
    assert [name.split(" ")[1] for name in names] == ["direct"] * len(DIRECT)
    sizes = (3, 17, 33, 10)
    cases = [*matmul_cases.epilogues(sizes), *matmul_cases.operands(sizes), *matmul_cases.images(2, 3, 6, 7, 20)]
    tg.sync(verify_matmuls(native(), [(case, DIRECT[2]) for case in cases]))


def test_matmuls_in_f16() -> None:
    if "shader-f16" not in native().limits.features:
        pytest.skip("this adapter has no shader-f16")
    tg.sync(verify_matmuls(native(), [(case, SMALL) for case in matmul_cases.halves((3, 17, 33, 10))]))


def test_attention() -> None:
    cases = make(Sizes(1, 2, 20, 24, 8, 4), "split", "bools")
    names = tg.sync(verify_attentions(native(), [(case, Tile(8, 8, 4, 4, 4)) for case in cases]))
    assert sorted(name.split()[1] for name in names) == ["dkv", "dq", "out"]


@pytest.mark.parametrize("lanes", [1, "subgroup", 64])
def test_rows_however_they_are_shared(lanes: int | str, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = native().limits
    if lanes == "subgroup" and limits.subgroup_size is None:
        pytest.skip("this adapter has no subgroup operations, or subgroups of several sizes")
    group = limits.subgroup_size or 1
    shape = {
        1: rows.Shape(16, 1, True),
        64: rows.Shape(4, 64, False, unroll=4),
        "subgroup": rows.Shape(4, group, True, subgroup=True, unroll=8),
    }[lanes]
    monkeypatch.setattr(rows, "choose", lambda kernel, limits: shape)
    x = np.random.default_rng(0).normal(size=(37, 129)).astype(np.float32)

    def fn(x: tg.Tensor) -> dict[str, tg.Tensor]:
        return {"softmax": tg.softmax(x), "mean": x.mean(0), "largest": x.argmax(-1), "loss": tg.log_softmax(x).mean()}

    got, want = (tg.sync(tg.jit(fn, device=device)(x)) for device in (backend(), "numpy"))
    for name, array in want.items():
        # sums of up to 4,773 terms in another order
        np.testing.assert_allclose(got[name], array, rtol=2e-5, atol=2e-5, err_msg=name)


@pytest.mark.parametrize(("length", "software"), [(3, False), (7, True)])
def test_what_is_added_to_a_product_may_end_within_four_numbers(length: int, software: bool) -> None:
    """The product's kernel reads it four at a time, behind a comparison with its length."""
    rng = np.random.default_rng(length)
    x, w, b = (rng.normal(size=shape).astype(np.float32) for shape in ((8, 4), (4, 12), (length,)))
    fn = tg.jit(lambda x, w, b: x @ w + tg.pad(b, ((0, 12 - length),)), device=backend(software=software))
    # sums of four products in another order
    np.testing.assert_allclose(tg.sync(fn(x, w, b)), x @ w + np.pad(b, (0, 12 - length)), rtol=1e-5, atol=1e-5)


def test_no_read_stands_where_no_element_is() -> None:
    """The part of a concatenation in which an element does not lie is not read at -1: naga refuses that."""

    def loss(x: tg.Tensor) -> tg.Tensor:
        w = tg.where(x > 0.1, x, tg.stack([x, x + 1]))
        return tg.sum(tg.diagonal(w * w)) + tg.sum(tg.stack([x, x + 1]))

    x = np.array([0.5], np.float32)
    assert tg.sync(tg.grad(loss, device=backend())(x)) == tg.sync(tg.grad(loss, device="numpy")(x)) == 3.0


RUN = ("exp", "sin", "pow", "floor_divide", "sum", "max", "argmax", "scatter_add")


@pytest.mark.parametrize("op", RUN)
@pytest.mark.parametrize("software", [False, True], ids=["GPU", "CPU"])
def test_rows_of_the_table(op: str, software: bool) -> None:
    tg.sync(verify_row(backend(software=software), next(row for row in TABLE if row.op == op)))


@pytest.mark.parametrize("software", [False, True], ids=["GPU", "CPU"])
def test_a_training_step(software: bool) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(512, 12)).astype(np.float32), rng.integers(0, 10, 512)
    found = []
    for device in (backend(software=software), "numpy"):
        nn.init.manual_seed(0)
        model = nn.Sequential(nn.Linear(12, 33), nn.LayerNorm(33), nn.GELU(), nn.Linear(33, 10))
        specs = {"x": tg.f32[512, 12], "y": tg.i32[512]}
        train = tg.sync(
            tg.compile(
                model, lambda m, x, y: tg.cross_entropy(m(x), y), optim.AdamW(1e-2), specs, device=device, seed=0
            )
        )
        found.append([tg.sync(train.step(x=x, y=y)).loss for _ in range(3)])
        train.destroy()
    # f32 sums in another order, amplified by three updates
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4)
