"""The ``run`` of a step: the keys that say a size, its scripts, and which launcher it has."""

from __future__ import annotations

from typing import Any, NamedTuple

from taskgraph_workers.errors import Path, said
from taskgraph_workers.launch.merlin.launchers import LAUNCHER_OF, RAW_KEY
from taskgraph_workers.launch.merlin.peak import Row, replaced
from taskgraph_workers.launch.merlin.values import Reader
from taskgraph_workers.launch.merlin.variables import REFERENCE


class Key(NamedTuple):
    """A key that says a size: by what name, from where on, whether Merlin takes a variable."""

    size: str
    least: int
    variable: bool = True


#: The keys of a step that say a size.
KEYS = {
    "nodes": Key("nodes", 1),
    "procs": Key("tasks", 1),
    "cores per task": Key("cores_per_task", 1),
    "gpus per task": Key("gpus_per_task", 0, variable=False),
    "cores": Key("cores", 1),
    "gpus": Key("gpus", 0),
}
_BOTH = (("cores", "cores per task"), ("gpus", "gpus per task"))
_SHELLS = frozenset({"sh", "bash", "dash", "ksh", "zsh", "csh", "tcsh"})


class Run:
    """The run of one step. ``sizes`` are the keys that say one, as text: in it only global
    parameters may be left. ``failed`` tells that its size can't be read; a note says why.
    """

    def __init__(self, reader: Reader, name: str, run: dict[str, Any], path: Path) -> None:
        self.reader = reader
        self.name = name
        self.run = run
        self.path = path
        self.failed = False
        self.sizes: dict[str, str] = {}
        for key, value in run.items():
            text = self._size(key, value) if key in KEYS and value is not None else None
            if text is not None:
                self.sizes[key] = text

    def at(self, key: str) -> Path:
        """The path of a key."""
        return (*self.path, key)

    def warn(self, what: str, key: str = "cmd", hint: str = "", fatal: bool = False) -> None:
        """Note something that the user should know; a ``fatal`` one keeps the step from running."""
        path = self.at(key if key in self.run else "cmd")
        never = (self.name,) if fatal else None
        self.reader.document.warn(what, path, hint, never)

    def fail(self, what: str, key: str = "cmd") -> None:
        """Name the step as one whose size can't be read."""
        self.failed = True
        hint = "say it in numbers, or give the allocation's nodes yourself, by --nodes"
        self.warn(f"step {self.name!r} is not sized: {what}", key, hint)

    def script(self, key: str) -> str:
        """A script of the step, or its raw flags, with variables replaced."""
        value = self.run.get(key)
        return self.reader.variables.replace(value) if isinstance(value, str) else ""

    def type(self, default: str) -> str:
        """The type of batch block that this step's launcher is of: its own counts first."""
        raw = self.run.get("batch")
        if raw is None or isinstance(raw, dict):
            text = (raw or {}).get("type")
            return self.reader.fixed(text, (*self.at("batch"), "type")) or default
        self.reader.document.wrong(f"must be a mapping, not {said(raw)}", self.at("batch"))
        return default

    def is_shell(self, default: str | None) -> bool:
        """Whether a shell runs its scripts: ``shell`` may be any program."""
        words = (self.script("shell") or default or "/bin/bash").split()
        names = [word.rpartition("/")[2] for word in words]
        return bool(names) and (names[1:2] if names[0] == "env" else names[:1])[0] in _SHELLS

    def raw_key(self, type: str) -> str | None:
        """The key of the raw flags that Merlin hands to a launcher of this type."""
        return RAW_KEY.get(LAUNCHER_OF.get(type, ""))

    def refuse_both(self) -> None:
        """Refuse a size that is said twice, once for the step and once for each of its tasks."""
        for one, two in _BOTH:
            if one in self.sizes and two in self.sizes:
                self.failed = True
                what = f"{one!r} is of the whole step, {two!r} of each task: say one of them"
                self.reader.document.error(what, self.at(one))

    def _size(self, key: str, value: object) -> str | None:
        """A size as text in which only global parameters are left; None where it is a fault."""
        _, least, variable = KEYS[key]
        text = self.reader.variables.replace(value).strip() if isinstance(value, str) else ""
        names = set(REFERENCE.findall(text))
        if not names or not names <= {*self.reader.parameters, *self.reader.columns}:
            number = self.reader.number(value, self.at(key), least)
            text = "" if number is None else str(number)
        elif not names <= self.reader.parameters.keys():
            self.fail(f"{key} {value} is different for each sample", key)
            return None
        elif not self._counted(key, text, names, least):
            return None
        if "$(" in str(value) and not variable:
            self.warn(f"Merlin refuses a variable for {key!r}", key, "write a number")
        return text or None

    def _counted(self, key: str, text: str, names: set[str], least: int) -> bool:
        """Whether a size is a number for every row of the parameters."""
        columns = [self.reader.parameters[name] for name in sorted(names)]
        for values in dict.fromkeys(zip(*columns)):
            one = replaced(text, dict(zip(sorted(names), values)))
            if self.reader.counted(one, self.at(key), least, text) is None:
                return False
        return True

    def keys(self, row: Row) -> dict[str, int]:
        """The sizes that the keys say, for one row of the parameters."""
        return {KEYS[key].size: int(replaced(text, row)) for key, text in self.sizes.items()}
