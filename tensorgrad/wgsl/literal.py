"""Numbers and types as WGSL writes them."""

from __future__ import annotations

import math

import numpy as np

from tensorgrad.dtypes import DType, bool_, f32, i32, u32

# WGSL rejects inf and NaN in what it can evaluate itself, a bitcast of a literal included, and
# may make 0 of -0: the bits come out of a variable
SPECIAL = {
    "tg_inf": "var<private> tg_inf: u32 = 0x7f800000u;",
    "tg_negative_inf": "var<private> tg_negative_inf: u32 = 0xff800000u;",
    "tg_nan": "var<private> tg_nan: u32 = 0x7fc00000u;",
    "tg_negative_zero": "var<private> tg_negative_zero: u32 = 0x80000000u;",
}


def literal(value: bool | int | float, dtype: DType, declarations: dict[str, str]) -> str:
    """A constant; what it needs declared in the module is added to `declarations`."""
    if dtype is bool_:
        return "true" if value else "false"
    if dtype is u32:
        return f"{int(value) & 0xFFFFFFFF}u"
    if dtype is i32:
        signed = (int(value) + 2**31) % 2**32 - 2**31
        # the literal of the least number would be minus a number that does not fit
        return f"{signed}i" if signed >= 0 else f"({signed}i)" if signed > -(2**31) else "i32(-2147483648)"
    with np.errstate(over="ignore"):
        number = dtype.numpy.type(value)
    if math.isfinite(number) and (number != 0 or not np.signbit(number)):
        # the fewest digits that give the number back, unless they round beyond what the type holds
        digits = float(str(number)) if dtype is f32 and abs(number) < 3.4e38 else float(number)
        text = f"{digits!r}{'f' if dtype is f32 else 'h'}"
        return f"({text})" if text[0] == "-" else text
    if number == 0:
        name = "tg_negative_zero"
    else:
        name = "tg_nan" if math.isnan(number) else "tg_inf" if number > 0 else "tg_negative_inf"
    declarations[name] = SPECIAL[name]
    bits = f"bitcast<f32>({name})"
    return bits if dtype is f32 else f"f16({bits})"


def stored_type(dtype: DType) -> str:
    """The type of a buffer's element: a bool is stored as a u32."""
    return "u32" if dtype is bool_ else dtype.name
