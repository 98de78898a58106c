"""What no single value shows: loops, dead ends, patterns that clash, requirements not met."""

from __future__ import annotations

from collections.abc import Sequence

from taskgraph_workers.config.shapes import Known
from taskgraph_workers.errors import Path, Problem
from taskgraph_workers.model import Config


def problems(config: Config, known: Known, left_out: Sequence[Path]) -> list[Problem]:
    """The problems of a configuration whose single values are right, or left out."""
    return []
