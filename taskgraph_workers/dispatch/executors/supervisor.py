"""Watches over one job on this machine, from its start to its end, whatever becomes of others.

Started by :mod:`.local` as a process of its own, detached from whoever started it. Whoever starts a
second one for the same job does no harm: it finds the lock held, or the job ended, and is done.

It promises that a job's trainer runs once, and a second time only where the machine, or the
supervisor, was lost before the first had ended, and ``retries`` are left. Before that it ends all
that is left of the lost run; if it can't, nothing new is started.

It imports little, of the standard library and of this package alone: it is started for each job,
without what is installed besides (``_start`` in :mod:`.local`).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from taskgraph_workers.dispatch.executors import folder as files
from taskgraph_workers.dispatch.executors import processes, starts
from taskgraph_workers.dispatch.executors.containers import ENGINE_S, Container
from taskgraph_workers.dispatch.executors.folder import Folder, end_name, run_name
from taskgraph_workers.dispatch.executors.slots import Slots
from taskgraph_workers.dispatch.executors.training import (
    CLAIMED,
    LEFT,
    LOOK_S,
    LOST,
    MARK,
    NEVER,
    Became,
    Training,
)
from taskgraph_workers.dispatch.failpoints import reach

#: What else a supervisor tells whoever started it.
HELD, ENDED, STUCK = "held", "ended", "stuck"


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
            return self._go_on(job, 0, Became(NEVER))
        last = len(runs) - 1
        self._go_on(job, last, Training(self, job, last, -1).resume(runs[last]))

    def _go_on(self, job: Mapping[str, Any], run: int, became: Became) -> None:
        """Bring a job to its end, from what became of this run; none may have begun yet."""
        training: int | None = None
        tries, rest_s = 0, 0.0
        while became.phase in (NEVER, LOST.phase):
            is_lost = became.phase != NEVER
            if is_lost:
                # From here on it is, whoever goes on and whatever is said of it.
                self.folder.claim(end_name(run), {"lost": True})
            training = self._training(job, run, training, is_lost)
            if training is None:
                return self.tell(STUCK)
            if self.folder.has(files.CANCEL):
                return self._canceled(run + (is_lost and self.folder.has(files.TROUBLE)))
            if is_lost:
                run, tries = run + 1, 0
                if run > job["retries"]:
                    return self.end(run - 1, became)
            elif became.reason:
                tries += 1
                if tries == (starts.MOST if became.code is None else starts.MOST_REFUSED):
                    return self.end(run, replace(became, phase="failed"))
                rest_s = starts.rest_s(tries, job["rest_s"])
                self._rest(run, became.reason, rest_s)
            if not self._may_begin(run, rest_s):
                return None
            became = self._begin(job, run, training)
        return self.tell(STUCK) if became is LEFT else self.end(run, became)

    def _begin(self, job: Mapping[str, Any], run: int, training: int) -> Became:
        """Begin a run, and look after it; what became of it."""
        began = Training(self, job, run, training)
        fetched = began.fetch()
        if fetched is not None:
            return fetched
        self.folder.remove(files.TROUBLE)
        self.folder.remove(files.CONTAINER)
        marker = {"run": run, "at": time.time(), "machine": job["machine"]}
        since = {"boot": processes.boot(), "since": time.monotonic()}
        self.folder.write(run_name(run), {**marker, **since})
        reach("run-claimed")
        self.tell(CLAIMED)
        return began.run()

    def _rest(self, run: int, why: str, rest_s: float) -> None:
        """Say that nothing was started, and nothing will be for a while."""
        self.folder.remove(run_name(run))  # so nothing is lost, whoever is killed now
        self.folder.write(files.TROUBLE, {"reason": why, "run": run})
        self.folder.write(files.RESTING, {"at": time.time(), "rest_s": rest_s})

    def _may_begin(self, run: int, rest_s: float) -> bool:
        """Rest, and wait for a slot if others got its own meanwhile; whether it is still wanted.

        Also a supervisor that was started while it rested asks: the slot it had may be gone.
        """
        if not self.folder.has(files.RESTING):
            return True
        self.tell(CLAIMED)
        until = time.monotonic() + rest_s
        while not self.shutdown:
            if self.folder.has(files.CANCEL):
                self._canceled(run)
                return False
            left = until - time.monotonic()
            if left <= 0 and self._has_slot():
                return True
            self.sleep(min(LOOK_S, left) if left > 0 else LOOK_S)
        return False

    def _has_slot(self) -> bool:
        """Whether it has one that it keeps; False where that can't be told now."""
        jobs, key = os.path.split(self.folder.path)
        try:
            return Slots(jobs, 0).begins(key)
        except OSError:
            return False

    def _canceled(self, run: int) -> None:
        """It ends with the last run that anybody may know of."""
        reason = "" if self.folder.runs() else "it never ran"
        self.end(run, Became("canceled", None, reason))

    def _training(
        self, job: Mapping[str, Any], run: int, held: int | None, is_lost: bool
    ) -> int | None:
        """The lock of the training, when nothing is left of a run; None where that failed."""
        if held is None and not is_lost:
            held = self.folder.lock(files.TRAINING)
        if held is not None and not is_lost:
            return held
        if held is not None:
            os.close(held)
        until = time.monotonic() + ENGINE_S
        while time.monotonic() < until:
            # Of the next one there may be what fetched its image.
            for each in (run, run + 1):
                processes.kill_all_with(MARK, self.folder.at(run_name(each)))
            if job["remove"] and not self._removed(Container(job)):
                break
            held = self.folder.lock(files.TRAINING)
            if held is not None:
                return held
            time.sleep(0.1)
        print(f"something of run {run} is still there, and can't be ended", file=sys.stderr)
        return None

    def _removed(self, container: Container) -> bool:
        """Remove a container; whether there surely is none."""
        container.remove()
        return container.is_gone()

    def end(self, run: int, became: Became) -> None:
        """Write down how the job ended."""
        self.folder.remove(files.IMAGE)
        ended = {"phase": became.phase, "run": run, "exit_code": became.code}
        ended = {**ended, "reason": became.reason, "at": time.time()}
        while not self._written(ended):
            self.sleep(LOOK_S)
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


def main(argv: Sequence[str]) -> None:
    """``FOLDER DESCRIPTOR``: watch over the job in a folder; tell how it stands by a descriptor.

    The process that was started ends at once: the work is done by a child, which nobody has to wait
    for.
    """
    path, tell = argv
    if os.fork():
        os._exit(0)
    Supervisor(Folder(path), int(tell)).run()
