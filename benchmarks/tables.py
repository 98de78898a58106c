"""How a benchmark shows what it measured."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

#: What was measured: its name, the figures run by run, and how many digits to show.
Row = tuple[str, Sequence[float], int]


def show(title: str, *rows: Row) -> None:
    """Print a table in Markdown, with the minimum, the median and the maximum of each row."""
    print(f"{title}\n\n| what | minimum | median | maximum |\n|---|---|---|---|")
    for what, values, digits in rows:
        figures = (min(values), statistics.median(values), max(values))
        print(f"| {what} | " + " | ".join(f"{each:.{digits}f}" for each in figures) + " |")
