"""What ``$(NAME)`` stands for, as Merlin 1.13 replaces it (``spec/expansion.py``).

``env.variables`` and then ``env.labels``, in their order: each may use those above it, and
``$HOME`` and ``~`` in their values. Names count as upper case. Global parameters and the columns
of samples are not replaced: they are different for each task.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from taskgraph_workers.errors import Path, did_you_mean, said
from taskgraph_workers.launch.merlin import strict
from taskgraph_workers.launch.merlin.document import Document
from taskgraph_workers.launch.merlin.schema import ENV, mapping, unknown

#: What ``$(NAME)`` looks like, and ``$(step.workspace)``.
REFERENCE = re.compile(r"\$\(([\w.-]+)\)")

#: No text grows by more: a few variables that each hold another one twice are longer than memory.
MOST_CHARACTERS = 2**20

#: Words that Merlin keeps for itself; a spec that gives one of them a value is refused.
RESERVED = frozenset(
    {
        *("SPECROOT", "WORKSPACE", "LAUNCHER"),
        *("MERLIN_GLOB_PATH", "MERLIN_PATHS_ALL", "MERLIN_SAMPLE_ID", "MERLIN_SAMPLE_PATH"),
        *("MERLIN_WORKSPACE", "MERLIN_TIMESTAMP", "MERLIN_INFO"),
        *("MERLIN_SUCCESS", "MERLIN_RESTART", "MERLIN_SOFT_FAIL", "MERLIN_HARD_FAIL"),
        *("MERLIN_RETRY", "MERLIN_STOP_WORKERS", "MERLIN_RAISE_ERROR"),
    }
)


class Variables:
    """The variables of a spec. ``values`` are the text of each, by its name in upper case.

    ``lower`` are those whose names are written otherwise. Merlin knows them in upper case only;
    Maestro, which replaces once more what stands in steps, as they are written.
    """

    def __init__(self, document: Document, given: Mapping[str, str]) -> None:
        self.document = document
        self.values: dict[str, str] = {}
        self.lower: dict[str, str] = {}
        env = mapping(document, document.value.get("env"), ("env",))
        left = dict(given)
        unknown(document, env, ("env",), ENV, "env")
        strict.check(document, env, ("env",), strict.ENV)
        self._spack(env.get("dependencies"))
        for block in ("variables", "labels"):
            path = ("env", block)
            for name, value in mapping(document, env.get(block), path).items():
                self._add(name, left.pop(name, value), (*path, name))
                if block == "variables" and value is not None:
                    strict.check(document, {name: value}, path, {name: strict.VARIABLE})
        for name in left:
            self._not_one(name)
        self._root()

    def _spack(self, raw: object) -> None:
        spack = raw.get("spack") if isinstance(raw, dict) else None
        if isinstance(spack, dict) and "type" not in spack:
            path = ("env", "dependencies", "spack")
            self.document.warn("Merlin 1.13 refuses spack without a type", path, "leave it out")

    def _add(self, name: str, value: Any, path: Path) -> None:
        if name in RESERVED:
            self.document.error(f"{name} is a word that Merlin keeps for itself", path)
        elif value is None or value == "" or isinstance(value, (dict, bytes)):
            self.document.error(
                f"a variable needs a value, a text or a number, not {said(value)}", path
            )
        else:
            text = self._replaced(str(value))
            text = os.path.expandvars(os.path.expanduser(text))
            self.values[name.upper()] = text
            if name != name.upper():
                self.lower[name] = text

    def _not_one(self, name: str) -> None:
        """What is said of a value from the command line that no variable takes."""
        if name in self.document.text:
            self.document.warn(f"--vars {name}=... changes nothing: it is no variable", ("env",))
        else:
            hint = did_you_mean(name, self.values)
            self.document.error(f"--vars {name}=...: the spec has no such variable", (), hint)

    def _root(self) -> None:
        folder = os.path.dirname(os.path.abspath(self.document.source.file))
        self.values["SPECROOT"] = folder

    def _replaced(self, text: str) -> str:
        most = len(text) + MOST_CHARACTERS
        for name, value in (*self.values.items(), *self.lower.items()):
            reference = f"$({name})"
            if len(text) + text.count(reference) * (len(value) - len(reference)) > most:
                what = f"$({name}) makes a text longer by more than {MOST_CHARACTERS} characters"
                self.document.error(what, ("env",))
                return REFERENCE.sub("", text)
            text = text.replace(reference, value)
        return text

    def only_in_steps(self, text: str) -> list[str]:
        """Names in a text that Merlin replaces in steps only, since they are in lower case."""
        return [name for name in self.left(text) if name in self.lower]

    def replace(self, text: str) -> str:
        """A text with every variable in it replaced; in their order, as Merlin does it."""
        return self._replaced(text) if "$(" in text else text

    def left(self, text: str) -> list[str]:
        """The names of what is still to be replaced in a text."""
        return REFERENCE.findall(text)
