"""Slurm: ``sbatch``, ``srun``, ``squeue``, ``scancel``, ``sinfo``.

What is done here was tried on Slurm 22.05. A core is a core: where Slurm counts its threads for
CPUs, a worker that holds cores gets all threads of each. A task's own ``srun`` counts CPUs, so on
such nodes more of them fit than were planned.
"""

from __future__ import annotations

import re
from functools import lru_cache

from taskgraph_workers import units
from taskgraph_workers.errors import Problem
from taskgraph_workers.schedulers import shares
from taskgraph_workers.schedulers.base import (
    ID,
    Answer,
    Command,
    Job,
    Kind,
    SchedulerError,
    Start,
    State,
)
from taskgraph_workers.schedulers.quoting import Directives, slurm_value, word
from taskgraph_workers.texts import beside

#: These would override what a script's own directives say (sbatch(1), INPUT ENVIRONMENT VARIABLES).
_WITHOUT = ("SBATCH_",)

#: More minutes than these show as INVALID in squeue: a year.
MOST_S = 365 * 86400

_PENDING = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"}
_ENDED = {
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "LAUNCH_FAILED", "NODE_FAIL"),
    *("OUT_OF_MEMORY", "PREEMPTED", "RECONFIG_FAIL", "REVOKED", "TIMEOUT"),
}

_ID = re.compile(r"(\d+)(?:;\S+)?")
_PLACE = re.compile("%.")
_GPUS = re.compile(r"(?:^|,)gpu(?::[^:,()\s]+)*?:(\d+)(?:\(|,|$)")


class Slurm:
    """Slurm, as :class:`~taskgraph_workers.schedulers.base.Scheduler` asks for it."""

    name = "slurm"
    extension = "sbatch"
    tool = "sbatch"
    tested = True
    settles_late = False
    # One process on each node of the job. Flux's brokers find one another by PMI-2 where Slurm has
    # it (flux-start(1)), else by Slurm's library. Slurm must not bind Flux, which binds its own
    # tasks, to a part of a node: a site with the plugin mpibind wants --mpibind=off too. Without
    # --export, a job's --export=NONE would hold for the step as well.
    starts_flux = (
        'srun --export=ALL -N "$SLURM_JOB_NUM_NODES" -n "$SLURM_JOB_NUM_NODES" --cpu-bind=none'
        ' --mpi="$(srun --mpi=list 2>&1 | grep -owm1 pmi2 || echo none)"'
    )

    @property
    def shell(self) -> str:
        """Bash functions for the script: ``slurm.sh``."""
        return _shell()

    def header(self, job: Job) -> list[str]:
        """``#SBATCH`` lines.

        A ``%`` in the output is Slurm's own (``%j``), since users of Slurm write it so. GPUs are
        asked for with ``--gres``: ``--gpus-per-node`` would reach every srun as a variable.
        """
        lines = Directives("#SBATCH", slurm_value)
        lines.add("job name", "--job-name=", job.name)
        lines.add("nodes", "--nodes=", job.nodes)
        if job.exclusive:
            lines.plain("--exclusive")
        if job.cores is not None:
            lines.plain(f"--mincpus={job.cores}")
        if job.gpus:
            lines.plain(f"--gres=gpu:{job.gpus}")
        lines.add("memory", "--mem=", None if job.memory_mib is None else f"{job.memory_mib}M")
        _time(lines, job.walltime_s)
        for what, option in _TEXTS:
            lines.add(what, f"--{option}=", getattr(job, what))
        _output(lines, job)
        lines.extra(job.directives)
        return lines.lines()

    def output_files(self, job: Job, job_id: str) -> tuple[str, ...]:
        """The name, with what Slurm puts in; not known where that is more than id and job name."""
        known = {"%j": job_id, "%x": job.name, "%%": "%"}
        text = (job.output or "").replace(ID, "%j")
        if not text or not known.keys() >= set(_PLACE.findall(text)):
            return ()
        return (_PLACE.sub(lambda found: known[found[0]], text),)

    def start(self, group: Start) -> str:
        """``tw_start_group NAME on=COUNTS ... COMMAND``: see ``slurm.sh``."""
        said = [shares.on(group)]
        if group.holds:
            said += [f"cores={group.cores}", f"gpus={group.gpus}"]
            said += [f"memory={group.memory_mib}"] if group.memory_mib is not None else []
            return " ".join(["tw_start_group", word(group.name), *said, word(group.command)])
        if group.task_gpus is not None:
            # Without it each task's srun would take all GPUs of its nodes, whatever it needs.
            said.append(f"gres=gpu:{group.task_gpus}" if group.task_gpus else "gres=none")
        if group.task_nodes is not None:
            # Without it an srun that says no -N would spread its tasks over all nodes of the job.
            said.append(f"task_nodes={group.task_nodes}")
        return " ".join(["tw_start_group", word(group.name), *said, word(group.command)])

    def submit(self, script: str, text: str) -> Command:
        """``sbatch --parsable SCRIPT``."""
        return Command(("sbatch", "--parsable", script), without=_WITHOUT)

    def test(self, script: str, text: str) -> Command | None:
        """``sbatch --test-only SCRIPT``, which uses up the number of a job.

        It doesn't refuse a time over the limit of a partition: see :meth:`kinds` for that.
        """
        return Command(("sbatch", "--test-only", script), without=_WITHOUT)

    def submitted(self, answer: Answer) -> str:
        """The job's id: a line with a number, or a number and a cluster."""
        for line in answer.stdout.splitlines() if answer.exit_code == 0 else ():
            found = _ID.fullmatch(line.strip())
            if found:
                return found[1]
        raise SchedulerError(Problem(f"Slurm did not take the job: {shares.said(answer)}"))

    def find(self, name: str) -> Command:
        """Asks for this user's jobs, also those that just ended: see :meth:`found`.

        All of them, since ``--name`` takes a comma in a name for the end of it.
        """
        form = ("--states=all", "--format=%A|%j")
        return Command(("squeue", "--noheader", "--me", *form))

    def found(self, name: str, answer: Answer) -> tuple[str, ...]:
        """The ids of those with this name. Raises SchedulerError where nobody can tell."""
        if answer.exit_code != 0:
            raise shares.untold("Slurm", "jobs", answer)
        rows = [line.partition("|") for line in answer.stdout.splitlines()]
        return tuple(job for job, _, said in rows if said == name)

    def poll(self, job: str) -> Command:
        """``squeue``, which knows a job for some minutes after its end (MinJobAge)."""
        form = "--format=%A|%T|%r|%N"
        return Command(("squeue", "--noheader", "--states=all", f"--jobs={job}", form))

    def state(self, job: str, answer: Answer) -> State:
        """How it is. A job that squeue doesn't know, or doesn't know any more, is ``unknown``.

        Raises SchedulerError where nobody can tell, since that says nothing about the job.
        """
        for line in answer.stdout.splitlines():
            fields = [field.strip() for field in line.split("|", 3)]
            if len(fields) == 4 and fields[0] == job:
                return _state(*fields[1:])
        if answer.exit_code == 0 or "Invalid job id" in answer.stderr:
            return State("unknown")
        raise shares.untold("Slurm", f"job {job}", answer)

    def end(self, job: str) -> Command | None:
        """A signal to the script alone, which passes none of it on to the workers' tasks."""
        return Command(("scancel", "--batch", "--signal=USR1", job))

    def cancel(self, job: str) -> Command:
        """``scancel``, which says nothing of a job that it doesn't know."""
        return Command(("scancel", job))

    def look(self) -> Command | None:
        """``sinfo``: partitions and the kinds of their nodes."""
        form = "--format=%P|%D|%c|%m|%G|%l|%X|%Y"
        return Command(("sinfo", "--noheader", form))

    def kinds(self, answer: Answer) -> tuple[Kind, ...]:
        """The nodes there are; nodes of one kind in several states are added up."""
        found: dict[Kind, int] = {}
        for line in answer.stdout.splitlines() if answer.exit_code == 0 else ():
            kind = _kind(line)
            if kind is not None:
                bare = kind._replace(nodes=0)
                found[bare] = found.get(bare, 0) + kind.nodes
        return tuple(kind._replace(nodes=nodes) for kind, nodes in found.items())


#: How long before the partition's own limit that is; it may come a minute early.
_WARNING_S = 180

# What a job says that becomes one option, as it is.
_TEXTS = (
    ("queue", "partition"),
    ("bank", "account"),
    ("qos", "qos"),
    ("constraint", "constraint"),
    ("reservation", "reservation"),
)


@lru_cache(maxsize=1)
def _shell() -> str:
    """``slurm.sh``, without what it says to shellcheck."""
    return beside(__file__, "slurm.sh").partition("\n")[2]


def _time(lines: Directives, walltime_s: int | None) -> None:
    if walltime_s is None:
        # Nobody told the script when it has to end: let Slurm warn it.
        lines.plain(f"--signal=B:USR1@{_WARNING_S}")
    elif walltime_s > MOST_S:
        lines.refuse("walltime", f"{walltime_s} s is more than Slurm takes, a year")
    else:
        lines.plain(f"--time={units.days_ceil_minute(walltime_s)}")


def _output(lines: Directives, job: Job) -> None:
    output = job.output
    if output is not None and "\\" in output:
        # Slurm then takes every % as it is, so that all jobs would write to one file.
        lines.refuse("output", f"{output!r} has a backslash in it, which Slurm doesn't keep")
    elif output is not None:
        lines.add("output", "--output=", output.replace(ID, "%j"))
    if job.requeue:
        lines.plain("--requeue --open-mode=append")


def _state(word: str, reason: str, nodes: str) -> State:
    # 22.05 says "CANCELLED by 0" in some outputs.
    word = word.partition(" ")[0]
    reason = "" if reason == "None" else reason
    nodes = "" if nodes == "(null)" else nodes
    if word in _PENDING:
        return State("pending", reason, nodes)
    if word in _ENDED:
        return State("ended", word, nodes, succeeded=word == "COMPLETED")
    # RUNNING, COMPLETING, SUSPENDED, and whatever a newer Slurm thinks of.
    return State("running", reason, nodes)


def _kind(line: str) -> Kind | None:
    fields = [field.strip() for field in line.split("|")]
    if len(fields) < 6:
        return None
    queue, nodes, cpus, memory, gres, limit = fields[:6]
    # Sites may count a core with two threads as one CPU, or as two.
    sockets, per_socket = [*fields[6:], "", ""][:2]
    cores = min(_number(cpus), _number(sockets) * _number(per_socket) or _number(cpus))
    if not cores or not queue:
        return None
    return Kind(
        queue=queue.rstrip("*"),
        nodes=_number(nodes),
        cores=cores,
        gpus=sum(int(number) for number in _GPUS.findall(gres)),
        memory_mib=_number(memory) or None,
        limit_s=_limit(limit),
        default=queue.endswith("*"),
    )


def _limit(text: str) -> int | None:
    """A partition's limit; None for ``infinite``, and for what is no duration."""
    try:
        return units.seconds(text)
    except ValueError:
        return None


def _number(text: str) -> int:
    """A number, of which sinfo may say that it is the least one: ``8+``."""
    found = re.match(r"\d+", text)
    return int(found[0]) if found else 0


SCHEDULER = Slurm()
