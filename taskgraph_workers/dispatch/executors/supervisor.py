"""Watches over one job on this machine, from its start to its end, whatever becomes of others.

Started by :mod:`.local` as a process of its own, detached from whoever started it. Whoever starts a
second one for the same job does no harm: it finds the lock held, or the job ended, and is done.

It promises that a job's trainer runs once, and a second time only where the machine, or the
supervisor, was lost before the first had ended, and ``retries`` are left. Before that it ends all
that is left of the lost run; if it can't, nothing new is started.

Only the standard library is imported here, and little of it: see ``_start`` in :mod:`.local`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from taskgraph_workers.dispatch.executors import folder as files
from taskgraph_workers.dispatch.executors import processes, starts
from taskgraph_workers.dispatch.executors.containers import (
    ALIVE,
    ENGINE_S,
    OVER,
    QUIET,
    quiet,
    state_of,
)
from taskgraph_workers.dispatch.executors.folder import Folder, progress_name, run_name
from taskgraph_workers.dispatch.failpoints import reach

#: What a supervisor tells whoever started it.
CLAIMED, HELD, ENDED, STUCK = "claimed", "held", "ended", "stuck"

#: The one variable whose value an engine is expected to repeat.
IMAGE = "TRAINING_IMAGE"

#: What tells the processes of one run from all others: every run has a value of its own.
MARK = "TASKGRAPH_WORKERS_RUN"

# How often the marker of a cancellation is looked for.
_LOOK_S = 1.0
# When a machine shuts down, trainer and supervisor are told in any order.
_BOTH_S = 0.5
# That the program is not there, or can't be one, is the job's fault; the rest is the machine's.
_NEVER = {
    errno.ENOENT: 127,
    errno.ENOTDIR: 127,
    errno.EACCES: 126,
    errno.ENOEXEC: 126,
    errno.E2BIG: 126,
    errno.EISDIR: 126,
    errno.EINVAL: 126,
}


class Supervisor:
    """One job, under way."""

    def __init__(self, folder: Folder, tell: int) -> None:
        self.folder = folder
        self.told = tell
        self.shutdown = False
        self.wake, wakes = os.pipe()
        for end in (self.wake, wakes):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        # Functions, since what is ignored here would be ignored by the trainer, too.
        for number in (signal.SIGCHLD, signal.SIGUSR1, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        signal.signal(signal.SIGTERM, self._terminated)

    def _terminated(self, *_: Any) -> None:
        self.shutdown = True

    def tell(self, word: str) -> None:
        """Tell whoever started this, once."""
        if self.told >= 0:
            with contextlib.suppress(OSError):
                os.write(self.told, word.encode())
            os.close(self.told)
            self.told = -1

    def sleep(self, seconds: float) -> None:
        """Wait, but not past a signal."""
        select.select([self.wake], [], [], max(0.0, seconds))
        try:
            while os.read(self.wake, 512):
                pass
        except BlockingIOError:
            pass

    # --- the claim ---

    def run(self) -> None:
        """Bring the job forward as far as can be."""
        lock = self.folder.lock(files.LOCK)
        if lock is None:
            return self.tell(HELD)
        reach("supervisor-locked")
        if self.folder.has(files.EXIT):
            return self.tell(ENDED)
        job = self.folder.read(files.JOB)
        if job is None or job["version"] != files.VERSION:
            raise ValueError("job.json is none that this version can read")
        me = os.getpid()
        self.folder.write(files.SUPERVISOR, {"pid": me, "identity": processes.identity(me)})
        runs = self.folder.runs()
        if not runs:
            return self._next(job, 0, self.folder.lock(files.TRAINING))
        last = len(runs) - 1
        # A machine that went down took the container with it, whatever the engine says of it now.
        here = job["exists"] and runs[last]["boot"] == processes.boot()
        if here and state_of(job)[0] in ALIVE | OVER:
            self.tell(CLAIMED)
            since = time.time() - runs[last]["at"]
            return Training(self, job, last, -1, since).adopt()
        return self._next(job, last + 1, self._after_lost(job, last))

    def _next(self, job: Mapping[str, Any], run: int, training: int | None) -> None:
        """Begin a run, if there is to be one; ``training`` is its lock, if that was to be had."""
        if training is None:
            return self.tell(STUCK)
        if self.folder.has(files.CANCEL):
            return self._canceled(run if self.folder.has(files.TROUBLE) else max(0, run - 1))
        if run > job["retries"]:
            return self.end(run - 1, "lost", None, "its supervisor, or the machine, was lost")
        for tries in range(1, starts.MOST + 1):
            why = self._begin(job, run, training)
            if not why:
                return None
            if tries == starts.MOST:
                return self.end(run, "failed", None, why)
            if not self._may_try_again(run, why, starts.rest_s(tries, job["rest_s"])):
                break
        return None

    def _begin(self, job: Mapping[str, Any], run: int, training: int) -> str:
        """Begin a run, and look after it to its end; else why its engine could not start it."""
        if self.folder.has(files.TROUBLE):
            self.folder.remove(files.TROUBLE)
        marker = {"run": run, "at": time.time(), "machine": job["machine"]}
        self.folder.write(run_name(run), {**marker, "boot": processes.boot()})
        reach("run-claimed")
        self.tell(CLAIMED)
        return Training(self, job, run, training).run()

    def _may_try_again(self, run: int, why: str, rest_s: float) -> bool:
        """Wait a while where nothing was started; whether nobody wants the job to end since."""
        self.folder.remove(run_name(run))  # so nothing is lost, whoever is killed now
        self.folder.write(files.TROUBLE, {"reason": why, "run": run})
        until = time.monotonic() + rest_s
        while not self.shutdown:
            if self.folder.has(files.CANCEL):
                self._canceled(run)
                return False
            left = until - time.monotonic()
            if left <= 0:
                return True
            self.sleep(min(_LOOK_S, left))
        return False

    def _canceled(self, run: int) -> None:
        """It ends with the last run that anybody may know of."""
        self.end(run, "canceled", None, "" if self.folder.runs() else "it never ran")

    def _after_lost(self, job: Mapping[str, Any], run: int) -> int | None:
        """End all that is left of a lost run. The lock of the training; None where that failed."""
        until = time.monotonic() + ENGINE_S
        while time.monotonic() < until:
            processes.kill_all_with(MARK, self.mark_of(run))
            if not self._removed(job):
                break
            held = self.folder.lock(files.TRAINING)
            if held is not None:
                return held
            time.sleep(0.1)
        print(f"something of run {run} is still there, and can't be ended", file=sys.stderr)
        return None

    def _removed(self, job: Mapping[str, Any]) -> bool:
        """Remove the container of a job, if it is one; whether there surely is none."""
        if not job["remove"]:
            return True
        quiet(job["remove"], ENGINE_S)
        there = quiet(job["exists"], ENGINE_S)
        return there is not None and there.returncode == 0 and not there.stdout.strip()

    def mark_of(self, run: int) -> str:
        """What the processes of a run have in their environment."""
        return self.folder.at(run_name(run))

    def end(self, run: int, phase: str, code: int | None, reason: str) -> None:
        """Write down how the job ended."""
        ended = {"phase": phase, "run": run, "exit_code": code, "reason": reason, "at": time.time()}
        while not self._written(ended):
            self.sleep(_LOOK_S)
        reach("exit-written")
        self.tell(ENDED)

    def _written(self, ended: Mapping[str, Any]) -> bool:
        """Write down how it ended; False where that can't be now, as on a disk that is full.

        Giving up would have the next supervisor take it for lost.
        """
        try:
            self.folder.write(files.EXIT, ended)
        except OSError:
            if not self.folder.has(files.JOB):
                raise  # there is nothing left that anybody could ask
            return False
        return True


class Training:
    """One run of a job's trainer."""

    def __init__(
        self, over: Supervisor, job: Mapping[str, Any], run: int, lock: int, since_s: float = 0.0
    ) -> None:
        self.over, self.job, self.number, self.lock = over, job, run, lock
        self.why = ""
        self.never_began = False
        self.kill_at = float("inf")
        limit = job["max_run_time_s"]
        self.until = time.monotonic() + limit - since_s if limit else float("inf")

    def run(self) -> str:
        """Run it, and write down how it ended; else why its engine could not start it."""
        output = self.over.folder.at(files.OUTPUT)
        since = os.path.getsize(output) if os.path.exists(output) else 0
        try:
            process = self._start()
        except OSError as error:
            self._not_started(error)
            return ""
        reach("trainer-started")
        code = self._watch(process)
        if self.job["exists"]:
            code = self._container(code)
        processes.kill_group(process.pid, signal.SIGKILL)
        if self.never_began and not self.why:
            secrets = [value for name, value in self.job["env"].items() if name != IMAGE]
            said = starts.last_words(output, since, secrets)
            return f"{os.path.basename(self.job['exists'][0])} could not start it: {said}"
        self._over(code)
        return ""

    def adopt(self) -> None:
        """Go on where another supervisor was lost: an engine knows how its container is, or was."""
        self._over(self._container(0))

    def _over(self, code: int) -> None:
        """Write down how it ended, when nothing of it is left."""
        processes.kill_all_with(MARK, self.over.mark_of(self.number))
        reach("trainer-ended")
        if self.why == "shutdown" or self._both_told(code):
            return  # the machine goes down: whoever comes next decides
        self.over.end(self.number, *self._outcome(code))

    def _start(self) -> subprocess.Popen[bytes]:
        """The trainer: a session of its own, which holds the lock of the training."""
        job = self.job
        own = {
            "TRAINING_RUN": str(self.number),
            "TRAINING_PROGRESS_FILE": os.path.join(job["progress_at"], progress_name(self.number)),
        }
        said = {job["prefix"] + name: value for name, value in {**job["env"], **own}.items()}
        kept = processes.without_ours(os.environ)
        mark = {MARK: self.over.mark_of(self.number)}
        with open(self.over.folder.at(files.OUTPUT), "ab") as output:
            return subprocess.Popen(
                job["argv"],
                env={**kept, **said, **mark},
                cwd=job["cwd"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                pass_fds=(self.lock,),
            )

    def _not_started(self, error: OSError) -> None:
        code = _NEVER.get(error.errno or 0)
        if code is None:
            # Nothing was started, so nothing is lost: the next supervisor begins this run again.
            self.over.folder.remove(run_name(self.number))
            raise error
        what = error.filename or self.job["argv"][0]
        reason = f"{what} can't be started: {error.strerror}"
        return self.over.end(self.number, "failed", code, reason)

    def _watch(self, process: subprocess.Popen[bytes]) -> int:
        """Wait for a process; end it where it has to."""
        while True:
            code = process.poll()
            if code is not None:
                return code
            now = time.monotonic()
            self._look(process, now)
            if now >= self.kill_at:
                self.kill_at = now + ENGINE_S
                if self.job["remove"]:
                    quiet(self.job["remove"], ENGINE_S)
                processes.kill_group(process.pid, signal.SIGKILL)
            self.over.sleep(min(_LOOK_S, self.until - now, self.kill_at - now))

    def _look(self, process: subprocess.Popen[bytes], now: float) -> None:
        """Begin to end it, once, if somebody or something wants that."""
        if self.why:
            return
        if self.over.folder.has(files.CANCEL):
            self.why = "canceled"
        elif self.over.shutdown:
            self.why = "shutdown"
        elif now >= self.until:
            self.why = "overdue"
        else:
            return
        self.until = float("inf")
        self.kill_at = now + self.job["grace_s"]
        if self.job["stop"]:
            subprocess.Popen(self.job["stop"], **QUIET)
        else:
            processes.kill_group(process.pid, signal.SIGTERM)

    def _container(self, code: int) -> int:
        """How a container ended: its engine's client may end before it, for reasons of its own."""
        while True:
            there = quiet(self.job["exists"], ENGINE_S)
            if there is not None and there.returncode == 0:
                if not there.stdout.strip():
                    self.never_began = code == starts.FAILED
                    return code  # it never was, or was removed by force
                status, ended = state_of(self.job)
                if status in ALIVE:
                    self._watch(subprocess.Popen(self.job["wait"], **QUIET))
                elif status:
                    quiet(self.job["remove"], ENGINE_S)
                    # One that is only "created" was never started: the client knows why.
                    self.never_began = status not in OVER and code == starts.FAILED
                    return ended if status in OVER else code or 125
            self.over.sleep(_LOOK_S)

    def _both_told(self, code: int) -> bool:
        """Whether the machine goes down, so that the trainer was told to end before this was."""
        if not self.why and code in (-signal.SIGTERM, -signal.SIGKILL, 128 + signal.SIGTERM):
            until = time.monotonic() + _BOTH_S
            while not self.over.shutdown and time.monotonic() < until:
                self.over.sleep(until - time.monotonic())
            return self.over.shutdown
        return False

    def _outcome(self, code: int) -> tuple[str, int, str]:
        """Phase, exit code as a shell says it, and reason."""
        shown = code if code >= 0 else 128 - code
        if self.why == "canceled":
            return "canceled", shown, ""
        if self.why == "overdue":
            return "failed", shown, f"it ran longer than {self.job['max_run_time_s']} s"
        if code == 0:
            return "succeeded", 0, ""
        if code < 0:
            return "failed", shown, f"it was killed by {_signal_name(-code)}"
        return "failed", shown, f"it ended with exit code {shown}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def main(argv: Sequence[str]) -> None:
    """``FOLDER DESCRIPTOR``: watch over the job in a folder; tell how it stands by a descriptor.

    Returns at once in the process that was started: the work is done by a child, which nobody has
    to wait for.
    """
    path, tell = argv
    if os.fork():
        os._exit(0)
    Supervisor(Folder(path), int(tell)).run()
