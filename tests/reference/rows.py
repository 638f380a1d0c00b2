"""All operations that are compared with PyTorch."""

import operations
import operations_index
import operations_math
import operations_scan

ROWS = [*operations.ROWS, *operations_index.ROWS, *operations_math.ROWS, *operations_scan.ROWS]
