"""What Flux, LSF and PBS have in common: each node starts, watches and ends its share of a group.

The bash is in ``share.sh``, and one more file for each scheduler. Its ``tw_start_group`` takes::

    tw_start_group NAME on=2x3,1x1 cores=8 gpus=1 COMMAND

``on``, as Slurm has it too, says how many workers are on each node: here 2 on each of three, and 1
on the next. ``cores`` and ``gpus`` are what each of them holds, and left out where it holds
nothing. On a node, one process starts its share, tells of workers that fail, and ends with the
highest of their exit codes. Slurm takes :func:`on`, :func:`said` and :func:`untold` from here, too.

A worker's main process is bash, which ``exec`` in its command replaces. Its id is kept in a
folder below the node's own ``/tmp``, which goes once all workers have ended, and to end a worker is
to send TERM to that process alone.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import groupby

from taskgraph_workers.errors import Problem
from taskgraph_workers.schedulers import quoting
from taskgraph_workers.schedulers.base import ID, Answer, Job, SchedulerError, Start
from taskgraph_workers.texts import beside

_NAME = re.compile(r"[\w.-]+", re.ASCII)


@cache
def shell(*names: str) -> str:
    """The bash of a scheduler: what all have in common, and its own files."""
    texts = [beside(__file__, f"{name}.sh") for name in ("share", *names)]
    return "\n".join(text.replace("# shellcheck shell=bash\n", "") for text in texts)


def start(group: Start) -> str:
    """The line that starts a group. Raises ValueError for what can't be said in it.

    >>> start(Start("w", (2, 2, 1), "exec work", holds=True, cores=8, gpus=1))
    "tw_start_group w on=2x2,1x1 cores=8 gpus=1 'exec work'"
    """
    if not _NAME.fullmatch(group.name):
        raise ValueError(f"{group.name!r} is no name: write letters, digits, '_', '.' and '-'")
    said = [on(group)]
    if group.holds:
        said += [f"cores={group.cores}", f"gpus={group.gpus}"]
    return " ".join(["tw_start_group", group.name, *said, quoting.word(group.command)])


def on(group: Start) -> str:
    """How many are on each node, with alike neighbours together.

    >>> on(Start("w", (2, 2, 1), "exec work"))
    'on=2x2,1x1'
    """
    runs = (f"{count}x{len(list(same))}" for count, same in groupby(group.per_node))
    return f"on={','.join(runs)}"


def output(job: Job, job_id: str) -> str | None:
    """Where the job writes, with what this scheduler calls its id."""
    return None if job.output is None else job.output.replace(ID, job_id)


def output_files(job: Job, job_id: str) -> tuple[str, ...]:
    """The name of the job's output file, where the id is in it as it is."""
    return () if job.output is None else (job.output.replace(ID, job_id),)


def untold(scheduler: str, what: str, answer: Answer) -> SchedulerError:
    """The error that a scheduler tells nothing of something, with what it said instead."""
    return SchedulerError(Problem(f"{scheduler} can't be asked for {what}: {said(answer)}"))


def said(answer: Answer) -> str:
    """What an answer says, on one line, for a message."""
    text = " ".join(f"{answer.stderr} {answer.stdout}".split())
    return text or f"it said nothing (exit code {answer.exit_code})"
