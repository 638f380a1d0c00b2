"""All operations that are compared with PyTorch."""

import operations
import operations_images
import operations_index
import operations_margins
import operations_math
import operations_rest
import operations_scan

FAMILIES = (
    operations,
    operations_images,
    operations_index,
    operations_margins,
    operations_math,
    operations_rest,
    operations_scan,
)
ROWS = [row for family in FAMILIES for row in family.ROWS]
