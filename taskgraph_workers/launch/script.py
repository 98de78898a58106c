"""The batch script: one skeleton, with the header and the functions of a scheduler.

Everything here is pure. The bash that never changes is ``skeleton.sh``; what a scheduler does in
its own way are its ``shell`` functions. The order of a script:

1. the header, and a comment that says what made it and why it is that large;
2. the environment: lines of the user's, as they are;
3. what the job was given: its time, the margin, what tells that the work is done;
4. functions: the scheduler's, and those that watch over the workers;
5. the groups, each started by one line, and those that hold something first;
6. the loop that ends once no worker is left.

Workers are asked to end, by a TERM, at whatever comes first: a signal to the script (a
scheduler's own, before a time limit or at a cancel), the file ``workers-<job id>.stop`` in the
folder of submission, the margin before the time limit, or the end of the work. The script itself
ends with them; its status is 0, or that of the first worker which failed. A worker that dies is
told in the output, and the others go on.

Every function and variable of a script begins with ``tw_``, so that none is one of the user's.

A scheduler may start Flux on its nodes, for tasks that start their processes with Flux. Then the
script runs twice, outside as the job and inside of Flux, where the workers are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from taskgraph_workers import schedulers
from taskgraph_workers.errors import Problem
from taskgraph_workers.launch.model import LaunchError
from taskgraph_workers.schedulers import quoting
from taskgraph_workers.schedulers.base import Job, Scheduler, Start
from taskgraph_workers.texts import beside
from taskgraph_workers.version import VERSION

#: Every script of ours says so in its comment; see :func:`is_ours`.
MADE_BY = "# Made by taskgraph-workers"

#: A job's margin unless it is given: a tenth of its time, but no less and no more than these.
LEAST_MARGIN_S, MOST_MARGIN_S = 30, 300

#: Workers that are not done are given up this long before the limit, if the job is to come again.
LAST_CALL_S = 15

#: How often a script looks around, in seconds.
EVERY_S = 5

# What ends the inner run of a script where Flux is inside of another scheduler: a status that no
# shell and no signal gives, and that sysexits.h does not have.
_COME_AGAIN = 213


class Script(NamedTuple):
    """What a script is made of.

    ``about`` are lines for its comment. ``setup`` are lines for bash, as they are. ``until`` is a
    command that returns once the work is done. ``texts`` are variables for every worker, which
    may hold text of several lines. ``requeues`` is how often the job may go back into its queue.
    """

    job: Job
    starts: tuple[Start, ...]
    about: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    until: str | None = None
    texts: Mapping[str, str] = {}
    margin_s: int | None = None
    requeues: int = 0
    every_s: float = EVERY_S


def margin_of(walltime_s: int | None) -> int:
    """The margin that a job of this time gets where nobody says one, in seconds.

    >>> margin_of(1200), margin_of(60), margin_of(86400), margin_of(None)
    (120, 30, 300, 0)
    """
    if walltime_s is None:
        return 0
    return min(max(walltime_s // 10, LEAST_MARGIN_S), MOST_MARGIN_S)


def is_ours(text: str) -> bool:
    """Whether a text is a script that was made here."""
    return re.search(f"^{MADE_BY}", text, re.MULTILINE) is not None


def render(script: Script, scheduler: Scheduler, inside: Scheduler | None = None) -> str:
    """The text of a script. ``inside`` is Flux, where the scheduler starts that for the tasks.

    :raises SchedulerError: for what can't stand in the header.
    :raises LaunchError: for what can't stand elsewhere.
    """
    check(script, scheduler, inside)
    header = scheduler.header(script.job)
    lines = [
        "#!/bin/bash",
        *(line for line in header if line.startswith("#")),
        "#",
        *_comment(script, scheduler),
        "",
        *(line for line in header if not line.startswith("#")),
        *_environment(script, inside),
        *_given(script),
        *_functions(scheduler, inside),
        "# --- What watches over the workers ---",
        "",
        *_section("watch"),
        "",
        "# --- The workers ---",
        "",
        *_texts(script),
        *_groups(script, inside or scheduler),
        "",
        *_section("loop"),
    ]
    return "\n".join(lines) + "\n"


def check(script: Script, scheduler: Scheduler, inside: Scheduler | None) -> None:
    """Raises LaunchError for what makes no script, all of it at once."""
    problems = list(_unsayable(script))
    walltime = script.job.walltime_s
    if inside is not None and scheduler.starts_flux is None:
        what = f"a job of {scheduler.name} can't start {inside.name} on its nodes"
        can = (name for name in schedulers.NAMES if schedulers.find(name).starts_flux is not None)
        problems.append(Problem(what, hint=f"there is: {', '.join(can)}"))
    if walltime is not None and walltime <= _margin(script):
        what = f"workers would end {_margin(script)} s before a time limit of {walltime} s"
        problems.append(Problem(what, hint="say a longer walltime, or a shorter --margin"))
    if walltime is None and script.requeues:
        what = "the job can't be requeued before its time limit, since it has none"
        problems.append(Problem(what, hint="say --walltime"))
    if problems:
        raise LaunchError(*problems)


def _unsayable(script: Script) -> Iterator[Problem]:
    """Lines that are more than one line."""
    said = [("setup", line) for line in script.setup]
    said += [("the command that ends with the work", script.until or "")]
    for what, line in said:
        try:
            quoting.check(line.replace("\t", " "))
        except ValueError as error:
            yield Problem(f"{what}: {error}")


def _margin(script: Script) -> int:
    return margin_of(script.job.walltime_s) if script.margin_s is None else script.margin_s


# --- the parts, in their order --------------------------------------------------------------


def _comment(script: Script, scheduler: Scheduler) -> Iterator[str]:
    yield f"{MADE_BY} {VERSION}"
    for line in script.about:
        yield f"#   {printable(line)}"
    if not scheduler.tested:
        yield f"# Scripts for {scheduler.name} have not been tried on a real {scheduler.name} yet."
    yield "# To end the workers once their tasks are done: touch workers-JOBID.stop, here."
    yield "#"
    yield "# What workers expand themselves, and files of the machine's, are not for shellcheck:"
    yield "# shellcheck disable=SC1091,SC2016"


def printable(text: str) -> str:
    r"""A text for a comment: one line of it, and no directive, whatever is in it.

    Flux takes a line for one in which nothing but signs stands before ``flux:`` (RFC 36).

    >>> printable("a\nb  c"), printable("- flux: x")
    ('a\\nb  c', '- flux : x')
    """
    line = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )
    return re.sub(r"^(\W*flux):", r"\1 :", line, flags=re.IGNORECASE)


def _environment(script: Script, inside: Scheduler | None) -> Iterator[str]:
    """The user's lines. Where the script runs twice, the outer run hands down what they set."""
    yield "tw_folder=$PWD  # that of submission, before a line below may leave it"
    yield ""
    if script.setup:
        yield "# --- The environment ---"
        yield ""
        if inside is not None:
            yield 'if [ "${1-}" != inside ]; then'
        yield from script.setup
        if inside is not None:
            yield "fi"
        yield ""
    yield from _section("bare")
    yield ""


def _given(script: Script) -> Iterator[str]:
    walltime, margin = script.job.walltime_s, _margin(script)
    deadline = 0 if walltime is None else walltime - margin
    last_call = 0 if walltime is None else max(deadline, walltime - LAST_CALL_S)
    limit = "no time limit is known" if walltime is None else f"of {walltime} s"
    yield "# --- When workers end ---"
    yield ""
    yield f"tw_deadline={deadline} # seconds, {limit}"
    yield f"tw_margin={margin}"
    yield f"tw_last_call={last_call} # for workers of a job that will be requeued"
    yield f"tw_requeues={script.requeues} # at most"
    yield f"tw_every={script.every_s:g} # seconds from one look around to the next"
    yield "# A command that ends well once the work is done."
    yield f"tw_until={quoting.inner(script.until or '')}"
    yield ""


def _functions(scheduler: Scheduler, inside: Scheduler | None) -> Iterator[str]:
    yield f"# --- {scheduler.name} ---"
    yield ""
    if inside is None:
        yield from scheduler.shell.strip("\n").splitlines()
        yield ""
        return
    launcher = scheduler.starts_flux or ""
    yield f"tw_come_again={_COME_AGAIN}"
    yield 'if [ "${1-}" != inside ]; then'
    for name in ("tw_job_id", "tw_restarts", "tw_requeue_job"):
        yield from (f"    {line}" for line in function_of(scheduler.shell, name).splitlines())
    yield from (line.replace("@launcher@", launcher) for line in _section("inside"))
    yield "fi"
    yield ""
    yield f"# --- {inside.name}, inside of {scheduler.name} ---"
    yield ""
    yield from inside.shell.strip("\n").splitlines()
    yield from _section("outside")
    yield ""


def function_of(shell: str, name: str) -> str:
    r"""The text of one function.

    >>> function_of("a() { :; }\nb() {\n    :\n}\n", "b")
    'b() {\n    :\n}'
    """
    found = re.search(rf"^{name}\(\) (?:{{.*}}|{{.*\n(?:.*\n)*?}})$", shell, re.MULTILINE)
    if found is None:
        raise ValueError(f"there is no function {name}")
    return found[0]


def _texts(script: Script) -> Iterator[str]:
    for name, text in script.texts.items():
        end = f"END_OF_{name}"
        yield f"{name}=$(cat <<'{end}'"
        yield from text.rstrip("\n").splitlines()
        yield end
        yield ")"
        yield f"export {name}"
        yield ""


def _groups(script: Script, scheduler: Scheduler) -> Iterator[str]:
    problems: list[Problem] = []
    # Those that hold come first, or tasks of others might have their cores by then.
    for group in sorted(script.starts, key=lambda start: not start.holds):
        try:
            yield scheduler.start(group)
            yield f"tw_started {quoting.word(group.name)}"
        except ValueError as error:
            problems.append(Problem(f"group {group.name!r}: {error}"))
    if problems:
        raise LaunchError(*problems)


def _section(name: str) -> list[str]:
    return _sections()[name].strip("\n").splitlines()


@lru_cache(maxsize=1)
def _sections() -> Mapping[str, str]:
    """``skeleton.sh`` by its ``#:`` headings."""
    text = beside(__file__, "skeleton.sh")
    parts = re.split(r"^#: (\w+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))
