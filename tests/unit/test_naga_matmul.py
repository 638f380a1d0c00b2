"""Matmuls with barriers in WGSL on the second device: every tile that any device has, and all that surrounds them."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

import matmul_cases as cases
import tensorgrad as tg
from matmul_cases import Case
from matmul_variants import FITTING, SHARED, SMALL, TRANSPOSITIONS, transpositions
from native import native
from on_device import verify_matmuls
from tensorgrad.wgsl.matmul_tiles import Tile


def verify(kernels: Iterable[tuple[Case, Tile]]) -> list[str]:
    return tg.sync(verify_matmuls(native(), kernels))


@pytest.mark.parametrize("tile", FITTING, ids=str)
def test_every_tile(tile: Tile) -> None:
    (name,) = verify(cases.spread([tile], FITTING.index(tile)))
    assert name.split()[1] == str(tile)


def test_transpositions_with_vectors_and_without() -> None:
    names = verify([(case, SMALL) for case in transpositions()])
    assert [name.split()[-1] for name in names] == [*TRANSPOSITIONS, *TRANSPOSITIONS]


@pytest.mark.parametrize("sizes", [(1, 36, 40, 20), (3, 17, 33, 10)], ids=str)
def test_epilogues_and_operands(sizes: tuple[int, int, int, int]) -> None:
    verify([(case, SMALL) for case in (*cases.epilogues(sizes), *cases.operands(sizes))])


@pytest.mark.parametrize("tile", [SMALL, SHARED], ids=str)
def test_images_in_place(tile: Tile) -> None:
    verify([(case, tile) for case in cases.images(2, 3, 6, 7, 20)])
