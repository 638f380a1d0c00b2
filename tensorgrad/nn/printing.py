"""A module as a tree: one line a module, with its own tensors and how many parameters it holds."""

from __future__ import annotations

from tensorgrad.nn.module import Module
from tensorgrad.nn.parameter import Buffer, Parameter


def tree(module: Module) -> str:
    """The lines that `print(module)` shows."""
    count = _count(module)
    frozen = count - sum(p.size for p in module.parameters() if p.requires_grad)
    extra = module.extra_repr()
    head = f"{type(module).__name__}{f'({extra})' if extra else ''}"
    notes = f", {frozen:,} frozen" if frozen else ""
    first: dict[int, str] = {}
    own = _tensors(module, "", first)
    lines = [f"{head}: {count:,} parameter{'' if count == 1 else 's'}{notes}{f'  {own}' if own else ''}"]
    _children(module, "", 1, first, lines)
    return "\n".join(lines)


def _children(module: Module, path: str, depth: int, first: dict[int, str], lines: list[str]) -> None:
    for name, child in module.__dict__.items():
        if not isinstance(child, Module):
            continue
        inside = f"{path}{name}."
        extra = child.extra_repr()
        parts = ["  " * depth + f"{name}: {type(child).__name__}{f'({extra})' if extra else ''}"]
        if id(child) in first:
            lines.append(f"{parts[0]} = {first[id(child)]}")
            continue
        first[id(child)] = inside[:-1]
        tensors, count = _tensors(child, inside, first), _count(child)
        parts += [tensors] * bool(tensors) + [f"({count:,})"] * bool(count)
        lines.append("  ".join(parts))
        _children(child, inside, depth + 1, first, lines)


def _tensors(module: Module, path: str, first: dict[int, str]) -> str:
    """The module's own parameters and buffers; a tied one names the place where it stood first."""
    shown = []
    for name, value in module.__dict__.items():
        if isinstance(value, Parameter):
            note = f" = {first[id(value)]}" if id(value) in first else ""
            note += " (buffer)" if isinstance(value, Buffer) else "" if value.requires_grad else " (frozen)"
            first.setdefault(id(value), f"{path}{name}")
            shown.append(f"{name} {value.type}{note}")
    return ", ".join(shown)


def _count(module: Module) -> int:
    return sum(p.size for p in module.parameters())
