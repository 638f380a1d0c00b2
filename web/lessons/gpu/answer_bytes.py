array = 1000 * 256 * 4
fused_bytes = 3 * array
apart_bytes = (3 + 2 + 3) * array
