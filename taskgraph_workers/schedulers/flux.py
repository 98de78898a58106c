"""Flux (flux-core 0.48 and later): ``#flux:`` directives, ``flux exec`` and ``flux run``.

Every rule here is from a real Flux 0.88 unless it says otherwise.

**Nodes.** ``-N`` alone asks for whole nodes; ``-n`` beside it takes that away, so it stands only
in a job that shares its nodes, where it asks for one slot on each. Flux knows no memory, no
reservation and no quality of service; a queue stands for them.

**Workers that hold nothing** are started by ``flux exec``, which takes no slot: one command for a
group, from which each node's broker starts its share. Their tasks bring ``flux run``.

**Workers that hold** are the tasks of one ``flux run`` on each of their nodes, which keeps their
cores and GPUs out of reach of others: each has its own GPUs in CUDA_VISIBLE_DEVICES, and -1 if it
has none. That ``--requires=rank:N`` picks the node is from Flux's documentation, not yet seen.

**Ending.** Signals for a script go to its whole process group and, at a cancel or a time limit, to
every broker too, which then takes its workers with it. ``flux exec`` and ``flux job kill`` signal
whole process groups (``flux_subprocess_kill`` of flux-core). So workers end well by the script's
own watch alone, which signals main processes by a ``flux exec`` of ``kill``; :meth:`Flux.end`
is None.

**Ids** are written in ASCII: ``fABC``, where Flux prints ``ƒABC``.
"""

from __future__ import annotations

import json
import re
from collections import Counter

from taskgraph_workers.errors import Problem
from taskgraph_workers.schedulers import quoting, shares
from taskgraph_workers.schedulers.base import (
    Answer,
    Command,
    Job,
    Kind,
    SchedulerError,
    Start,
    State,
)

_ID = re.compile(r"[ƒf][1-9A-HJ-NP-Za-km-z]+")
_UNKNOWN = re.compile(r"JobID \S+ unknown|unknown job")
_FIELDS = "{status}|{returncode}|{nodelist}|{exception.note}"
_PENDING = ("DEPEND", "PRIORITY", "SCHED")
_RUNNING = ("RUN", "CLEANUP")
_ENDED = ("COMPLETED", "FAILED", "CANCELED", "TIMEOUT")

# Prints ids in ASCII, whatever the locale.
_ASCII = ("env", "FLUX_F58_FORCE_ASCII=1")


class Flux:
    """See the module, and :class:`~taskgraph_workers.schedulers.base.Scheduler`."""

    name = "flux"
    extension = "flux"
    tool = "flux"
    tested = True
    settles_late = True
    starts_flux = ""

    @property
    def shell(self) -> str:
        """``share.sh`` and ``flux.sh``."""
        return shares.shell("flux")

    def header(self, job: Job) -> list[str]:
        """``#flux:`` lines."""
        header = quoting.Directives("#flux:", quoting.flux_value)
        header.add("job name", "--job-name=", job.name)
        header.add("nodes", "--nodes=", job.nodes)
        if not job.exclusive:
            _slots(header, job)
        if job.walltime_s is not None:
            header.plain(f"--time-limit={job.walltime_s}s")
        header.add("queue", "--queue=", job.queue)
        header.add("bank", "--bank=", job.bank)
        header.add("output", "--output=", shares.output(job, "{{id}}"))
        header.add("constraint", "--requires=", job.constraint)
        _unsayable(header, job)
        header.extra(job.directives)
        return header.lines()

    def output_files(self, job: Job, job_id: str) -> tuple[str, ...]:
        """Flux begins ids in names with a letter of its own, where the locale has it."""
        ids = (job_id, f"\u0192{job_id[1:]}")
        return tuple(file for each in ids for file in shares.output_files(job, each))

    def start(self, group: Start) -> str:
        """See :func:`taskgraph_workers.schedulers.shares.start`."""
        return shares.start(group)

    def submit(self, script: str, text: str) -> Command:
        """``flux batch``, which accepts what can't run: poll it at once."""
        return Command((*_ASCII, "flux", "batch", script))

    def test(self, script: str, text: str) -> Command | None:
        """Whether its directives can be read. Queue and nodes are not looked at."""
        return Command(("flux", "batch", "--dry-run", script))

    def submitted(self, answer: Answer) -> str:
        """The id that ``flux batch`` prints."""
        lines = answer.stdout.split()
        if answer.exit_code == 0 and lines and _ID.fullmatch(lines[-1]):
            return "f" + lines[-1][1:]
        text = shares.said(answer)
        raise SchedulerError(Problem(f"flux batch did not take the job: {text}"))

    def find(self, name: str) -> Command:
        """Asks for this user's jobs that are not over; see :meth:`found`."""
        return Command((*_ASCII, "flux", "jobs", "--no-header", "--format={id.f58}|{name}"))

    def found(self, name: str, answer: Answer) -> tuple[str, ...]:
        """The ids of those of this name. Raises SchedulerError where nobody can tell."""
        if answer.exit_code != 0:
            raise shares.untold("Flux", "jobs", answer)
        rows = [line.strip().partition("|") for line in answer.stdout.splitlines()]
        return tuple("f" + job[1:] for job, _, said in rows if said == name)

    def poll(self, job: str) -> Command:
        """``flux jobs``, for one of any state."""
        return Command(("flux", "jobs", "--no-header", f"--format={_FIELDS}", job))

    def state(self, job: str, answer: Answer) -> State:
        """Trust the status, not the exit code: a script that traps its end may end well.

        Raises SchedulerError where nobody can tell, since that says nothing about the job.
        """
        status, _, rest = answer.stdout.strip().partition("|")
        if answer.exit_code != 0 or not rest:
            if _UNKNOWN.search(answer.stderr):
                return State("unknown")
            raise shares.untold("Flux", f"job {job}", answer)
        _, nodes, note = [*rest.split("|", 2), "", ""][:3]
        if status in _PENDING:
            return State("pending", status)
        if status in _RUNNING:
            return State("running", status, nodes)
        if status not in _ENDED:
            return State("unknown", status, nodes)
        reason = f"{status}: {note.strip()}" if note.strip() else status
        return State("ended", reason, nodes, status == "COMPLETED")

    def end(self, job: str) -> Command | None:
        """None: a signal would reach the brokers too, and end the workers with them."""
        return None

    def cancel(self, job: str) -> Command:
        """``flux cancel``: TERM and HUP to everything, KILL after 5 seconds."""
        return Command(("flux", "cancel", job))

    def look(self) -> Command | None:
        """The resource set, which tells alike nodes apart, as ``flux resource list`` does not."""
        return Command(("flux", "resource", "R"))

    def kinds(self, answer: Answer) -> tuple[Kind, ...]:
        """Kinds of node, whatever queue they are for."""
        counts: Counter[tuple[int, int]] = Counter()
        try:
            for part in json.loads(answer.stdout)["execution"]["R_lite"]:
                have = part["children"]
                shape = (_size(str(have["core"])), _size(str(have.get("gpu", ""))))
                counts[shape] += _size(str(part["rank"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            return ()
        return tuple(
            Kind("", count, cores, gpus, default=True)
            for (cores, gpus), count in counts.items()
            if cores and count
        )


def _size(ids: str) -> int:
    """How many ids a set has.

    >>> _size("0-3,7"), _size("")
    (5, 0)
    """
    size = 0
    for part in filter(None, ids.strip("[]").split(",")):
        first, _, last = part.partition("-")
        size += int(last or first) - int(first) + 1
    return size


def _slots(header: quoting.Directives, job: Job) -> None:
    """One slot on each node, of as many cores and GPUs as the job takes there."""
    header.add("nodes", "--nslots=", job.nodes)
    header.add("cores", "--cores-per-slot=", job.cores)
    header.add("GPUs", "--gpus-per-slot=", job.gpus or None)
    if job.memory_mib is not None:
        header.refuse("memory", "Flux can't be asked for memory", "ask for whole nodes")


def _unsayable(header: quoting.Directives, job: Job) -> None:
    for what, value, hint in (
        ("reservation", job.reservation, "if the site gave it a queue of its own, say that"),
        ("quality of service", job.qos, "say a queue, or a directive such as #flux: --urgency=20"),
        ("requeue", job.requeue or None, "submit the script again"),
    ):
        if value is not None:
            header.refuse(what, "Flux has no such thing", hint)


SCHEDULER = Flux()
