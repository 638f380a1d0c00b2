"""Tables as text and as HTML, and numbers with their units."""

from __future__ import annotations

from collections.abc import Sequence

Row = Sequence[object]


def table(header: Sequence[str], rows: Sequence[Row]) -> str:
    """Aligned columns.

    Args:
        header: a heading that starts with `>` has its column flushed right.
        rows: cells; anything that `str` shows.
    """
    right = [name.startswith(">") for name in header]
    cells = [[name.lstrip(">") for name in header], *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(header))]

    def line(parts: Sequence[str]) -> str:
        padded = [p.rjust(w) if r else p.ljust(w) for p, w, r in zip(parts, widths, right, strict=True)]
        return "  ".join(padded).rstrip()

    return "\n".join(map(line, cells))


def html_table(header: Sequence[str], rows: Sequence[Row], caption: str = "") -> str:
    """The same as an HTML table without styles of its own but alignment; a cell of type `Html` is left as it is."""
    right = [' style="text-align:right"' if name.startswith(">") else ' style="text-align:left"' for name in header]

    def line(tag: str, parts: Sequence[object]) -> str:
        cells = [f"<{tag}{r}>{_cell(p)}</{tag}>" for p, r in zip(parts, right, strict=True)]
        return f"<tr>{''.join(cells)}</tr>"

    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    head = line("th", [name.lstrip(">") for name in header])
    body = "".join(line("td", row) for row in rows)
    return f"<table>{title}<thead>{head}</thead><tbody>{body}</tbody></table>"


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def escape(text: str) -> str:
    """Text as HTML."""
    import html  # with its table of entities: not a part of everybody's import

    return html.escape(text)


def preformatted(text: str) -> Html:
    return Html(f'<pre style="text-align:left;margin:0">{escape(text)}</pre>')


def details(summary: str, body: str) -> Html:
    """A line that opens into preformatted text."""
    return Html(f"<details><summary>{escape(summary)}</summary>{preformatted(body)}</details>")


def _cell(cell: object) -> str:
    return cell if isinstance(cell, Html) else escape(str(cell))


def counted(number: int, noun: str) -> str:
    """`1 kernel`, `2 kernels`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def short(text: str, width: int) -> str:
    """The text, cut to a width."""
    return text if len(text) <= width else f"{text[: width - 3]}..."


def show_bytes(nbytes: float) -> str:
    """`640 B`, `12.5 kB`, `3.1 MB`; decimal units, as in GB/s."""
    return _scaled(nbytes, ("B", "kB", "MB", "GB", "TB"))


def show_flops(flops: float) -> str:
    return _scaled(flops, ("flop", "kflop", "Mflop", "Gflop", "Tflop"))


def show_time(nanoseconds: float) -> str:
    return _scaled(nanoseconds, ("ns", "µs", "ms", "s"))


def _scaled(number: float, units: Sequence[str]) -> str:
    for unit in units[:-1]:
        if number < 999.5:
            return f"{number:.0f} {unit}" if unit == units[0] or number >= 100 else f"{number:.3g} {unit}"
        number /= 1_000
    return f"{number:.3g} {units[-1]}"
