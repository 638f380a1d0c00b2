"""All operations that are compared with PyTorch."""

import operations
import operations_images
import operations_index
import operations_math
import operations_scan

ROWS = [
    row
    for family in (operations, operations_images, operations_index, operations_math, operations_scan)
    for row in family.ROWS
]
