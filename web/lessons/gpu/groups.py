ROWS, COLUMNS = 4, 16
LANES = 8  # invocations of one workgroup


def map_steps():
    """A map: each invocation computes one element, and never meets another."""
    for group in range(ROWS * COLUMNS // LANES):
        elements = [[group * LANES + lane, lane] for lane in range(LANES)]
        says = f"Workgroup {group}: lane i computes element {group} × {LANES} + i."
        yield {"says": says, "group": group, "elements": elements, "lanes": [f"{e}" for e, _ in elements]}


def row_steps():
    """The sums of rows: a workgroup has a row, and its lanes help one another."""
    for row in range(ROWS):
        counts = [0] * LANES
        for first in range(0, COLUMNS, LANES):
            counts = [count + 1 for count in counts]
            elements = [[row * COLUMNS + first + lane, lane] for lane in range(LANES)]
            says = f"Workgroup {row}: lane i adds column {first} + i to its own sum. Neighbours read neighbours."
            yield {"says": says, "group": row, "elements": elements, "lanes": [f"Σ {c}" for c in counts]}
        half = LANES // 2
        while half:
            counts = [c + counts[i + half] if i < half else 0 for i, c in enumerate(counts)]
            says = f"All wait for each other (a barrier); lane i, below {half}, adds the sum of lane i + {half}."
            adds = [[i, i + half] for i in range(half)]
            lanes = [f"Σ {c}" if c else "" for c in counts]
            yield {"says": says, "group": row, "elements": [], "lanes": lanes, "adds": adds}
            half //= 2


def groups():
    show(groups={"rows": ROWS, "columns": COLUMNS, "map": list(map_steps()), "row": list(row_steps())})


groups()
