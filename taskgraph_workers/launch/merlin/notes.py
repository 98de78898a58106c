"""What is found wrong, or worth knowing, about a spec: collected, and told all at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from taskgraph_workers.config.locate import Source
from taskgraph_workers.errors import Path, Problem
from taskgraph_workers.launch.model import LaunchError

#: Where the workers of a spec stand.
WORKERS: Path = ("merlin", "resources", "workers")


class Notes:
    """The problems of one spec, each once, with its line."""

    def __init__(self, file: str, known: Iterable[Problem] = ()) -> None:
        self.file = Source(file).shown
        self._problems: list[Problem] = list(known)

    def error(self, message: str, path: Path = (), line: int = 0, hint: str = "") -> None:
        """Note something that can't be launched."""
        self._add(Problem(message, path, hint, file=self.file, line=line))

    def warn(self, message: str, path: Path = (), line: int = 0, hint: str = "") -> None:
        """Note something that the user should know."""
        self._add(Problem(message, path, hint, "warning", self.file, line))

    def never(
        self, about: tuple[str, Sequence[str]], message: str, place: tuple[Path, int], hint: str
    ) -> None:
        """Note why something would not run; ``about`` are the problem's code and names."""
        problem = Problem(message, place[0], hint, "warning", self.file, place[1])
        self._add(problem._replace(code=about[0], names=tuple(about[1])))

    def _add(self, problem: Problem) -> None:
        if problem not in self._problems:
            self._problems.append(problem)

    def take(self, problems: Iterable[Problem]) -> None:
        """Note what was noted elsewhere."""
        for problem in problems:
            self._add(problem)

    def errors(self) -> list[Problem]:
        """What can't be launched."""
        return [problem for problem in self._problems if problem.severity == "error"]

    def check(self) -> None:
        """Raise LaunchError with everything that was noted, if any of it is an error."""
        if self.errors():
            raise LaunchError(*self.all())

    def all(self) -> tuple[Problem, ...]:
        """Everything, errors first, in the order of the lines."""
        return tuple(sorted(self._problems, key=lambda each: (each.severity, each.line)))
