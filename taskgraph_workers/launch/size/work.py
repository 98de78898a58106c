"""A limit to how long is searched: counted in steps, so that an answer is the same everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class OutOfWork(Exception):
    """No step is left: what was found so far has to do."""


class Work:
    """Steps that may be taken; a step is some microseconds."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int = 1) -> None:
        """Take steps. Raises OutOfWork where none is left."""
        self.left -= steps
        if self.left < 0:
            raise OutOfWork

    @contextmanager
    def part(self, steps: int) -> Iterator[Work]:
        """Work of its own, no more than is left here, from which what it takes is taken off."""
        most = max(min(steps, self.left), 0)
        part = Work(most)
        try:
            yield part
        finally:
            self.left -= most - max(part.left, 0)
