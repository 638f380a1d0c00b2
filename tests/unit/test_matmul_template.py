"""The matmul template without a GPU: how operands are read, which tile is chosen, what is bound."""

from __future__ import annotations

import itertools
import random
import re

import numpy as np
import pytest

import matmul_cases as cases
from matmul_cases import BIAS, OTHER, OUT, SECOND, A, B
from tensorgrad.device.base import Limits
from tensorgrad.dtypes import f32
from tensorgrad.graph import Value
from tensorgrad.lower.expr import Expr, expr, load
from tensorgrad.lower.index import Digit, Index, Var, make, of_var, ravel
from tensorgrad.lower.kernel import Store
from tensorgrad.wgsl.matmul import Source, generate, transposition
from tensorgrad.wgsl.matmul_access import Affine, affine, fours, quarter_of
from tensorgrad.wgsl.matmul_store import lay_out
from tensorgrad.wgsl.matmul_tiles import TILES, Tile, choose
from tensorgrad.wgsl.signature import signature

LARGE = Limits(invocations=1024, workgroup_storage=49_152)
SMALL = Tile(32, 32, 32, 4, 4)
DIRECT = Tile(16, 16, 0, 4, 4, steps=4)
QUADS = Tile(16, 16, 0, 16, 4, quads=True, steps=4)


def at(index: Index, values: dict[Var, int]) -> int:
    """An index's value."""
    total = index.const
    for atom, c in index.terms:
        assert isinstance(atom, Digit)
        total += c * (values[atom.var] // atom.div % atom.size)
    return total


def plain_access(e: Expr, *variables: Var) -> Affine:
    found = affine(e, variables)
    assert found is not None
    return found


# -- how operands are read ------------------------------------------------------------------


def random_index(rng: random.Random, variables: tuple[Var, ...]) -> Index:
    terms = []
    for var in variables:
        div = 1
        while div < var.size:
            size = rng.choice([s for s in (2, 3, 4, 6, 8, 12, var.size // div) if (var.size // div) % s == 0])
            if size == 1:
                break
            terms.append((Digit(var, div, size), rng.choice([1, 1, 2, 4, 8, 12, 24, 96])))
            div *= size
    return make(terms, rng.choice([0, 0, 0, 4, 8, 3]))


@pytest.mark.parametrize("seed", range(8))
def test_in_fours_is_what_enumeration_finds(seed: int) -> None:
    rng = random.Random(seed)
    found = 0
    for _ in range(60):
        variables = (Var("b", 2), Var("m", rng.choice([4, 6, 8, 24])), Var("k", rng.choice([3, 8, 12, 48])))
        index = random_index(rng, variables)
        access = plain_access(load(A, index, f32), *variables)
        for var in variables[1:]:
            grid = [
                dict(zip(variables, point, strict=True))
                for point in itertools.product(*(range(v.size) for v in variables))
            ]
            runs = var.size % 4 == 0 and all(
                at(index, p) % 4 == p[var] % 4 == at(index, p) - at(index, p | {var: p[var] - p[var] % 4}) for p in grid
            )
            # it may miss one (a digit that other terms cancel), it must never see one that is not there
            assert runs or not access.in_fours(var), index
            if access.in_fours(var):
                found += 1
                const, parts = access.quarter(var)
                for p in grid:
                    p4 = p | {quarter_of(var): p[var] // 4}
                    assert const + sum(at(part, p4) for part in parts.values()) == at(index, p) // 4
                    assert at(fours(index, var, p[var] % 4), p4) == at(index, p)
    assert found, "the random indices have to include some"


def test_what_is_no_sum_of_parts_is_read_element_by_element() -> None:
    case = next(c for c in cases.operands((1, 8, 8, 8)) if c.name == "rows of a table")
    assert affine(case.inner.a, (case.inner.batch, case.inner.m, case.inner.k)) is None
    assert transposition(case.inner) == "xt"
    assert "a_at(vb" in generate(case.kernel, LARGE, tile=SMALL).wgsl


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_aligned_operands_are_declared_and_read_as_vectors(layout: str) -> None:
    for tile in (SMALL, DIRECT, QUADS):
        source = generate(cases.shape_only((2, 64, 64, 32), layout).kernel, LARGE, tile=tile)
        assert source.wgsl.count("array<vec4<f32>>") == 3
        assert source.name.endswith(layout)
    # without workgroup memory only as many steps of k are added up together as divide its size: 5 of 30
    across = 1 + (layout[0] == "t") + (layout[1] == "n")
    text = generate(cases.shape_only((2, 64, 64, 30), layout).kernel, LARGE, tile=DIRECT).wgsl
    assert text.count("array<vec4<f32>>") == across
    assert "k += 5u" in text


def test_four_lanes_load_together_what_they_have_in_common() -> None:
    kernel = cases.shape_only((1, 64, 64, 32), "nt").kernel

    def vectors(tile: Tile) -> tuple[int, int]:
        text = generate(kernel, LARGE, tile=tile).wgsl
        return text.count("= buf0["), text.count("= buf1[")

    assert vectors(Tile(16, 16, 0, 16, 4, steps=4)) == (16, 4)
    assert vectors(QUADS) == (4, 4)
    assert vectors(Tile(64, 16, 0, 16, 16, quads=True, steps=4)) == (16, 4)


@pytest.mark.parametrize("sizes", [(1, 64, 63, 32), (1, 64, 64, 31), (1, 63, 64, 32)], ids=str)
def test_what_is_not_aligned_is_declared_as_elements(sizes: tuple[int, int, int, int]) -> None:
    odd = {"m": sizes[1] % 4, "n": sizes[2] % 4, "k": sizes[3] % 4}
    layout = lay_out(cases.shape_only(sizes, "nn").kernel, lambda v: v)
    widths = {b.key: b.width for b in layout.buffers}
    assert widths == {A: 1 if odd["k"] else 4, B: 1 if odd["n"] else 4, OUT: 1 if odd["n"] else 4}
    assert layout.vector == (not odd["n"])


def test_one_declaration_serves_a_buffer_that_is_also_read_by_element() -> None:
    source = generate(_own_operand(reach=0).kernel, LARGE, tile=SMALL)
    assert re.search(r"buf0\[\(.*\) / 4u\]\[\(.*\) % 4u\]", source.wgsl)
    # a vec4 array would cut off elements behind the last whole vector
    beyond = lay_out(_own_operand(reach=1).kernel, lambda v: v)
    assert {b.key: b.width for b in beyond.buffers}[A] == 1


def _own_operand(reach: int) -> cases.Case:
    """`out = a @ b + a[m * k.size + reach]`: the epilogue reads an operand's buffer, and perhaps beyond its matrix."""
    case = cases.shape_only((1, 32, 32, 32), "nn")
    inner = case.inner
    e = load(A, of_var(inner.m) * 32 + of_var(inner.m) * 0 + (31 + reach), f32)
    store = case.kernel.stores[0]
    case.kernel.stores[0] = Store(store.value, store.index, expr("add", (store.expr, e), f32))
    return case


# -- what is bound --------------------------------------------------------------------------


def declared(source: Source) -> list[bool]:
    """For each binding of the text, in order, whether it is writable."""
    found = re.findall(r"@binding\((\d+)\) var<storage, (read|read_write)>", source.wgsl)
    assert [int(i) for i, _ in found] == list(range(len(found)))
    return [access == "read_write" for _, access in found]


def all_cases() -> list[cases.Case]:
    sizes = [(1, 36, 40, 20), (3, 17, 33, 10)]
    varied = [c for s in sizes for c in (*cases.epilogues(s), *cases.operands(s), *cases.halves(s))]
    return [*varied, *cases.heads(2, 3, 24, 8), *cases.heads(2, 3, 10, 5), cases.plain((2, 8, 8, 0))]


@pytest.mark.parametrize("tile", [SMALL, DIRECT, QUADS], ids=str)
def test_bindings_are_those_of_the_text_and_each_buffer_is_bound_once(tile: Tile) -> None:
    for case in all_cases():
        source = generate(case.kernel, LARGE, tile=tile)
        keys = [key for key, _ in source.bindings]
        assert len(set(keys)) == len(keys), case.name
        assert [write for _, write in source.bindings] == declared(source), case.name
        for i in range(len(keys)):
            # an unused binding would be missing from the layout that WebGPU derives from the text
            assert source.wgsl.count(f"buf{i}") > 1, case.name
        assert source.threads % source.workgroup_size == 0
        assert source.workgroup_size == tile.threads


def test_in_place_and_aliased_buffers() -> None:
    case = next(c for c in cases.epilogues((1, 8, 8, 8)) if c.kernel.inplace)
    assert generate(case.kernel, LARGE).bindings == ((A, False), (B, False), (BIAS, False), (OTHER, True))
    shared = Value(40)
    source = generate(case.kernel, LARGE, place=lambda v: shared if v in (A, B) else v)
    assert source.bindings == ((shared, False), (BIAS, False), (OTHER, False), (OUT, True))


def test_two_results_are_written_together() -> None:
    case = next(cases.epilogues((1, 8, 8, 8)))
    source = generate(case.kernel, LARGE)
    assert [key for key, write in source.bindings if write] == [OUT, SECOND]
    assert source.wgsl.count("tg_tanh(") == 5, "one definition, four columns"


def test_f16_has_to_be_enabled_and_is_summed_in_f32() -> None:
    case = next(cases.halves((1, 32, 32, 32)))
    text = generate(case.kernel, LARGE, tile=SMALL).wgsl
    assert text.startswith("enable f16;")
    assert "var<workgroup> tile_a: array<array<vec4<f32>, 9>, 32>" in text
    assert "var c0_0 = vec4<f32>()" in text


def test_an_empty_result_is_no_kernel() -> None:
    with pytest.raises(AssertionError, match="no kernel"):
        generate(cases.shape_only((1, 0, 4, 4), "nn").kernel, LARGE)


# -- which tile -----------------------------------------------------------------------------


@pytest.mark.parametrize("limits", [Limits(), LARGE], ids=["default limits", "a large GPU's"])
def test_every_choice_fits_the_device(limits: Limits) -> None:
    for m, n, k in itertools.product((1, 3, 64, 65, 384, 2048), (1, 10, 64, 1152, 2048), (1, 64, 784, 8192)):
        for batch in (1, 192):
            tile = choose(cases.shape_only((batch, m, n, k), "nt").inner, limits)
            assert tile.k > 0, "barriers are cheap on a GPU"
            assert tile.threads <= limits.invocations
            assert tile.storage <= limits.workgroup_storage


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_large_matmuls_are_register_blocked(layout: str) -> None:
    for m, n, k in itertools.product((64, 100, 1024), repeat=3):
        case = cases.shape_only((1, m, n, k), layout)
        name = generate(case.kernel, Limits()).name
        found = re.fullmatch(rf"matmul (\d+)x(\d+)x(\d+)(/\d+)? {layout}", name)
        assert found
        assert int(found[1]) >= 16
        assert int(found[2]) >= 16


def test_square_matmuls_get_large_tiles_and_few_rows_small_ones() -> None:
    def pick(m: int, n: int, k: int, limits: Limits = LARGE) -> Tile:
        return choose(cases.shape_only((1, m, n, k), "nn").inner, limits)

    assert (pick(4096, 4096, 4096).m, pick(4096, 4096, 4096).n) == (256, 128)
    assert (pick(4096, 4096, 4096, Limits()).m, pick(4096, 4096, 4096, Limits()).n) == (128, 128)
    assert pick(256, 256, 256).m * pick(256, 256, 256).n < 64 * 64
    assert pick(8, 4096, 512).m <= 16
    assert pick(4096, 10, 512).n <= 16


@pytest.mark.parametrize("features", [(), ("subgroups",)], ids=["plain", "subgroups"])
def test_a_cpu_gets_kernels_without_barriers(features: tuple[str, ...]) -> None:
    limits = Limits(software=True, features=frozenset(features))
    for m, n, k in itertools.product((1, 3, 10, 64, 1024), (1, 4, 10, 64, 1024), (1, 784)):
        case = cases.shape_only((1, m, n, k), "nt")
        tile = choose(case.inner, limits)
        assert tile.k == 0
        assert tile.tm < 2 * max(m, 1)
        source = generate(case.kernel, limits)
        assert source.name.startswith("matmul direct")
        assert "workgroupBarrier" not in source.wgsl
        assert ("quadSwapX" in source.wgsl) == (bool(features) and m > 3 and n > 4)


def test_tiles_say_what_they_need() -> None:
    tile = Tile(32, 32, 32, 4, 4, slices=4)
    assert (str(tile), tile.threads, tile.storage) == ("32x32x32/4", 256, 16_384)
    assert tile.fits(Limits())
    assert not Tile(128, 128, 32, 8, 8).fits(Limits())
    assert len({str(t) + f"{t.tm}" for t in TILES}) == len(TILES)


def test_expected_results_of_the_cases_are_matrix_products() -> None:
    """The oracle of the browser tests, itself checked on one case."""
    case = cases.plain((2, 3, 4, 5), "tn", pad=3)
    a = case.arrays[A][3:-4].reshape(2, 5, 6)[:, :, :3].transpose(0, 2, 1)
    b = case.arrays[B][3:-4].reshape(2, 5, 7)[:, :, :4]
    expected = case.expected()[OUT]
    np.testing.assert_allclose(expected[:-4].reshape(2, 3, 4), a @ b, rtol=1e-5, atol=1e-5)
    assert (expected[-4:] == cases.POISON).all()


def test_results_that_lie_along_m_are_computed_transposed() -> None:
    case = cases.shape_only((2, 32, 64, 16), "tt")
    store, inner = case.kernel.stores[0], case.inner
    index = ravel((of_var(inner.batch), of_var(inner.n), of_var(inner.m)), (2, 64, 32))
    case.kernel.stores[0] = Store(store.value, index, store.expr)
    source = generate(case.kernel, LARGE, tile=Tile(16, 64, 32, 4, 4))
    assert source.name == "matmul 16x64x32 nn"
    assert source.bindings == ((B, False), (A, False), (OUT, True))
    assert source.wgsl.count("array<vec4<f32>>") == 3


def test_equal_kernels_are_written_once_whatever_their_buffers() -> None:
    first, second, other = (next(cases.epilogues((1, 8, 8, k))) for k in (8, 8, 12))
    inner = second.inner
    second.kernel.matmul = inner._replace(a=load(Value(50), inner.a.data[1], f32))
    one, two, three = (generate(c.kernel, LARGE) for c in (first, second, other))
    assert one.wgsl is two.wgsl
    assert one.wgsl != three.wgsl
    assert one.bindings == ((A, False), (B, False), (BIAS, False), (OUT, True), (SECOND, True))
    assert two.bindings == ((Value(50), False), *one.bindings[1:])


def test_signatures_tell_different_kernels_apart() -> None:
    found: dict[object, str] = {}
    kernels = [(c.name, c.kernel) for c in all_cases()]
    kernels += [(f"plain {layout}", cases.plain((1, 8, 8, 8), layout).kernel) for layout in ("nn", "nt", "tn", "tt")]
    for name, kernel in kernels:
        key, _ = signature(kernel, lambda v: v)
        text = generate(kernel, LARGE, tile=DIRECT).wgsl
        assert found.setdefault(key, text) == text, name
    assert len(found) == len(kernels)
