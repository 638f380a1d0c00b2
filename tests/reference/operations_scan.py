"""Rows of scans, and of order along an axis: several results in one program each; see `operations`."""

from __future__ import annotations

import numpy as np
from operations import INF, NAN, Row, f, i, normal


def joined(name: str, inputs: dict[str, np.ndarray], *exprs: str, grad: bool = True) -> Row:
    """Expressions whose results are one row of numbers."""
    return Row(name, f"cat([{', '.join(f'({e}).reshape(-1)' for e in exprs)}])", inputs, None, grad)


CUBE = normal(2, 5, 3)
ZEROS = np.where(np.abs(CUBE) < 0.5, np.float32(0), CUBE)
ZEROS[0, :, 1] = 0
SPECIAL = f([[1, INF, -INF, 2], [NAN, 1, -INF, 0], [-INF, -INF, 3, NAN], [0, 2, -INF, INF]])
WIDE = normal(2, 6) * 200
BELOW = f([[-INF, -INF, 1, 0.5], [-1000, 0, 1000, 999]])
TIES = np.round(normal(3, 6) * 1.5)
WHOLE = i([[7, -3, 7, 2147483647, -2147483648, 0], [1, 1, 0, -1, -1, 5]])
LONG = normal(3, 700)
PROBABILITIES = f(0.0, 0.1, 0.25, 0.5, 0.73, 1.0)

SCANS = [
    joined("cumsum", {"x": CUBE}, "cumsum(x, 0)", "cumsum(x, dim=1)", "x.cumsum(-1)", "cumsum(x[0, 0, 0], 0)"),
    joined("cumsum special", {"x": SPECIAL}, "cumsum(x, 1)", "cumsum(x, 0)", grad=False),
    joined("cumsum ints", {"x": WHOLE[:, ::2]}, "cumsum(x, 1)", "cumsum(x > 0, 1)", grad=False),
    joined("cumprod", {"x": CUBE}, "cumprod(x, 0)", "cumprod(x, dim=1)", "x.cumprod(-1)"),
    joined("cumprod zeros", {"x": ZEROS}, "cumprod(x, 1)", "cumprod(x, 2)"),
    joined("cumprod special", {"x": SPECIAL}, "cumprod(x, 1)", "cumprod(x, 0)", grad=False),
    *(
        joined(f"{n} {kind}", {"x": x}, f"{n}(x, 1).values", f"{n}(x, 0)[0]", grad=kind != "special")
        for n in ("cummax", "cummin")
        for kind, x in (("plain", CUBE), ("ties", TIES), ("special", SPECIAL))
    ),
    *(
        joined(f"{n} indices", {"x": x}, f"{n}(x, 1).indices", f"{n}(x, dim=0)[1]", grad=False)
        for n in ("cummax", "cummin")
        for x in (TIES, SPECIAL)
    ),
    joined("logcumsumexp", {"x": CUBE}, "logcumsumexp(x, 0)", "logcumsumexp(x, dim=1)"),
    joined("logcumsumexp wide", {"x": WIDE}, "logcumsumexp(x, 1)"),
    joined("logcumsumexp below", {"x": BELOW}, "logcumsumexp(x, 1)", "logcumsumexp(x, 0)", grad=False),
    joined("logcumsumexp special", {"x": SPECIAL}, "logcumsumexp(x, 1)", grad=False),
    joined(
        "diff",
        {"x": CUBE, "y": normal(2, 1, 3)},
        "diff(x)",
        "diff(x, n=2, dim=1)",
        "diff(x, dim=1, prepend=y, append=y)",
        "diff(x, 9, 1)",
    ),
    joined("diff bools", {"x": TIES}, "diff(x > 0) * 1", grad=False),
]

ORDER = [
    joined("sort values", {"x": CUBE}, "sort(x).values", "sort(x, 1)[0]", "x.sort(dim=0, descending=True)[0]"),
    *(
        joined(f"sort {d}", {"x": x}, f"sort(x, descending={d}, stable=True)[0]", grad=False)
        for d in (False, True)
        for x in (TIES, SPECIAL, WHOLE)
    ),
    *(
        joined(f"argsort {d}", {"x": x}, f"argsort(x, dim=1, descending={d}, stable=True)", grad=False)
        for d in (False, True)
        for x in (TIES, SPECIAL, WHOLE, TIES > 0, LONG)
    ),
    joined("sort long", {"x": LONG}, "sort(x).values[:, ::9]", "topk(x, 200)[0][:, ::7]"),
    joined("topk", {"x": CUBE}, "topk(x, 2).values", "topk(x, 3, dim=1)[0]", "topk(x, 1, 0, largest=False)[0]"),
    joined("topk indices", {"x": LONG}, "topk(x, 3).indices", "topk(x, 5, 1, False)[1]", grad=False),
    joined("topk special", {"x": SPECIAL}, "topk(x, 3)[0]", "topk(x, 2, largest=False)[0]", grad=False),
    joined("kthvalue", {"x": CUBE}, "kthvalue(x, 2)[0]", "kthvalue(x, 4, dim=1, keepdim=True).values"),
    joined("kthvalue indices", {"x": CUBE}, "kthvalue(x, 4, 1)[1]", grad=False),
    joined("median", {"x": CUBE}, "median(x)", "median(x, dim=1).values", "median(x, 0, keepdim=True)[0]"),
    joined("median even", {"x": WIDE}, "median(x)", "median(x, 1)[0]"),
    joined("median indices", {"x": CUBE}, "median(x, 1)[1]", grad=False),
    joined("median special", {"x": SPECIAL}, "median(x, 1)[0]", "median(x[3])", "median(x)", grad=False),
    joined("median ints", {"x": WHOLE}, "median(x)", "median(x, 1)[0]", grad=False),
    joined(
        "quantile",
        {"x": CUBE, "q": PROBABILITIES},
        "quantile(x, 0.3)",
        "quantile(x, q.detach())",
        "quantile(x, q.detach(), dim=1)",
        "quantile(x, 0.9, dim=-1, keepdim=True)",
        "quantile(x, q.detach(), dim=0, keepdim=True)",
    ),
    *(
        joined(
            f"quantile {how}",
            {"x": CUBE, "q": PROBABILITIES},
            f"quantile(x, q.detach(), dim=1, interpolation='{how}')",
        )
        for how in ("lower", "higher", "midpoint", "nearest")
    ),
    joined("quantile nan", {"x": SPECIAL}, "quantile(x, 0.5, dim=1)", grad=False),
    *(
        joined(
            f"searchsorted {r}",
            {"s": f(1, 3, 3, 5, 9), "v": f([[3, 9, 0], [10, 4, 1]])},
            f"searchsorted(s, v, right={r})",
            f"bucketize(v, s, right={r})",
            grad=False,
        )
        for r in (False, True)
    ),
    joined(
        "searchsorted rows",
        {"s": np.sort(normal(3, 5)), "v": normal(3, 2)},
        "searchsorted(s, v)",
        "searchsorted(s, v, side='right')",
        grad=False,
    ),
]

ROWS = [*SCANS, *ORDER]
