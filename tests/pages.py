"""Pages of the documentation, done as a reader would do them.

A page is read from top to bottom: a block of ``yaml``, ``python`` or ``sh`` whose first line names
a file is put into that file, a block of ``console`` is typed line by line, and what it shows is
what has to come out. JSON has no such first line: ``json FILE`` opens a block that is a file.

The first line of a file's block says where it goes: ``# FILE`` makes the file, or, where there is
one, puts these keys into it; ``# FILE, at its end``, ``# FILE, in place of its last line`` and
``# FILE, as a whole`` are taken at their word.

A line ``...`` in what a command shows stands for any lines. After a change that is meant,
``--update-golden`` writes what came out into pages on launching, save where there is such a line.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.graph.project import GIT
from tests.graph.support import EXAMPLE, LOCAL, ROOT

TUTORIAL = ROOT / "docs" / "tutorials" / "first-profile.md"
LAUNCH = ROOT / "docs" / "tutorials" / "first-launch.md"
TRAINING = ROOT / "docs" / "tutorials" / "first-training.md"

_LANGUAGES = "yaml|console|python|sh|json"
_BLOCK = re.compile(rf"^```({_LANGUAGES})(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w./-]+\.(?:ya?ml|py|sh))((?:, [\w ]+)?)\n(.*)", re.DOTALL)
_ENDS = (", at its end", ", in place of its last line", ", as a whole", "")
_CACHES = shutil.ignore_patterns("__pycache__")
#: What `plan` and `check` say with their exit code besides failing.
_DIFFERS = re.compile(r"taskgraph-workers (plan|check)\b")


@dataclass(frozen=True)
class File:
    """A file to be written, and how (see above)."""

    name: str
    how: str
    text: str


@dataclass(frozen=True)
class Command:
    """A line to be typed, and what the page shows of what it prints; "" where it shows nothing."""

    line: str
    shown: str


def steps(page: Path, before: str = "", after: str = "") -> list[File | Command]:
    """What a reader of a page does, in order, up to a heading, or from one on."""
    found: list[File | Command] = []
    whole = page.read_text("utf-8")
    if before:
        whole = whole[: whole.index(before)]
    whole = whole[whole.index(after) :]
    for language, name, text in _BLOCK.findall(whole):
        file = _FILE.match(text)
        if language == "console":
            found += _commands(text)
        elif name:
            found.append(File(name, "", text))
        elif file:
            assert file[2] in _ENDS, f"{page.name}: {file[2]}"
            found.append(File(file[1], file[2], file[3]))
    return found


def _commands(text: str) -> list[Command]:
    """Each line after a `$`, with what is shown below it; a backslash at its end joins the next."""
    found = []
    for each in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, shown = re.sub(r"\\\n\s*", "", each).partition("\n")
        found.append(Command(line, shown))
    return found


def shop(folder: Path) -> Reader:
    """Someone in the tutorial's project, as it is before the last step there."""
    reader = Reader(folder)
    for step in steps(TUTORIAL, before="## 6."):
        if isinstance(step, File):
            reader.write(step)
        elif step.line.startswith("git "):
            reader.type(step)
    return reader


def example(folder: Path) -> Reader:
    """Someone in a clone of this repository's example project."""
    shutil.copytree(EXAMPLE, folder / "taskcluster", symlinks=True, ignore=_CACHES)
    reader = Reader(folder)
    reader.type(Command("git init -q . && git add . && git commit -q -m 'The example'", ""))
    reader.type(Command("git remote add origin https://github.com/example/training", ""))
    return reader


def trainer(folder: Path, update: bool = False) -> Reader:
    """Someone who has trainings dispatched. What differs each time is no difference."""
    folder.mkdir()
    reader = Reader(folder, terminal=True, update=update)
    reader.env = {name: "" for name in os.environ if name.startswith("TASKGRAPH_WORKERS_")}
    here = rf"\b({re.escape(socket.gethostname())}|my-box)(?![\w-])"
    reader.masks = (
        (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "THEN"),
        (r"\d\d:\d\d:\d\d", "NOW"),
        (r"ledger=\S+", "ledger=LEDGER"),
        (here, "HERE"),
        (r" +", " "),
    )
    return reader


def clean_environment() -> dict[str, str]:
    """An environment that knows who commits, and nothing of a task around the tests."""
    # TASKGRAPH_WORKERS_PROFILE and TASKCLUSTER_ROOT_URL are among what is left out.
    clean = {k: v for k, v in os.environ.items() if not k.startswith((*LOCAL, "GIT_"))}
    git = {"GIT_CONFIG_COUNT": str(len(GIT))}
    for at, (key, value) in enumerate(GIT.items()):
        git.update({f"GIT_CONFIG_KEY_{at}": key, f"GIT_CONFIG_VALUE_{at}": value})
    fixed = {"PYTHONPATH": str(ROOT), "COLUMNS": "80", "PYTHONHASHSEED": "0"}
    return {**clean, **git, **fixed, "PYTHONDONTWRITEBYTECODE": "1"}


class Reader:
    """Someone in a folder, who does what a page says.

    ``terminal``: pages show what a terminal does, standard error among standard output. ``update``:
    pages are written anew instead of being compared. ``env`` is laid over the environment, and
    what ``masks`` name, pattern and replacement, is the same for any.
    """

    def __init__(self, folder: Path, terminal: bool = False, update: bool = False) -> None:
        self.here = folder
        self.terminal, self.update = terminal, update
        self.env: dict[str, str] = {}
        self.masks: tuple[tuple[str, str], ...] = ()
        self.exported: dict[str, str] = {}
        self.path = os.environ["PATH"]
        self._tools = folder.parent / f"{folder.name}-tools"
        self._tools.mkdir()
        main = "import sys; from taskgraph.main import main; sys.exit(main())"
        self._tool("taskgraph", f"-c '{main}'")
        self._tool("taskgraph-workers", "-m taskgraph_workers")

    def _tool(self, name: str, how: str) -> None:
        file = self._tools / name
        file.write_text(f'#!/bin/sh\nexec {sys.executable} {how} "$@"\n')
        file.chmod(0o755)

    def follow(self, page: Path, before: str = "", after: str = "") -> int:
        """Do all that a page says; fails the test where something else comes out.

        Returns how many commands were typed: with none of them, nothing was found to be true.
        """
        typed = 0
        for step in steps(page, before, after):
            if isinstance(step, File):
                self.write(step)
                continue
            printed = self.type(step)
            typed += 1
            if self.update and step.shown and printed != step.shown:
                text = page.read_text("utf-8")
                page.write_text(text.replace(f"\n{step.shown}", f"\n{printed}", 1), "utf-8")
        return typed

    def write(self, file: File) -> None:
        """Put a block into its file."""
        path = self.here / file.name
        text = path.read_text("utf-8") if path.exists() else ""
        if file.how == ", at its end":
            text += file.text
        elif file.how == ", as a whole":
            text = file.text
        elif file.how:
            text = text[: text.rstrip("\n").rindex("\n") + 1] + file.text
        elif text:
            merged = _merged(yaml.safe_load(text), yaml.safe_load(file.text))
            text = yaml.safe_dump(merged, sort_keys=False)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            text = file.text
        path.write_text(text, "utf-8")

    def type(self, command: Command) -> str:
        """Type a line; fails the test where it fails, or prints something else than is shown.

        Returns what is to be shown, if pages are to be updated.
        """
        left = self._tools / "where"
        if command.line.startswith("export "):
            name, _, value = command.line[len("export ") :].partition("=")
            self.exported[name] = value
        done = subprocess.run(
            ["bash", "-c", f'{command.line}\ncode=$?; pwd >"{left}"; exit $code'],
            cwd=self.here,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if self.terminal else subprocess.PIPE,
            text=True,
            check=False,
        )
        self.here = Path(left.read_text().strip())
        said = f"{command.line}\n{done.stdout}{done.stderr or ''}"
        assert done.returncode in self._codes(command), said
        same = not command.shown or is_shown(done.stdout, command.shown, self.masks)
        assert same or (self.update and "\n...\n" not in f"\n{command.shown}"), said
        return command.shown if same else done.stdout

    def _codes(self, command: Command) -> tuple[int, ...]:
        return (0, 1) if _DIFFERS.search(command.line) else (0,)

    def _environment(self) -> dict[str, str]:
        clean = clean_environment()
        path = f"{self._tools}{os.pathsep}{self.path}"
        return {**clean, **self.env, **self.exported, "PATH": path}


def is_shown(printed: str, shown: str, masks: Sequence[tuple[str, str]] = ()) -> bool:
    """Whether a page shows what was printed, line numbers aside, and what ``masks`` replace."""
    whole, parts = without_places(printed).rstrip(), without_places(shown).rstrip()
    for pattern, instead in masks:
        whole, parts = re.sub(pattern, instead, whole), re.sub(pattern, instead, parts)
    some = map(re.escape, re.split(r"^\.\.\.$", parts, flags=re.MULTILINE))
    return re.fullmatch("(?s:.*)".join(some), whole) is not None


def without_places(text: str) -> str:
    """A text without line numbers, which move with every edit of a project."""
    text = re.sub(r"\.yml:\d+", ".yml:N", text)
    return re.sub(r"^  \d+:\d+ +", "  N:N  ", text, flags=re.MULTILINE)


def _merged(old: Any, new: Any) -> Any:
    # {detect: ...} is one value.
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)) or "detect" in new:
        return new
    return {**old, **{key: _merged(old.get(key), value) for key, value in new.items()}}
