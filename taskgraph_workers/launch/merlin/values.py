"""Single values of a spec, checked and with variables replaced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taskgraph_workers.errors import Path, did_you_mean, said
from taskgraph_workers.launch.merlin.document import Document
from taskgraph_workers.launch.merlin.flags import whole_number
from taskgraph_workers.launch.merlin.variables import RESERVED, Variables
from taskgraph_workers.launch.merlin.walltimes import walltime

#: No real number of nodes, tasks, cores or GPUs is as large.
_TOO_LARGE = 10**9


class Reader:
    """Reads values of one spec. ``parameters`` are the global ones, ``columns`` the samples'."""

    def __init__(
        self,
        document: Document,
        variables: Variables,
        parameters: Mapping[str, tuple[str, ...]],
        columns: tuple[str, ...] = (),
    ) -> None:
        self.document = document
        self.variables = variables
        self.parameters = parameters
        self.columns = columns

    def text(self, value: object, path: Path) -> str | None:
        """A text with variables replaced; None where there is none, or it is a fault."""
        if value is None or value == "":
            return None
        if isinstance(value, (dict, list, tuple, set, bytes)):
            self.document.wrong(f"must be a text, not {said(value)}", path)
            return None
        if not isinstance(value, str):
            written = self.document.written(path) or str(value)
            what = f"Merlin wants a text here, and YAML reads {written} as {said(value)}"
            self.document.warn(what, path, f'put it in quotes: "{written}"')
            value = written
        return self.variables.replace(value)

    def fixed(self, value: object, path: Path) -> str | None:
        """A text that is the same for every task, and in which nothing is left to be replaced."""
        text = self.text(value, path)
        if path[:1] != ("study",) and isinstance(value, str):
            for name in self.variables.only_in_steps(value):
                what = f"Merlin replaces no $({name}) outside of steps, since it is in lower case"
                self.document.warn(what, path, f"write $({name.upper()})")
        for name in self.variables.left(text or ""):
            self.document.error(
                self._why_left(name), path, did_you_mean(name, self.variables.values, "")
            )
            return None
        return text

    def _why_left(self, name: str) -> str:
        if name in self.parameters:
            return f"$({name}) is a global parameter: workers know nothing of it"
        if name in self.columns:
            return f"$({name}) is a column of the samples: workers know nothing of it"
        if name in RESERVED or name.endswith(".workspace") or name == "OUTPUT_PATH":
            return f"$({name}) is known only once the study runs: workers start without it"
        return f"$({name}) is no variable of this spec"

    def number(self, value: object, path: Path, least: int = 1) -> int | None:
        """A whole number, as such or as a variable; None where there is none, or it is a fault."""
        if value is None:
            return None
        if isinstance(value, str):
            text = self.fixed(value, path)
            if text is None:
                return None
            return self.counted(text, path, least, written=value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < _TOO_LARGE:
            self.document.wrong(f"must be a whole number from {least}, not {said(value)}", path)
            return None
        return value

    def counted(self, text: str, path: Path, least: int, written: str) -> int | None:
        """The number that a text is; None, and a fault, where it is none."""
        try:
            number = whole_number(text.strip())
        except ValueError:
            number = -1
        if number < least:
            shown = written if written == text else f"{written}, which is {text!r},"
            self.document.wrong(f"must be a whole number from {least}, not {shown}", path)
            return None
        if text == written:
            hint = f"leave out the quotes: {text}"
            self.document.warn("Merlin refuses a number in quotes", path, hint)
        return number

    def flag(self, value: object, path: Path, default: bool) -> bool:
        """True or false."""
        if value is None or isinstance(value, bool):
            return default if value is None else value
        self.document.wrong(f"must be true or false, not {said(value)}", path)
        return default

    def texts(self, value: object, path: Path) -> tuple[str, ...] | None:
        """A list of texts, all different; None where there is none, or it is a fault."""
        if value is None:
            return None
        if not isinstance(value, list):
            hint = f"write [{value}]" if isinstance(value, str) else ""
            self.document.wrong(f"must be a list, not {said(value)}", path, hint)
            return None
        found: list[str] = []
        for place, each in enumerate(value):
            text = self.text(each, (*path, place))
            if text in found:
                self.document.error(f"{text!r} stands here twice", (*path, place))
            elif text is not None:
                found.append(text)
        return tuple(found)

    def walltime(self, value: Any, path: Path, fatal: bool = True) -> int | None:
        """A walltime in seconds; what Merlin would do with it is a warning."""
        if value is None:
            return None
        written = self.document.written(path)
        if isinstance(value, str):
            value = written = self.fixed(value, path)
            if value is None:
                return None
        try:
            found = walltime(value, written)
        except ValueError as error:
            (self.document.error if fatal else self.document.warn)(str(error), path)
            return None
        if found.note:
            self.document.warn(found.note, path, found.hint)
        return found.seconds
