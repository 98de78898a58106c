"""PBS Pro (OpenPBS), from its documentation: nothing here has run on a real PBS.

**Nodes.** ``select=N:ncpus=C:mpiprocs=1:ngpus=G`` asks for N chunks, ``place=scatter`` puts each
on a node of its own, and ``:excl`` gives no more of that node to anyone else. ``ncpus`` is what the
job may use there: where nobody says the cores of a node it is left out, and PBS gives one. Torque,
with its ``nodes=N:ppn=C``, is another scheduler.

**Workers.** ``pbsdsh`` starts each node's share. No environment travels to other nodes: it is
carried in a file, in the folder of submission, which has to be one that nodes share. Workers that
hold are bound there: CUDA_VISIBLE_DEVICES gets the worker's part of what the job may see on the
node, counted over all groups (and -1 for none), ``taskset`` its part of the cores. ``pbsdsh`` tells
of its tasks' exit codes in some versions only.

**What it can't.** The id has no place in the name of an output file, so ``{id}`` leaves the name
to PBS (``NAME.o123``), in the folder that is said. A job is put back into its queue by operators
alone. A reservation is a queue. The script starts in the home folder, so the header's last line
goes to where it was submitted.
"""

from __future__ import annotations

import re
from collections import Counter

from taskgraph_workers import units
from taskgraph_workers.errors import Problem
from taskgraph_workers.schedulers import quoting, shares
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

_ID = re.compile(r"\d+(\.[\w.-]+)?", re.ASCII)
_NAME = re.compile(r"[A-Za-z][\w.+-]{0,235}", re.ASCII)
_RESOURCE = re.compile(r"[A-Za-z]\w*=[\w.-]+(:[A-Za-z]\w*=[\w.-]+)*", re.ASCII)
_ATTRIBUTE = re.compile(r"^ +([\w.]+) = (.*)$", re.MULTILINE)
_PENDING = tuple("QHWTM")
_RUNNING = tuple("RESUB")
_ENDED = tuple("FXC")
_GONE = re.compile(r"Unknown Job|has finished", re.IGNORECASE)
_UNITS_KIB = {"kb": 1, "mb": 1024, "gb": 1024**2, "tb": 1024**3}

#: Where the script goes, since PBS starts it in the home folder.
CHANGE_FOLDER = 'cd "${PBS_O_WORKDIR:-.}" || exit 66'

# A job's attributes; of a job that has ended too, where the site keeps its history.
_ASK = 'qstat -x -f "$1" 2>/dev/null || qstat -f "$1"'
_FIND = 'qselect -u "$(id -un)" -N "$1"'


class Pbs:
    """See the module, and :class:`~taskgraph_workers.schedulers.base.Scheduler`."""

    name = "pbs"
    extension = "pbs"
    tool = "qsub"
    tested = False
    settles_late = False
    starts_flux = None

    @property
    def shell(self) -> str:
        """``share.sh``, ``carry.sh`` and ``pbs.sh``."""
        return shares.shell("carry", "pbs")

    def header(self, job: Job) -> list[str]:
        """``#PBS`` lines, and one more that goes to the folder of submission."""
        header = quoting.Directives("#PBS", quoting.pbs_value)
        _name(header, job.name)
        _select(header, job)
        header.plain(f"-l place=scatter{':excl' if job.exclusive else ''}")
        if job.walltime_s is not None:
            header.plain(f"-l walltime={units.hours_exact(job.walltime_s)}")
        header.add("queue", "-q ", job.queue or job.reservation)
        header.add("bank", "-A ", job.bank)
        header.plain("-j oe")
        _output(header, job.output)
        if job.reservation and job.queue:
            header.refuse("reservation", "PBS has it as a queue", "say one of them")
        if job.qos is not None:
            header.refuse("quality of service", "PBS has none", "say a queue")
        if job.requeue:
            header.refuse(
                "requeue", "PBS lets only operators requeue a job", "submit the script again"
            )
        header.extra(job.directives)
        return [*header.lines(), CHANGE_FOLDER]

    def output_files(self, job: Job, job_id: str) -> tuple[str, ...]:
        """What was asked for; ``NAME.o123``, without the server's name, where PBS names it."""
        folder, slash, name = (job.output or "").rpartition("/")
        if ID in name:
            return (f"{folder}{slash}{job.name}.o{job_id.partition('.')[0]}",)
        return shares.output_files(job, job_id)

    def start(self, group: Start) -> str:
        """See :func:`taskgraph_workers.schedulers.shares.start`."""
        return shares.start(group)

    def submit(self, script: str, text: str) -> Command:
        """``qsub SCRIPT``."""
        return Command(("qsub", script))

    def test(self, script: str, text: str) -> Command | None:
        """PBS answers no such question."""
        return None

    def submitted(self, answer: Answer) -> str:
        """The id, with the server's name: ``123.server``."""
        lines = answer.stdout.split()
        if answer.exit_code == 0 and lines and _ID.fullmatch(lines[-1]):
            return lines[-1]
        raise SchedulerError(Problem(f"qsub did not take the job: {shares.said(answer)}"))

    def find(self, name: str) -> Command:
        """Asks for this user's jobs of this name that are not over; see :meth:`found`."""
        return Command(("sh", "-c", _FIND, "qselect", name))

    def found(self, name: str, answer: Answer) -> tuple[str, ...]:
        """Their ids. Raises SchedulerError where nobody can tell."""
        if answer.exit_code != 0:
            raise shares.untold("PBS", "jobs", answer)
        return tuple(line for line in answer.stdout.split() if _ID.fullmatch(line))

    def poll(self, job: str) -> Command:
        """``qstat -f``, with the site's history if it keeps one."""
        return Command(("sh", "-c", _ASK, "qstat", job))

    def state(self, job: str, answer: Answer) -> State:
        """How it is. Raises SchedulerError where nobody can tell."""
        # A long value goes on in a line that begins with a tab.
        said = dict(_ATTRIBUTE.findall(answer.stdout.replace("\n\t", "")))
        state = said.get("job_state", "")
        if not state and _GONE.search(answer.stderr):
            return State("unknown")
        if not state:
            raise shares.untold("PBS", f"job {job}", answer)
        nodes, comment = said.get("exec_host", ""), said.get("comment", "").strip()
        if state in _PENDING:
            return State("pending", comment or state)
        if state in _RUNNING:
            return State("running", comment or state, nodes)
        if state not in _ENDED:
            return State("unknown", state, nodes)
        code = said.get("Exit_status", said.get("exit_status"))
        reason = comment or f"exit status {code}"
        return State("ended", reason, nodes, None if code is None else code == "0")

    def end(self, job: str) -> Command | None:
        """None: ``qsig`` signals all processes of a job."""
        return None

    def cancel(self, job: str) -> Command:
        """``qdel``."""
        return Command(("qdel", job))

    def look(self) -> Command | None:
        """``pbsnodes -a``."""
        return Command(("pbsnodes", "-a"))

    def kinds(self, answer: Answer) -> tuple[Kind, ...]:
        """Kinds of node; of several queues only where a node is bound to one."""
        counts: Counter[Kind] = Counter()
        for block in re.split(r"\n\s*\n", answer.stdout) if answer.exit_code == 0 else ():
            have = dict(_ATTRIBUTE.findall(block.replace("\n\t", "")))
            cores = _number(have.get("resources_available.ncpus", ""))
            if not cores or {"offline", "down"} & set(have.get("state", "").split(",")):
                continue
            gpus = _number(have.get("resources_available.ngpus", ""))
            memory = _mib(have.get("resources_available.mem", ""))
            queue = have.get("queue", "")
            counts[Kind(queue, 0, cores, gpus, memory, default=not queue)] += 1
        return tuple(kind._replace(nodes=nodes) for kind, nodes in counts.items())


def _name(header: quoting.Directives, name: str) -> None:
    if _NAME.fullmatch(name):
        header.add("job name", "-N ", name)
    else:
        header.refuse(
            "job name",
            f"PBS can't have {name!r}",
            "begin with a letter, and go on with letters, digits, '_', '.', '+' and '-'",
        )


def _select(header: quoting.Directives, job: Job) -> None:
    parts = [f"select={job.nodes}"]
    parts += [f"ncpus={job.cores}"] if job.cores else []
    # One line for each chunk in the file of nodes, which the script counts on.
    parts += ["mpiprocs=1"]
    parts += [f"ngpus={job.gpus}"] if job.gpus else []
    parts += [f"mem={job.memory_mib}mb"] if job.memory_mib else []
    if job.constraint is not None and _RESOURCE.fullmatch(job.constraint):
        parts.append(job.constraint)
    elif job.constraint is not None:
        what = f"{job.constraint!r} is no resource of a chunk"
        header.refuse("constraint", what, "write NAME=VALUE, or a directive #PBS -l ...")
    header.plain(f"-l {':'.join(parts)}")


def _output(header: quoting.Directives, output: str | None) -> None:
    if output is None:
        return
    folder, slash, name = output.rpartition("/")
    if ID in folder:
        header.refuse("output", f"PBS can't put a job's id into {output!r}")
    elif ID in name:
        header.add("output", "-o ", folder + slash if slash else None)
    else:
        header.add("output", "-o ", output)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _mib(text: str) -> int | None:
    """A size of PBS's, rounded down.

    >>> _mib("2097152kb"), _mib("4gb"), _mib("")
    (2048, 4096, None)
    """
    found = re.fullmatch(r"(\d+)([kmgt]b)", text.strip().lower(), re.ASCII)
    return int(found[1]) * _UNITS_KIB[found[2]] // 1024 if found else None


SCHEDULER = Pbs()
