"""Runs jobs by a site's own commands: how plain cloud machines, or anything else, are plugged in.

``dispatch.executors.NAME`` gives an argv for each of ``submit``, ``find``, ``poll``, ``cancel``
and, where something is to be let go of, ``release``. No shell sees them. Words may hold ``{key}``;
those of ``submit`` also ``{image}``, ``{worker}``, ``{pool}``, ``{sku}``, ``{max-run-time}``
(seconds, 0 for no limit) and ``{env-file}``, those of ``cancel`` and ``release`` also ``{handle}``,
which is what ``find`` printed just before. That is a key, a name of the configuration, an image
that is allowed, what the site's own command says: nothing else of a message is ever a word, and no
word begins with ``-`` by what is filled in. The trainer's variables are in the environment of
``submit``, and in ``{env-file}``: lines for a POSIX shell that export them all, name them in
``TASKGRAPH_WORKERS_ENV``, and find out what only the machine knows.

=========== =====================================================================================
``submit``  exit code 0: it is started. 65 (EX_DATAERR): it can never run, and standard error says
            why. Else nobody knows, and ``find`` is asked, now and before the next try.
``find``    exit code 0: the one line on standard output is what the key's job is called there;
            nothing at all: there surely is none. Else nobody knows: 1 is what every tool ends with
            when its login has expired.
``poll``    exit code 0: a word (``queued``, ``running``, ``succeeded``, ``failed``, ``canceled``,
            ``lost``), or an object: ``{"phase": ..., "machine", "reason", "exit_code", "run",
            "progress": [{"name", "at", "seq", "data"}]}``. Else nobody knows.
``cancel``  exit code 0: it was asked to end. It is asked only where ``find`` finds one.
``release`` as ``cancel``. It is done when ``find`` finds none any more: then its machine is gone.
=========== =====================================================================================
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable

from taskgraph_workers import detect
from taskgraph_workers.dispatch.executors import processes, progress_file, starts, submits
from taskgraph_workers.dispatch.executors.base import (
    AskedToGo,
    Impossible,
    NotNow,
    Unreachable,
    trainer_env,
)
from taskgraph_workers.dispatch.executors.call import Answer, call
from taskgraph_workers.dispatch.meant import shown
from taskgraph_workers.dispatch.model import VM_DESTROYED, Job, Progress, Status
from taskgraph_workers.model import Commands

#: What ``poll`` may say.
PHASES = ("queued", "running", "succeeded", "failed", "canceled", "lost")

#: The exit code of a ``submit`` that says never: EX_DATAERR of sysexits.h.
NEVER = 65

# Variables of ours that commands get, and trainers.
_ENV, _LIMIT = "TASKGRAPH_WORKERS_ENV", "TASKGRAPH_WORKERS_MAX_RUN_TIME"

# As many jobs are asked about at once; how long what they print may be.
_AT_ONCE, _MOST_TEXT = 8, 500
# What any database can keep as a whole number.
_MOST_NUMBER = 2**31 - 1
_DIGITS = re.compile(r"-?[0-9]{1,10}")


class CommandExecutor:
    """An executor, as :class:`taskgraph_workers.dispatch.executors.base.Executor` says."""

    def __init__(
        self,
        commands: Commands,
        state: str | os.PathLike[str],
        environ: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = commands.name
        self.submits = os.path.join(os.path.abspath(state), "submits")
        self.ephemeral = bool(commands.release)
        self.commands = commands
        self.environ = processes.without_ours(environ)
        self.clock = clock
        self._told: dict[str, tuple[Progress, ...]] = {}
        self._gone: dict[str, float] = {}

    # --- start ---

    def submit(self, job: Job) -> str:
        """Start a job, unless there is or was one of its key; its handle, which is its key.

        Raises NotNow where it was not started, or another ``submit`` of it has not ended yet.
        """
        with self._claimed(job.key) as claim:
            if not claim.is_started and self._looked_up(claim, job.key) is None:
                self._start(job, claim)
            claim.started()
        return job.key

    def find(self, key: str) -> str | None:
        """The key itself; None if the site's command says that there is no job of it, and none was
        started from here. Raises NotNow where another ``submit`` of it has not ended yet.
        """
        with self._claimed(key) as claim:
            if claim.is_started:
                return key
            return None if self._looked_up(claim, key) is None else key

    @contextlib.contextmanager
    def _claimed(self, key: str) -> Iterator[submits.Claim]:
        try:
            with submits.claimed(self.submits, key) as claim:
                yield claim
        except OSError as error:
            why = f"{self.name}: {error.filename or self.submits}: {error.strerror}"
            raise Unreachable(why) from error

    def _looked_up(self, claim: submits.Claim, key: str) -> str | None:
        found = self._found(key)
        if found is None and not claim.is_ours:
            raise NotNow(f"{self.name}: an earlier submit of it has not ended yet")
        if claim.is_ours:
            claim.forget_variables()
        return found

    def _start(self, job: Job, claim: submits.Claim) -> None:
        answer = self._submitted(job, claim)
        if answer.code == NEVER:
            raise Impossible(_hidden(answer, job))
        if answer.code != 0 and self._found(job.key) is None:
            # Somebody answered just before: others need not wait for this one.
            raise NotNow(f"{self.name}: submit failed: {_hidden(answer, job)}")

    def _submitted(self, job: Job, claim: submits.Claim) -> Answer:
        env = _variables(job)
        with claim.variables(env_file(job)) as file:
            values = {
                "key": job.key,
                "image": job.image,
                "worker": job.worker,
                "pool": job.pool,
                "sku": job.sku,
                "max-run-time": env[_LIMIT],
                "env-file": file,
            }
            argv = filled(self.commands.submit, values)
            environ = {**self.environ, **env}
            return call(argv, environ, self.commands.timeout_s, pass_fds=(claim.handle,))

    def _found(self, key: str) -> str | None:
        """What a key's job is called there."""
        answer = self._call(filled(self.commands.find, {"key": key}))
        if answer.code != 0:
            raise Unreachable(f"{self.name}: find failed: {answer.told()}")
        lines = [line.strip() for line in answer.out.splitlines() if line.strip()]
        if len(lines) > 1:
            raise Unreachable(f"{self.name}: find printed {len(lines)} lines for one key")
        if lines and not _is_name(lines[0]):
            raise Unreachable(f"{self.name}: find printed what can't be a name")
        return lines[0] if lines else None

    # --- how it is ---

    def poll(self, handles: Iterable[str]) -> dict[str, Status]:
        """How jobs are, some of them asked about at the same time."""
        asked = list(dict.fromkeys(handles))
        if not asked:
            return {}
        with ThreadPoolExecutor(min(_AT_ONCE, len(asked))) as pool:
            return dict(zip(asked, pool.map(self._status, asked)))

    def _status(self, handle: str) -> Status:
        answer = self._call(filled(self.commands.poll, {"key": handle}))
        if answer.code != 0:
            return Status("unknown", reason=f"poll failed: {answer.told()}")
        try:
            status, facts = read_status(answer.out, self.clock())
        except (ValueError, RecursionError) as error:
            return Status("unknown", reason=f"poll's answer can't be read: {error}")
        self._told[handle] = facts
        return status

    def progress(self, handle: str) -> Iterator[Progress]:
        """What ``poll`` told besides, and that the machine is gone, once it surely is."""
        gone = self._gone.pop(handle, None)
        if handle not in self._told and gone is None:
            status = self._status(handle)
            if status.phase == "unknown":
                raise Unreachable(f"{self.name}: {status.reason}")
        yield from self._told.get(handle, ())
        if gone is not None:
            yield Progress(VM_DESTROYED, gone)

    # --- the end ---

    def cancel(self, handle: str) -> None:
        """Ask for a job to end, if there is one."""
        found = self._found(handle)
        if found is not None:
            self._ask("cancel", handle, found)

    def release(self, handle: str) -> None:
        """Have its machine let go of, until there is none.

        Raises AskedToGo as long as there may be one, Unreachable where nobody could be asked.
        """
        self._told.pop(handle, None)
        if not self.commands.release:
            return
        found = self._found(handle)
        if found is not None:
            self._ask("release", handle, found)
            self._see_gone(handle)
        self._gone[handle] = self.clock()

    def _see_gone(self, handle: str) -> None:
        try:
            is_there = self._found(handle) is not None
        except Unreachable as error:
            raise AskedToGo(str(error)) from None
        if is_there:
            raise AskedToGo(f"{self.name}: it was asked to go, and is still there")

    def _ask(self, what: str, key: str, found: str) -> None:
        try:
            argv = filled(getattr(self.commands, what), {"key": key, "handle": found})
        except Impossible as error:
            raise Unreachable(str(error)) from None
        answer = self._call(argv)
        if answer.code != 0:
            raise Unreachable(f"{self.name}: {what} failed: {answer.told()}")

    def _call(self, argv: tuple[str, ...]) -> Answer:
        return call(argv, self.environ, self.commands.timeout_s)


def filled(words: Iterable[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """Words with their placeholders filled in.

    Raises Impossible where a word would become an option by that.

    >>> filled(["--name=tw-{key}", "{{x}}"], {"key": "k"})
    ('--name=tw-k', '{x}')
    """
    made = []
    for word in words:
        value = word.format_map(values)
        if value.startswith("-") and not word.startswith("-"):
            raise Impossible(f"{value!r} would be taken for an option")
        made.append(value)
    return tuple(made)


def env_file(job: Job) -> str:
    """Lines for a POSIX shell: the trainer's variables, their names, and the job's limit."""
    said = sorted(_variables(job).items())
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in said]
    wanted = {name: detect.parse(raw) for name, raw in job.detect.items()}
    return "".join(lines) + detect.prelude(wanted)


def read_status(text: str, now: float) -> tuple[Status, tuple[Progress, ...]]:
    """What ``poll`` says. Raises ValueError for what is no answer.

    >>> read_status("running", 0.0)[0].phase
    'running'
    """
    text = text.strip()
    value = json.loads(text) if text[:1] in ("{", '"') else text
    if isinstance(value, str):
        value = {"phase": value}
    phase = value.get("phase")
    if phase not in PHASES:
        raise ValueError(f"its phase is none of {', '.join(PHASES)}: {shown(str(phase))}")
    machine, run = value.get("machine"), value.get("run") or 0
    if not (machine is None or (isinstance(machine, str) and _is_name(machine))):
        raise ValueError("its machine is no name")
    if type(run) is not int or not 0 <= run <= _MOST_NUMBER:
        raise ValueError("its run is no number to count by")
    reason = str(value.get("reason") or "")[:_MOST_TEXT]
    status = Status(phase, run, machine, reason, _exit_code(value.get("exit_code")))
    facts = value.get("progress") or []
    if not isinstance(facts, list):
        raise ValueError("its progress is no list")
    found = [progress_file.check(each, Progress("", now, run), machine=True) for each in facts]
    return status, tuple(each for each in found if isinstance(each, Progress))


def _exit_code(value: Any) -> int | None:
    """An exit code, which is text where it comes from a tag or the like."""
    if value is None or value == "":
        return None
    if type(value) is int or (isinstance(value, str) and _DIGITS.fullmatch(value)):
        code = int(value)
        if -_MOST_NUMBER <= code <= _MOST_NUMBER:
            return code
    raise ValueError("its exit_code is no number that can be one")


def _is_name(text: str) -> bool:
    """Whether it can be what something is called: no lines, nothing that only looks like text."""
    return 0 < len(text) <= _MOST_TEXT and text.isprintable()


def _variables(job: Job) -> dict[str, str]:
    env = trainer_env(job)
    names = " ".join(sorted({*env, *job.detect}))
    return {**env, _ENV: names, _LIMIT: str(job.max_run_time_s or 0)}


def _hidden(answer: Answer, job: Job) -> str:
    """How a command failed, without the values of the job, which it may have repeated."""
    return starts.without(answer.told(), {*job.env.values(), job.request_id})
