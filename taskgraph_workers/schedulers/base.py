"""What a batch scheduler is to us: directives, shell functions, and commands with their answers.

Every method of a scheduler is pure: it renders text and commands, and reads answers. None runs
anything; :func:`taskgraph_workers.schedulers.run.run` does, for all of them.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from taskgraph_workers.errors import WorkersError

#: Where the job's id goes in the name of its output file, whatever the scheduler calls it.
ID = "{id}"


class SchedulerError(WorkersError):
    """A job that this scheduler can't be given, or an answer of it that says no."""


class Job(NamedTuple):
    """What a batch job asks for. What is None is left to the scheduler's own default.

    ``cores``, ``gpus`` and ``memory_mib`` are those of one node. ``output`` may hold ``{id}``.
    ``directives`` are lines of the scheduler's own, as they are, and last.
    """

    name: str = "workers"
    nodes: int = 1
    output: str | None = None
    queue: str | None = None
    bank: str | None = None
    walltime_s: int | None = None
    cores: int | None = None
    gpus: int | None = None
    memory_mib: int | None = None
    exclusive: bool = True
    reservation: str | None = None
    qos: str | None = None
    constraint: str | None = None
    requeue: bool = False
    directives: tuple[str, ...] = ()


class Start(NamedTuple):
    """One group of workers, as a script starts it.

    ``per_node`` says how many go on each node of the allocation, in its order. ``command`` is a
    line for bash; WORKER_NAME is in its environment. A worker that ``holds`` keeps ``cores``,
    ``gpus`` and ``memory_mib`` for as long as it lives, and they are bound to it. One that
    doesn't holds nothing: its tasks bring a launcher of their own, which asks for ``task_gpus``
    GPUs on each node (None: its tasks differ, and say it themselves). ``task_nodes`` is on how
    many nodes a task runs that doesn't say it itself (None: as its launcher has it; they differ).
    """

    name: str
    per_node: tuple[int, ...]
    command: str
    holds: bool = False
    cores: int = 1
    gpus: int = 0
    memory_mib: int | None = None
    task_gpus: int | None = 0
    task_nodes: int | None = None

    @property
    def number(self) -> int:
        """How many workers these are."""
        return sum(self.per_node)


class Command(NamedTuple):
    """A command to run: its words, and what it reads from standard input.

    Environment variables whose names start with one of ``without`` are kept from it: variables
    such as SBATCH_PARTITION override what a script's own directives say.
    """

    argv: tuple[str, ...]
    stdin: str | None = None
    without: tuple[str, ...] = ()


class Answer(NamedTuple):
    """What a command said. An exit code of None: it could not be started, or it hung.

    Of one that ``hung``, and was killed for that, nobody knows what it has done.
    """

    exit_code: int | None
    stdout: str = ""
    stderr: str = ""
    hung: bool = False


class State(NamedTuple):
    """How a job is: ``pending``, ``running``, ``ended``, or ``unknown`` (nobody knows it).

    ``reason`` is the scheduler's own word for it (``PartitionTimeLimit``, ``TIMEOUT``);
    ``succeeded`` is None until it ended, and where nothing tells.
    """

    phase: str
    reason: str = ""
    nodes: str = ""
    succeeded: bool | None = None


class Kind(NamedTuple):
    """Alike nodes that a scheduler has: how many, what each has, and the longest job there."""

    queue: str
    nodes: int
    cores: int
    gpus: int = 0
    memory_mib: int | None = None
    limit_s: int | None = None
    default: bool = False


class Scheduler(Protocol):
    """A batch scheduler. Its file is data and pure functions.

    ``shell`` is bash that defines, for the script around it
    (:mod:`taskgraph_workers.launch.script`), what is below. Whatever else it defines begins with
    ``tw_`` as well, since lines of the user's run in the same shell.

    - ``tw_job_id``: a function that prints the job's id.
    - ``tw_start_group``: starts one group in the background, and adds the process ids of what it
      started to the array ``tw_pids``. The words behind it are what :meth:`start` writes.
    - ``tw_end_workers``: asks every worker, by a TERM to its main process alone, to end once its
      task is done, and returns at once. What has to end with the script goes into ``tw_asking``.
    - ``tw_clear_nodes``, if it has to: takes away what is left on nodes where all workers have
      ended;
    - ``tw_requeue_job``: puts the job back into its queue; ``tw_restarts`` prints how often that
      was.
    """

    @property
    def name(self) -> str:
        """``slurm``: as a configuration says it."""

    @property
    def extension(self) -> str:
        """``sbatch``: what names of its scripts end in."""

    @property
    def tool(self) -> str:
        """The command that tells that this machine has it."""

    @property
    def tested(self) -> bool:
        """Whether our scripts have run on a real one."""

    @property
    def settles_late(self) -> bool:
        """Whether it takes jobs that can never run, and ends them a moment later."""

    @property
    def starts_flux(self) -> str | None:
        """What starts Flux on all nodes of a job, as words for bash before a command of Flux's.

        None where it can't; nothing (``""``) where a job is in an instance of Flux already.
        """

    @property
    def shell(self) -> str:
        """Bash functions for the script: see the class."""

    def header(self, job: Job) -> list[str]:
        """The directive lines; lines for bash among them come behind the script's comment.

        Raises SchedulerError with every value that can't stand in one.
        """

    def output_files(self, job: Job, job_id: str) -> tuple[str, ...]:
        """The names that the job's output file may have, the likeliest first; none: not known."""

    def start(self, group: Start) -> str:
        """The line of the script that starts this group."""

    def submit(self, script: str, text: str) -> Command:
        """Submits the script (its absolute path; its text, for schedulers that read it)."""

    def test(self, script: str, text: str) -> Command | None:
        """Asks whether it would be accepted; None where there is no such question."""

    def submitted(self, answer: Answer) -> str:
        """The job's id. Raises SchedulerError with what was said instead."""

    def find(self, name: str) -> Command:
        """Asks for this user's jobs of this name, or for all of them."""

    def found(self, name: str, answer: Answer) -> tuple[str, ...]:
        """The ids of those of this name. Raises SchedulerError where nobody can tell."""

    def poll(self, job: str) -> Command:
        """Asks how a job is."""

    def state(self, job: str, answer: Answer) -> State:
        """How it is. Raises SchedulerError for an answer that says nothing of any job."""

    def end(self, job: str) -> Command | None:
        """Tells the script alone to end its workers warmly; None where only a file can."""

    def cancel(self, job: str) -> Command:
        """Ends the job at once."""

    def look(self) -> Command | None:
        """Asks what nodes there are; None where that can't be told."""

    def kinds(self, answer: Answer) -> tuple[Kind, ...]:
        """The nodes there are; none where the answer says nothing."""
