"""A limit to how long is searched: counted in steps, so that an answer is the same everywhere."""

from __future__ import annotations


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

    def part(self, steps: int) -> Work:
        """Work of its own, no more than is left here: to be taken off by :meth:`took`."""
        return Work(max(min(steps, self.left), 0))
