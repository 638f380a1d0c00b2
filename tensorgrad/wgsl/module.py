"""A shader module: bindings, declarations and the entry point around a kernel's statements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tensorgrad.dtypes import DType, f16
from tensorgrad.graph import Value
from tensorgrad.plan import MAX_WORKGROUPS
from tensorgrad.wgsl.literal import stored_type


class Buffers(NamedTuple):
    """The storage buffers of a kernel, in binding order.

    Attributes:
        ids: plan buffer of each binding.
        types: element type of each.
        written: which are written.
        names: value -> the WGSL name of the buffer that holds it.
    """

    ids: tuple[int, ...]
    types: tuple[DType, ...]
    written: frozenset[int]
    names: dict[Value, str]

    def access(self, value: Value, index: str) -> str:
        return f"{self.names[value]}[{index}]"

    def declarations(self) -> list[str]:
        return [
            f"@group(0) @binding({i}) var<storage, {'read_write' if buffer in self.written else 'read'}> "
            f"b{i}: array<{stored_type(dtype)}>;"
            for i, (buffer, dtype) in enumerate(zip(self.ids, self.types, strict=True))
        ]


def module(
    declarations: Iterable[str],
    functions: Iterable[str],
    body: str,
    workgroup_size: int,
    *,
    uses_f16: bool = False,
    subgroups: bool = False,
) -> str:
    """The whole source; in the body `w` is the linear workgroup index and `lid` the invocation within it."""
    enables = ["enable f16;"] * uses_f16 + ["enable subgroups;"] * subgroups
    return "\n".join(
        [
            *enables,
            *declarations,
            *functions,
            f"@compute @workgroup_size({workgroup_size})",
            "fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {",
            f"  let w = wg.x + wg.y * {MAX_WORKGROUPS}u;",
            body,
            "}",
            "",
        ]
    )


def needs_f16(types: Iterable[DType]) -> bool:
    return any(t is f16 for t in types)
