"""The table of primitives; see `table`."""

from __future__ import annotations

from rows_attention import ATTENTION
from rows_checkpoint import CHECKPOINTS
from rows_elementwise import BINARY, UNARY
from rows_indexing import INDEXING
from rows_reduce import REDUCE
from rows_scan import SCANS
from rows_sources import SOURCES
from rows_views import ARENAS, VIEWS
from rows_windows import CONVOLUTIONS, WINDOWS
from table import Row

TABLE: tuple[Row, ...] = (
    *UNARY,
    *BINARY,
    *SOURCES,
    *VIEWS,
    *ARENAS,
    *REDUCE,
    *INDEXING,
    *SCANS,
    *ATTENTION,
    *CHECKPOINTS,
    *WINDOWS,
    *CONVOLUTIONS,
)
