"""What has to be said of a launch: one line that tells what is wrong, warnings by what is to be
done about them, and the spec as it ought to be.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from taskgraph_workers.cli.layout import Styled
from taskgraph_workers.cli.output import Output
from taskgraph_workers.errors import Problem, WorkersError, all_of, counted, dotted

if TYPE_CHECKING:
    from taskgraph_workers.cli.launching import Plan

#: The keys of config.yml that are ours: what is wrong there is told with its whole path.
_CONFIG = ("workers-config", "workers")

#: A corrected spec of more lines than these is shown by what changes in it.
_WHOLE = 60

#: The groups of warnings, in their order: what is wrong first, then what can be done about it.
_BLOCKED = "The job would never start:"
_NEVER = "To mend, or it does not run:"
_SPEC = "Worth knowing of the spec:"
_SAY = "To say on the command line:"
_REST = "Also:"


def brief(problem: Problem) -> Problem:
    """A problem of a spec, told by file, line and a sentence: its key path is long, and not needed.

    Where the message goes on from a key, as in "must be a list", it begins with that.
    """
    from taskgraph_workers.launch.model import OF_KEY

    path = problem.path
    if not path or path[0] in _CONFIG or not problem.line:
        return problem
    message = problem.message
    if problem.code == OF_KEY:
        named = path[-2:] if isinstance(path[-1], int) else path[-1:]
        message = f"{dotted(named)} {message}"
    return problem._replace(message=message, path=(), column=0)


def wrong(plan: Plan) -> str:
    """What keeps something from running, as a sentence; nothing where all is well."""
    from taskgraph_workers.launch.model import MAY_NOT_START, NEVER_RUNS, NEVER_STARTS

    parts = ["the job would never start"] if plan.blockers else []
    for code, would in (
        (MAY_NOT_START, "may not start"),
        (NEVER_STARTS, "would never start"),
        (NEVER_RUNS, "would not run"),
    ):
        names = dict.fromkeys(n for note in plan.notes if note.code == code for n in note.names)
        parts += [f"{all_of(names)} {would}"] if names else []
    if any(note.code == NEVER_RUNS and not note.names for note in plan.notes):
        parts.append("no task would run")
    return f"as it is, {', and '.join(parts)}" if parts else ""


def verdict(plan: Plan) -> str:
    """The same behind the size, for the first line."""
    found = wrong(plan)
    return f"{counted(plan.sizing.nodes, 'node')}; but {found}" if found else ""


# --- warnings -------------------------------------------------------------------------------


def tell_notes(plan: Plan, output: Output) -> None:
    """Every warning, below what is to be done about it."""
    groups = _grouped(plan)
    for heading, notes in groups.items():
        if [*groups] != [_REST]:
            output.talk(Styled(heading, "bold"))
        for note in notes:
            _tell(note, output)
        output.talk()


def _grouped(plan: Plan) -> dict[str, list[Problem]]:
    from taskgraph_workers.launch.model import NEVER, OPTION

    groups: dict[str, list[Problem]] = {}
    order = (_BLOCKED, _NEVER, _SPEC, _SAY, _REST)
    found = [(_BLOCKED, each) for each in plan.blockers]
    for note in plan.notes:
        if note.code in NEVER:
            heading = _NEVER
        elif note.code == OPTION:
            heading = _SAY
        else:
            heading = _SPEC if note.line and (*note.path, "")[0] not in _CONFIG else _REST
        found.append((heading, note))
    for heading, note in sorted(found, key=lambda each: order.index(each[0])):
        groups.setdefault(heading, []).append(brief(note))
    return {heading: list(dict.fromkeys(notes)) for heading, notes in groups.items()}


def _tell(note: Problem, output: Output) -> None:
    """A warning as others are, with its sign in colour."""
    place = ":".join(str(part) for part in (note.file, note.line, note.column) if part)
    place += f": {dotted(note.path)}" * bool(note.path)
    where = f"{place}: " if note.line else ""
    output.talk(where, Styled(f"{note.severity}: ", "yellow"), note.text)
    if note.hint:
        output.talk(f"    hint: {note.hint}")


# --- the spec as it ought to be -------------------------------------------------------------


def tell_corrected(plan: Plan, output: Output, whole: bool) -> None:
    """The spec so that Merlin does what is meant; without ``whole``, how it is had."""
    text = plan.ask.corrected
    if text is None:
        return
    if not whole:
        output.talk("--corrected FILE writes the spec as Merlin would do what is meant.")
        output.talk()
        return
    before = _lines(plan.ask.file)
    output.talk(Styled("Merlin would do what is meant if the spec said:", "bold"))
    if any(re.match(r"\s*number:", line) for line in _new(text.splitlines(), before)):
        output.talk("(number is for launch; merlin run-workers starts nodes x concurrency workers)")
    for line in _shown(text.splitlines(), before):
        output.talk_lines(line)
    output.talk()


def _lines(file: str) -> list[str]:
    """The lines of the spec, none where it can't be read a second time."""
    try:
        if os.path.isfile(file):
            with open(file, encoding="utf-8-sig", errors="replace") as opened:
                return opened.read().splitlines()
    except OSError:
        pass
    return []


def _new(lines: Iterable[str], before: Iterable[str]) -> Iterator[str]:
    known = set(before)
    return (line for line in lines if line not in known)


def _shown(lines: Sequence[str], before: Sequence[str]) -> Iterator[str]:
    if len(lines) <= _WHOLE or not before:
        yield from (f"    {line}" for line in lines)
        return
    from difflib import unified_diff

    changed = list(unified_diff(before, lines, n=1, lineterm=""))[2:]
    yield from (f"    {line}" for line in changed)
    yield "(--corrected FILE writes all of it)"


def write_corrected(plan: Plan, file: str, output: Output) -> None:
    """Write the corrected spec to a new file. Raises WorkersError where that can't be."""
    if plan.ask.corrected is None:
        output.talk(f"there is nothing to correct in the spec: {file} is not written")
        return
    try:
        with open(file, "x", encoding="utf-8", newline="") as opened:
            opened.write(plan.ask.corrected)
    except FileExistsError:
        what = "is there already, and is not replaced"
        raise WorkersError(Problem(what, hint="name a new file", file=file)) from None
    except OSError as error:
        raise WorkersError(Problem(f"can't be written: {error.strerror}", file=file)) from None
    output.talk(f"the corrected spec is in {file}")
