"""Runs jobs on this machine, each under a supervisor that outlives the dispatcher.

What is true is in files (:mod:`.folder`): any dispatcher can ask, at any time, also after the
machine was started anew. Whoever asks about a job that nobody watches over, and that has not ended,
starts its supervisor; that one alone decides what becomes of the job. Only so many jobs have one at
once (:mod:`.slots`); whoever asks about one that waits starts those whose turn it is.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Callable

from taskgraph_workers import detect
from taskgraph_workers.dispatch.executors import folder as files
from taskgraph_workers.dispatch.executors import processes, told
from taskgraph_workers.dispatch.executors.base import Impossible, Portion, Unreachable
from taskgraph_workers.dispatch.executors.engines import Engines, Place, Way, way_of
from taskgraph_workers.dispatch.executors.folder import Folder
from taskgraph_workers.dispatch.executors.slots import Slots, Ticket
from taskgraph_workers.dispatch.executors.supervisor import STUCK
from taskgraph_workers.dispatch.failpoints import reach
from taskgraph_workers.dispatch.model import MOST_FACTS, Job, Progress, Status
from taskgraph_workers.implementations import words_before
from taskgraph_workers.model import LOCAL, Dispatch

#: How long a trainer has, from when it is asked to end until it is killed.
GRACE_S = 30

_KEY = re.compile(r"[a-z2-7]{26}")

# What a supervisor says to an engine, besides the start.
_WORDS = ("fetch", "stop", "discard", "remove", "exists", "inspect", "wait", "top")
_UNREADABLE = (OSError, ValueError)

# Its own code and the standard library, whatever the environment says and the folder holds.
_BOOT = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from taskgraph_workers.dispatch.executors.supervisor import main; main(sys.argv[2:])"
)
_ROOT = os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
)


class LocalExecutor:
    """An executor, as :class:`taskgraph_workers.dispatch.executors.base.Executor` says."""

    name = LOCAL
    ephemeral = False

    #: How long a supervisor may take to say how it stands; it goes on all the same.
    answer_s = 15.0

    #: How long it waits at first where an engine could not start a container.
    rest_s = 2.0

    def __init__(
        self,
        state: str | os.PathLike[str],
        dispatch: Dispatch,
        environ: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.time,
        grace_s: int = GRACE_S,
    ) -> None:
        self.jobs = os.path.join(os.path.abspath(state), files.JOBS)
        self.slots = Slots(self.jobs, dispatch.at_once)
        self.dispatch = dispatch
        self.environ = environ
        self.clock = clock
        self.grace_s = grace_s
        self.machine = socket.gethostname()
        self.engines = Engines(environ, clock)

    # --- submit ---

    def submit(self, job: Job) -> str:
        """Start a job, or have it wait for its turn; its handle, which is its key."""
        found = self._folder(job.key)
        if found is None:
            raise Impossible("the job's key is none")
        try:
            if not found.has(files.JOB):
                self._make(job, found)
            reach("local-made")
            if not self._is_watched(found):
                self._queue(found, job.key)
                self._advance(job.key)
        except (OSError, ValueError) as error:
            raise Unreachable(f"the job can't be started on this machine: {error}") from None
        reach("local-started")
        return job.key

    def _make(self, job: Job, found: Folder) -> None:
        """Put a job's folder there, complete; no matter if somebody else is faster."""
        place = Place(
            found.at(files.PROGRESS),
            found.at(files.ENV),
            found.at(files.CONTAINER),
            found.at(files.IMAGE),
            self.grace_s,
        )
        way = way_of(job, self.dispatch, place, self.engines)
        os.makedirs(self.jobs, mode=0o700, exist_ok=True)
        new = Folder(tempfile.mkdtemp(prefix=f".{job.key}-", dir=self.jobs))
        try:
            os.mkdir(new.at(files.PROGRESS))
            # A container's user is any. Nobody else gets here: the folder above is private.
            os.chmod(new.at(files.PROGRESS), 0o777)
            if way.file:
                _write_text(new.at(files.ENV), way.file)
            new.write(files.JOB, self._told(job, way, found))
            reach("local-prepared")
            os.rename(new.path, found.path)
            files.sync(self.jobs)
        except OSError:
            shutil.rmtree(new.path, ignore_errors=True)
            if not found.has(files.JOB):
                raise

    def _told(self, job: Job, way: Way, found: Folder) -> dict[str, Any]:
        """What a supervisor has to know."""
        return {
            "version": files.VERSION,
            "key": job.key,
            "at": self.clock(),
            "machine": self.machine,
            "argv": [*_prelude(job, way), *way.argv],
            "env": dict(way.env),
            "prefix": way.prefix,
            "cwd": os.getcwd(),
            "progress_at": way.progress_at,
            "max_run_time_s": job.max_run_time_s,
            "retries": job.retries,
            "grace_s": self.grace_s,
            "rest_s": self.rest_s,
            "engine": way.engine,
            "id_file": found.at(files.CONTAINER),
            **{name: list(getattr(way, name)) for name in _WORDS},
        }

    def _queue(self, found: Folder, key: str) -> None:
        """Have a job wait for its turn; one that has begun has had it."""
        job = found.read(files.JOB) or {}
        self.slots.join(key, job.get("at", 0.0), has_slot=bool(found.runs()))
        reach("local-queued")

    def _advance(self, key: str = "") -> None:
        """Start those whose turn it is, and what else has a slot and nobody watches over.

        Raises OSError where that fails for this key.
        """
        for each in self.slots.advance():
            reach("local-slot-given")
            found = Folder(os.path.join(self.jobs, each))
            with contextlib.nullcontext() if each == key else contextlib.suppress(*_UNREADABLE):
                if not self._is_watched(found):
                    self._start(found)

    def _start(self, found: Folder) -> str:
        """Start a supervisor; what it says, empty if it said nothing in time.

        Raises OSError where it can't be started, or broke off.
        """
        says, told = _pipe()
        try:
            with open(found.at(files.LOG), "ab") as log:
                process = subprocess.Popen(
                    [
                        sys.executable,
                        "-I",
                        "-S",
                        "-X",
                        "utf8",
                        "-c",
                        _BOOT,
                        _ROOT,
                        found.path,
                        str(told),
                    ],
                    env=dict(self.environ),
                    cwd=os.sep,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    pass_fds=(told,),
                )
        finally:
            os.close(told)
        with open(says, "rb") as opened:
            if process.wait() == 0 and not select.select([opened], [], [], self.answer_s)[0]:
                return ""
            said = opened.read().decode()
        if not said:
            raise OSError(f"its supervisor broke off: see {found.at(files.LOG)}")
        return said

    # --- what there is ---

    def find(self, key: str) -> str | None:
        """The handle of a key's job; None if there is none."""
        found = self._folder(key)
        try:
            return key if found is not None and found.has(files.JOB) else None
        except OSError as error:
            raise Unreachable(f"the folder of jobs can't be read: {error}") from None

    def poll(self, handles: Iterable[str]) -> dict[str, Status]:
        """How jobs are. One that nobody watches over is taken care of first."""
        try:
            tickets = self.slots.tickets()
        except OSError as error:
            unknown = Status("unknown", reason=f"the folder of jobs can't be read: {error}")
            return dict.fromkeys(handles, unknown)
        statuses = {handle: self._status(handle, tickets) for handle in handles}
        waits = any(not each.has_slot for each in tickets.values())
        if waits or any(each.phase == "queued" for each in statuses.values()):
            with contextlib.suppress(*_UNREADABLE):
                self._advance()
        return statuses

    def _status(self, handle: str, tickets: Mapping[str, Ticket]) -> Status:
        found = self._folder(handle)
        try:
            if found is None or not found.has(files.JOB):
                return self._missing(found)
            if found.has(files.EXIT):
                return self._read(found, "")
            if handle not in tickets:
                self._queue(found, handle)
                self.slots.advance()
                tickets = self.slots.tickets()
            if self._is_watched(found):
                return self._read(found, "")
            if not (tickets[handle].has_slot or found.has(files.CANCEL)):
                return Status("queued", reason=f"it waits: {self.slots.at_once} at once run here")
            return self._read(found, self._start(found))
        except (*_UNREADABLE, KeyError) as error:
            return Status("unknown", reason=f"its files can't be read: {error}")

    def _missing(self, found: Folder | None) -> Status:
        """How a job is that is not there: unknown where no job is, as on a disk that is gone."""
        if found is not None and not os.path.isdir(self.jobs):
            return Status("unknown", reason=f"the folder of jobs is gone: {self.jobs}")
        return Status("lost", reason="there is no such job on this machine")

    def _is_watched(self, found: Folder) -> bool:
        if found.has(files.EXIT):
            return True
        known = found.read(files.SUPERVISOR) or {}
        return processes.is_same(known.get("pid"), known.get("identity"))

    def _read(self, found: Folder, said: str) -> Status:
        ended = found.read(files.EXIT)
        runs = found.runs()
        machine = runs[-1]["machine"] if runs else None
        if ended is not None:
            return Status(
                ended["phase"], ended["run"], machine, ended["reason"], ended["exit_code"]
            )
        trouble = found.read(files.TROUBLE)
        if trouble is not None:
            return Status("queued", trouble["run"], machine, trouble["reason"])
        if not runs:
            return Status("queued")
        stuck = "what is left of a lost run can't be ended" if said == STUCK else ""
        return Status("running", runs[-1]["run"], machine, stuck)

    def progress(self, handle: str) -> Iterator[Progress]:
        """What became of the machine, run by run, and what trainers told."""
        mark, more = None, True
        while more:
            found = self.follow(handle, mark, MOST_FACTS)
            yield from found.facts
            mark, more = found.mark, found.more

    def follow(self, handle: str, mark: told.Mark | None, most: int) -> Portion:
        """Some of that, behind a mark."""
        found, mark = self._folder(handle), mark or told.Mark()
        try:
            if found is None or not found.has(files.JOB):
                return Portion((), mark)
            return told.portion(self._runs(found), mark, most, self.clock())
        except (OSError, ValueError, KeyError) as error:
            raise Unreachable(f"the progress of a job can't be read: {error}") from None

    def _runs(self, found: Folder) -> list[told.Run]:
        ended, runs = found.read(files.EXIT), found.runs()
        gone = [each["at"] for each in runs[1:]] + [ended["at"] if ended else None]
        folder = found.at(files.PROGRESS)
        names = [os.path.join(folder, files.progress_name(run)) for run in range(len(runs))]
        return [
            told.Run(each["machine"], each["at"], end, name)
            for each, end, name in zip(runs, gone, names)
        ]

    # --- the end ---

    def cancel(self, handle: str) -> None:
        """Ask for a job to end: its supervisor looks, now or when it is there again."""
        found = self._folder(handle)
        try:
            if found is None or not found.has(files.JOB) or found.has(files.EXIT):
                return
            if not found.has(files.CANCEL):
                found.write(files.CANCEL, {"at": self.clock()})
            known = found.read(files.SUPERVISOR)
        except (OSError, ValueError) as error:
            raise Unreachable(f"the job can't be canceled: {error}") from None
        if known is not None and isinstance(known.get("pid"), int):
            processes.signal_same(known["pid"], known.get("identity", ""), signal.SIGUSR1)

    def release(self, handle: str) -> None:
        """Nothing is held once a job has ended: its folder stays, and answers for its key."""

    def _folder(self, key: str) -> Folder | None:
        """A key's folder; None for what is no key, and so must not become a path."""
        return Folder(os.path.join(self.jobs, key)) if _KEY.fullmatch(key) else None


def _prelude(job: Job, way: Way) -> list[str]:
    """What finds out, on this machine and before the trainer, what only the machine knows.

    It does so outside of a container, which takes the values from its client's environment.
    """
    text = detect.prelude({name: detect.parse(raw) for name, raw in job.detect.items()})
    if way.prefix:
        text += "".join(f'export {way.prefix}{name}="${name}"\n' for name in sorted(job.detect))
    return words_before(text)


def _pipe() -> tuple[int, int]:
    """A pipe whose ends are none of the three of which a new process gets others.

    They would be, where this process was started without standard input or output.
    """
    low = os.pipe()
    try:
        says, told = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3) for end in low)
    finally:
        for end in low:
            os.close(end)
    return says, told


def _write_text(path: str, text: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(handle, "w", encoding="utf-8") as opened:
        opened.write(text)
        opened.flush()
        os.fsync(opened.fileno())
