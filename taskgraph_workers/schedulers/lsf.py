"""LSF (``bsub``, 10.1), from its documentation: nothing here has run on a real LSF.

There are two shapes. A machine that has ``jsrun`` belongs to a CORAL system (CSM): a job asks for
nodes (``-nnodes``), all of each, and its script runs on a launch node that isn't counted. Elsewhere
a job asks for slots, so many on each host (``span[ptile]``), and its script runs on the first of
them. :func:`here` looks which of both this machine is, and ``SCHEDULER`` is that; the script itself
looks for ``jsrun`` once more.

**Workers.** On ordinary LSF ``blaunch`` starts each node's share, with the environment carried in
a file. Workers that hold are bound there: CUDA_VISIBLE_DEVICES gets the worker's part of what the
job may see on the node, counted over all groups (and -1 for none), ``taskset`` its part of the
cores. On CSM they are resource sets of one ``jsrun``, which binds them and places them itself, at
most as many on a node as the layout has on any; workers that hold nothing stay on the launch
node, since a jsrun can't run inside of another.

**A bank** is ``-P`` (project), and on CSM ``-G`` (user group), as the sites have it that Merlin's
adapter was written for. ``brequeue`` puts a job back; ``-r`` lets LSF do so when a host fails.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass

from taskgraph_workers import units
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

_SUBMITTED = re.compile(r"Job <(\d+)> is submitted to ")
_PENDING = ("PEND", "PSUSP", "PROV", "WAIT")
_RUNNING = ("RUN", "USUSP", "SSUSP")
_FIELDS = "stat exec_host exit_code delimiter='|'"


@dataclass(frozen=True)
class Lsf:
    """See the module, and :class:`~taskgraph_workers.schedulers.base.Scheduler`."""

    csm: bool
    name = "lsf"
    extension = "lsf"
    tool = "bsub"
    tested = False
    settles_late = False
    starts_flux = "jsrun -r 1 -a 1 -c ALL_CPUS -g ALL_GPUS --bind=none"

    @property
    def shell(self) -> str:
        """``share.sh``, ``carry.sh`` and ``lsf.sh``."""
        return shares.shell("carry", "lsf")

    def header(self, job: Job) -> list[str]:
        """``#BSUB`` lines."""
        header = quoting.Directives("#BSUB", quoting.lsf_value)
        header.add("job name", "-J ", job.name)
        if self.csm:
            header.add("nodes", "-nnodes ", job.nodes)
        else:
            _slots(header, job)
        if job.walltime_s is not None:
            header.plain(f"-W {units.hours_ceil_minute(job.walltime_s)}")
        header.add("queue", "-q ", job.queue)
        header.add("bank", "-G " if self.csm else "-P ", job.bank)
        header.add("output", "-o ", shares.output(job, "%J"))
        header.add("reservation", "-U ", job.reservation)
        if job.constraint is not None:
            header.add("constraint", "-R ", f"select[{job.constraint}]")
        if job.qos is not None:
            header.refuse("quality of service", "LSF has none", "#BSUB -sla NAME may be meant")
        if job.requeue:
            header.plain("-r")
        header.extra(job.directives)
        return header.lines()

    def output_files(self, job: Job, job_id: str) -> tuple[str, ...]:
        """See :func:`taskgraph_workers.schedulers.shares.output_files`; %J is LSF's own word."""
        return tuple(file.replace("%J", job_id) for file in shares.output_files(job, job_id))

    def start(self, group: Start) -> str:
        """See :func:`taskgraph_workers.schedulers.shares.start`."""
        return shares.start(group)

    def submit(self, script: str, text: str) -> Command:
        """``bsub < script``: what is named as an argument is not read everywhere."""
        return Command(("bsub",), stdin=text)

    def test(self, script: str, text: str) -> Command | None:
        """LSF answers no such question."""
        return None

    def submitted(self, answer: Answer) -> str:
        """The number of ``Job <123> is submitted to queue <normal>.``"""
        found = _SUBMITTED.search(answer.stdout)
        if answer.exit_code == 0 and found:
            return found[1]
        text = shares.said(answer)
        raise SchedulerError(Problem(f"bsub did not take the job: {text}"))

    def find(self, name: str) -> Command:
        """Asks for this user's jobs that are not over; see :meth:`found`."""
        return Command(("bjobs", "-noheader", "-o", "jobid job_name delimiter='|'"))

    def found(self, name: str, answer: Answer) -> tuple[str, ...]:
        """The ids of those of this name. Raises SchedulerError where nobody can tell."""
        nobody = "No unfinished job found" in answer.stderr
        if answer.exit_code != 0 and not nobody:
            raise shares.untold("LSF", "jobs", answer)
        rows = [line.strip().partition("|") for line in answer.stdout.splitlines()]
        return tuple(job for job, _, said in rows if said == name)

    def poll(self, job: str) -> Command:
        """``bjobs``, which knows a job for an hour after its end (CLEAN_PERIOD)."""
        return Command(("bjobs", "-a", "-noheader", "-o", _FIELDS, job))

    def state(self, job: str, answer: Answer) -> State:
        """How it is. Raises SchedulerError where nobody can tell."""
        if "is not found" in answer.stderr:
            return State("unknown")
        fields = [field.strip() for field in answer.stdout.strip().split("|")]
        if answer.exit_code != 0 or len(fields) != 3:
            raise shares.untold("LSF", f"job {job}", answer)
        status, hosts, code = fields
        nodes = "" if hosts == "-" else hosts
        if status in _PENDING:
            return State("pending", status)
        if status in _RUNNING:
            return State("running", status, nodes)
        if status in ("DONE", "EXIT"):
            reason = f"{status} {code}" if code not in ("", "-", "0") else status
            return State("ended", reason, nodes, status == "DONE")
        return State("unknown", status, nodes)

    def end(self, job: str) -> Command | None:
        """None: ``bkill -s`` signals all processes of a job."""
        return None

    def cancel(self, job: str) -> Command:
        """``bkill``."""
        return Command(("bkill", job))

    def look(self) -> Command | None:
        """None: ``lshosts`` tells cores and memory, but GPUs in some versions only."""
        return None

    def kinds(self, answer: Answer) -> tuple[Kind, ...]:
        """None are known."""
        return ()


def _slots(header: quoting.Directives, job: Job) -> None:
    """As many slots on each host as it has cores to give; one, where nobody knows."""
    cores = job.cores or 1
    header.plain(f"-n {job.nodes * cores}")
    header.plain(f'-R "span[ptile={cores}]"')
    if job.exclusive:
        header.plain("-x")
    elif job.memory_mib is not None:
        header.plain(f'-R "rusage[mem={job.memory_mib}MB/host]"')
    if job.gpus:
        header.plain(f'-gpu "num={job.gpus}"')


def here() -> Lsf:
    """LSF as this machine has it."""
    return Lsf(csm=shutil.which("jsrun") is not None)


SCHEDULER = here()
