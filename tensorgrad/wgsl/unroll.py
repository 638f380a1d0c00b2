"""Writing out a loop of a kernel's text: what runs fastest takes the longest to compile.

The loop of a large matmul that multiplies two tiles is fastest when it is written out, and each step's numbers are
read before the step before is multiplied (at 2048 on an H200, 25 -> 44 TFLOP/s). But a browser then takes twice as
long to compile it. So a kernel's text has the loop as it is, with a remark; a program starts with that, and goes over
to the text written out when it has compiled, too. Both add the same products in the same order: the bits are the same.
"""

from __future__ import annotations

import re

REMARK = "// written out when there is time"

_LOOP = re.compile(
    rf"^( *)for \(var kk = 0u; kk < (\d+)u; kk\+\+\) \{{ {REMARK}\n(.*?)^\1\}}\n", re.MULTILINE | re.DOTALL
)


def loop(steps: int, reads: list[str], products: list[str], worth: bool = True) -> list[str]:
    """The lines of a loop over `kk`.

    Args:
        steps: how often.
        reads: declarations (`let NAME = ...`), which alone may use `kk`.
        products: what is done with those names.
        worth: it is faster when it is written out.
    """
    head = f"for (var kk = 0u; kk < {steps}u; kk++) {{" + f" {REMARK}" * worth
    return [head, *(f"  {line}" for line in [*reads, *products]), "}"]


def unrolled(wgsl: str) -> str | None:
    """A kernel's text with its loop written out, or None where it has none.

    >>> text = "\\n".join(loop(2, ["let p = a[kk];"], ["c += p;"])) + "\\n"
    >>> print(unrolled(text), end="")
    {
      let p_0 = a[0u];
      let p_1 = a[1u];
      c += p_0;
      c += p_1;
    }
    """
    text, count = _LOOP.subn(_write_out, wgsl)
    return text if count else None


def _write_out(found: re.Match[str]) -> str:
    indent, steps, lines = found[1], int(found[2]), found[3].splitlines(keepends=True)
    split = next(i for i, line in enumerate(lines) if not line.lstrip().startswith("let "))
    reads, products = "".join(lines[:split]), "".join(lines[split:])
    names = re.compile(r"\b(" + "|".join(re.findall(r"let (\w+) =", reads)) + r")\b")
    # the step's number stands in for what is another in each step, so that a step is one replacement
    reads, products = (names.sub(r"\1_@", text) for text in (re.sub(r"\bkk\b", "@u", reads), products))
    body = [reads.replace("@", "0")]
    for step in range(1, steps):
        body += [reads.replace("@", str(step)), products.replace("@", str(step - 1))]
    body.append(products.replace("@", str(steps - 1)))
    return "".join([f"{indent}{{\n", *body, f"{indent}}}\n"])
