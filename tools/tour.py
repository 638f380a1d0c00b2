"""The printouts of ARCHITECTURE.md: one small model at each stage of the compiler.

`python tools/tour.py` prints them; with `--write` they replace those in ARCHITECTURE.md.
"""

from __future__ import annotations

import functools
import re
import sys

import tensorgrad as tg
from paths import ROOT
from tensorgrad import nn, optim

PAGE = ROOT / "ARCHITECTURE.md"
BEGIN, END = "<!-- tour: {} -->", "<!-- end: {} -->"


class Tour(nn.Module):
    """A layer whose rows are squashed and normalised: small, with a matmul, a map and a row kernel."""

    def __init__(self) -> None:
        self.layer = nn.Linear(3, 4)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        return tg.softmax(tg.relu(self.layer(x)))


def loss_fn(model: Tour, x: tg.Tensor) -> tg.Tensor:
    return (model(x) * tg.arange(4)).mean()


def traced() -> str:
    """The forward pass as it is traced: no gradient, no pass."""
    model = Tour()
    graph = tg.trace(
        lambda: loss_fn(model, tg.tensor_input("x", (8, 3))),
        names={id(parameter): name for name, parameter in model.named_parameters()},
    )
    return re.sub(r"<function (\w+) at 0x\w+>", r"\1", str(graph))  # an address differs at each run


@functools.cache
def sections() -> dict[str, str]:
    """Title -> printout."""
    train = tg.sync(tg.compile(Tour(), loss_fn, optim.SGD(0.1), {"x": tg.f32[8, 3]}, device="interpret", seed=0))
    formulas = [f"kernel {k.index}: {k.name.strip()}\n{_indented(k.formula)}" for k in train.kernels]
    row = next(k for k in train.kernels if k.template == "row")
    update = next(k for k in train.kernels if k.template == "map")
    found = {
        "trace": traced(),
        "graph": str(train.graph),
        "kernels": "\n".join(formulas),
        "why": row.why,
        "memory": str(train.memory),
        "wgsl": update.wgsl,
    }
    return {title: "\n".join(line.rstrip() for line in text.strip().splitlines()) for title, text in found.items()}


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def main() -> None:
    """Print, or write into the page."""
    if "--write" not in sys.argv[1:]:
        for title, text in sections().items():
            print(f"== {title}\n{text}\n")
        return
    page = PAGE.read_text(encoding="utf-8")
    for title, text in sections().items():
        begin, end = BEGIN.format(title), END.format(title)
        block = f"{begin}\n```{'wgsl' if title == 'wgsl' else 'text'}\n{text}\n```\n{end}"
        page, count = re.subn(f"{re.escape(begin)}.*?{re.escape(end)}", lambda _, b=block: b, page, flags=re.S)
        if count != 1:
            sys.exit(f"error: {PAGE.name} has {count} places for {title!r}; it needs one, between {begin} and {end}")
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
