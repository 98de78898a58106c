"""One run of a job's trainer, from its start to its end. Part of :mod:`.supervisor`.

How it ended is known from who was there: a container's engine; for a process its witness, which
writes it down (:mod:`.witness`). Who is to run it again first writes down, in the same place, that
this run is given up. Whichever is there first holds.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from taskgraph_workers.dispatch.executors import folder as files
from taskgraph_workers.dispatch.executors import outputs, processes, starts
from taskgraph_workers.dispatch.executors.containers import (
    ALIVE,
    CREATED,
    ENGINE_S,
    GONE,
    INITIALIZED,
    OVER,
    REMOVING,
    Container,
)
from taskgraph_workers.dispatch.executors.folder import end_name, progress_name
from taskgraph_workers.dispatch.executors.witness import Witness
from taskgraph_workers.dispatch.failpoints import reach

if TYPE_CHECKING:
    from taskgraph_workers.dispatch.executors.supervisor import Supervisor

#: What tells the processes of one run from all others: every run has a value of its own.
MARK = "TASKGRAPH_WORKERS_RUN"

#: What a supervisor tells whoever started it, once the job is its own.
CLAIMED = "claimed"

#: How often the marker of a cancellation is looked for.
LOOK_S = 1.0

#: The one variable whose value an engine is expected to repeat.
IMAGE = "TRAINING_IMAGE"

# When a machine shuts down, trainer and supervisor are told in any order.
_BOTH_S = 0.5
_TOLD = {-signal.SIGTERM, -signal.SIGKILL, 128 + signal.SIGTERM}
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


@dataclass(frozen=True)
class Became:
    """What became of a run: how it ended, or one of the phases below."""

    phase: str
    code: int | None = None
    reason: str = ""


#: Nothing ran: its engine could not start it. It may be tried again, as the same run.
NEVER = "never"

#: It began, and nobody knows how it ended: the next run is another one.
LOST = Became("lost", None, "its supervisor, or the machine, was lost")

#: The machine goes down, or nobody can tell: whoever comes next decides.
LEFT = Became("left")


class Training:
    """One run of a job's trainer."""

    def __init__(self, over: Supervisor, job: Mapping[str, Any], run: int, lock: int) -> None:
        self.over, self.job, self.number, self.lock = over, job, run, lock
        self.folder = over.folder
        self.container = Container(job) if job["inspect"] else None
        self.mark = self.folder.at(files.run_name(run))
        self.why = ""
        self.has_begun = False
        self.since = 0  # where its output begins
        self.kill_at = float("inf")
        limit = job["max_run_time_s"]
        self.until = time.monotonic() + limit if limit else float("inf")

    # --- from its start ---

    def fetch(self) -> Became | None:
        """Have the image fetched, for an engine that does not tell that from training; None: done.

        Nothing of the image runs by that, so it is no part of the run.
        """
        if not self.job["fetch"]:
            return None
        self.over.tell(CLAIMED)
        self.since = self._printed()
        try:
            fetching = self._popen(self.job["fetch"])
        except OSError as error:
            return self._not_started(error, self.job["fetch"])
        code = self._watch(fetching)
        processes.kill_group(fetching.pid, signal.SIGKILL)
        if self.why == "shutdown":
            return LEFT
        if self.why == "canceled":
            return Became("canceled", None, "it never ran")
        if self.why:
            return Became(*self._outcome(code))
        return self._never() if code else None

    def run(self) -> Became:
        """Run it; what became of it."""
        self.has_begun = True
        self.since = self._printed()
        try:
            trainer = Witness(lambda: self._popen(self.job["argv"]), self._record, self.lock)
        except OSError as error:
            return self._not_started(error, self.job["argv"])
        reach("trainer-started")
        code = self._watch(trainer)
        if self.container is not None:
            return self._contained(self.container, None if trainer.is_lost else code)
        processes.kill_group(trainer.pid, signal.SIGKILL)
        return self._given_up() if trainer.is_lost else self._over(code)

    def _printed(self) -> int:
        """How much was printed so far, in bytes."""
        output = self.folder.at(files.OUTPUT)
        return os.path.getsize(output) if os.path.exists(output) else 0

    def _record(self, code: int) -> None:
        """Write down how a process ended; of a container its engine knows that, not its client."""
        if self.container is None:
            self.folder.claim(end_name(self.number), {"code": code})

    def _popen(self, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        """A session of its own, which holds the lock of the training."""
        job = self.job
        own = {
            "TRAINING_RUN": str(self.number),
            "TRAINING_PROGRESS_FILE": os.path.join(job["progress_at"], progress_name(self.number)),
        }
        said = {job["prefix"] + name: value for name, value in {**job["env"], **own}.items()}
        kept = processes.without_ours(os.environ)
        with open(self.folder.at(files.OUTPUT), "ab") as output:
            return subprocess.Popen(
                argv,
                env={**kept, **said, MARK: self.mark},
                cwd=job["cwd"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                pass_fds=(self.lock,),
            )

    def _not_started(self, error: OSError, argv: Sequence[str]) -> Became:
        code = _NEVER.get(error.errno or 0)
        if code is None:
            # Nothing was started, so nothing is lost: the next supervisor begins this run again.
            self.folder.remove(files.run_name(self.number))
            raise error
        what = error.filename or argv[0]
        return Became("failed", code, f"{what} can't be started: {error.strerror}")

    def _never(self, code: int | None = None) -> Became:
        """Its engine started nothing: why, in its own words."""
        said = self._last_words() or "it did not say why"
        reason = f"{self.job['engine']} could not start it: {said}"
        return Became(NEVER, code if code in starts.REFUSED else None, reason)

    def _last_words(self) -> str:
        secrets = [value for name, value in self.job["env"].items() if name != IMAGE]
        return starts.last_words(self.folder.at(files.OUTPUT), self.since, secrets)

    # --- from where another supervisor was lost ---

    def resume(self, marker: Mapping[str, Any]) -> Became:
        """Go on with a run that another supervisor has begun; what became of it."""
        # Where the output of a later run begins nobody knows any more.
        self.since = 0 if self.number == 0 else sys.maxsize
        if self.container is None:
            return self._given_up()
        known = self.folder.read(end_name(self.number))
        if known is not None:
            self.container.remove()
            return Became(**known) if "phase" in known else LOST
        # A machine that went down took it along, whatever the engine says of it now.
        if marker["boot"] != processes.boot():
            return LOST
        found = self.container.state()
        if found is None:
            return LEFT
        self.until -= max(0.0, time.monotonic() - marker["since"])
        self.over.tell(CLAIMED)
        if found.status not in ALIVE | OVER:
            # Its engine's client might be about to start it. From here on it is or it is not.
            processes.kill_all_with(MARK, self.mark)
        return self._contained(self.container, None)

    def _given_up(self) -> Became:
        """How its witness said that it ended; else nobody ever will, and it is lost."""
        if self.folder.claim(end_name(self.number), {"lost": True}):
            return LOST
        code = (self.folder.read(end_name(self.number)) or {}).get("code")
        # What ends a supervisor together with its trainer says nothing of the training.
        return LOST if code is None or code in _TOLD else self._over(code)

    # --- to its end ---

    def _watch(self, process: Witness | subprocess.Popen[bytes]) -> int:
        """Wait for a process; end it where it has to."""
        while True:
            code = process.poll()
            if code is not None:
                return code
            now = time.monotonic()
            self._look(now, process)
            outputs.shorten(self.folder.at(files.OUTPUT))
            self.over.sleep(min(LOOK_S, self.until - now, self.kill_at - now))

    def _look(self, now: float, process: Witness | subprocess.Popen[bytes] | None) -> None:
        """Begin to end it, once, if somebody or something wants that; kill it if that is too slow.

        ``process`` is its own, or that of a client of its engine; None where there is none now.
        """
        if now >= self.kill_at:
            self.kill_at = now + ENGINE_S
            if self.container is not None:
                self.container.remove()
            if process is not None:
                processes.kill_group(process.pid, signal.SIGKILL)
        if self.why:
            return
        self.why = self._end_is_due(now)
        if not self.why:
            return
        if self.why == "shutdown" and self.has_begun:
            self.folder.claim(end_name(self.number), {"lost": True})
        self.until = float("inf")
        self.kill_at = now + self.job["grace_s"]
        if self.container is not None:
            self.container.stop()
        elif process is not None:
            processes.kill_group(process.pid, signal.SIGTERM)

    def _end_is_due(self, now: float) -> str:
        """Why it has to end now; empty where it has not."""
        if self.folder.has(files.CANCEL):
            return "canceled"
        if self.over.shutdown:
            return "shutdown"
        return "overdue" if now >= self.until else ""

    def _contained(self, container: Container, code: int | None) -> Became:
        """How a container ended: its engine's client may end before it, for reasons of its own.

        ``code`` is the client's, None where nobody knows.
        """
        status = GONE
        while True:
            found = container.state()
            if found is not None and found.status == GONE:
                return self._gone(container, code, status)
            status = found.status if found is not None else status
            if found is None:
                pass
            elif status in ALIVE:
                waiting = container.waiting()
                if waiting is not None and container.is_forsaken(self._watch(waiting)):
                    container.remove()
                    return LOST
            elif status in OVER:
                return self._left_behind(container, found.code)
            elif status == REMOVING:
                container.remove()
            else:
                container.discard()
                continue
            self._look(time.monotonic(), None)
            self.over.sleep(LOOK_S)

    def _left_behind(self, container: Container, code: int) -> Became:
        """How a container ended that is still there; removed once that is written down."""
        became = self._over(code) if code >= 0 else LOST
        if became not in (LEFT, LOST):
            self.folder.claim(end_name(self.number), asdict(became))
            reach("container-recorded")
        container.remove()
        reach("container-removed")
        return became

    def _gone(self, container: Container, code: int | None, last: str) -> Became:
        """There is no container: there never was, it was never started, or others removed it.

        ``last`` is how it was when it was last seen.
        """
        if self.why:
            return self._over(137 if code is None else code)
        has_failed = last == INITIALIZED and code is not None and code > 0
        if last == CREATED or not container.was_made() or has_failed:
            # A client that was killed may have left its name behind, where nothing lists it.
            container.remove()
            return self._never(code)
        return LOST if code is None or code < 0 else self._over(code)

    def _over(self, code: int) -> Became:
        """How it ended, when nothing of it is left."""
        processes.kill_all_with(MARK, self.mark)
        outputs.shorten(self.folder.at(files.OUTPUT))
        reach("trainer-ended")
        if self.why == "shutdown" or self._both_told(code):
            return LEFT
        return Became(*self._outcome(code))

    def _both_told(self, code: int) -> bool:
        """Whether the machine goes down, so that the trainer was told to end before this was."""
        if not self.why and code in _TOLD:
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
        said = self._last_words() if code in starts.BEFORE else ""
        # What finds values out, before the trainer, says first who it is.
        why = f": {said.replace('taskgraph-workers: ', '', 1)}" if said else ""
        return "failed", shown, f"it ended with exit code {shown}{why}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
