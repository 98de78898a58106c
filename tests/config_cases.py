"""Cases kept as text: what stands below `workers-config`, `=>`, and all that `check` prints.

Cases are parted by a line `---`. A line that begins with `#` is a comment.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parent / "data" / "config"

#: The kinds of the project that the cases are for.
KINDS = ("docker-image", "train")


def cases(name: str) -> list[Any]:
    """A pytest.param for each case of a file: the body, and what is told of it."""
    params = []
    for number, case in enumerate((DATA / name).read_text().split("\n---\n"), 1):
        body, told = case.split("\n=>\n")
        lines = [line for line in body.splitlines() if not line.startswith("#")]
        params.append(pytest.param("\n".join(lines), told.strip("\n"), id=f"{name}-{number}"))
    return params
