"""Jobs that were submitted: what is kept of each, how it is, and how it is ended.

Each has a numbered folder, ``launches/0001``, which holds the very script that was submitted,
``sizing.json`` (what ``--size --json`` prints) and ``job.json``. The folder comes into being by one
``mkdir``, so several launches at once get numbers of their own. ``job.json`` is there before the
scheduler is asked, with no job in it, and is replaced as a whole: whoever is killed in between
leaves a folder that says so.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from taskgraph_workers.errors import Problem
from taskgraph_workers.launch.model import LaunchError
from taskgraph_workers.launch.undisturbed import undisturbed
from taskgraph_workers.schedulers.base import (
    Answer,
    Command,
    Job,
    Scheduler,
    SchedulerError,
    State,
)
from taskgraph_workers.texts import write_whole

#: Runs a command of a scheduler: :func:`taskgraph_workers.schedulers.run.run`, or a test's own.
Runner = Callable[[Command], Answer]

#: What a launch is whose job the scheduler can't be asked about: ``refused``, or ``broken off``
#: between the folder and the job's id.
REFUSED, BROKEN_OFF = "refused", "broken off"

_JOB, _SIZING, _SCRIPT = "job.json", "sizing.json", "workers"

# How often a job that ends is looked at: at first soon, later less often.
_SOON_S, _LATER_S = 0.5, 5.0

#: How long a job that was canceled may take to be gone.
CANCEL_S = 60.0


@dataclass(frozen=True)
class Launch:
    """One numbered folder. ``where`` is the folder of submission.

    ``outputs`` are the names that the job's output may have, the likeliest first.

    ``name`` is the job's, which others may have too; it is asked for where the id is not known.
    ``refused`` is what the scheduler said instead of an id. ``ended`` is how the job was when it
    was last looked at after its end.
    """

    folder: str
    scheduler: str
    where: str
    job: str | None = None
    outputs: tuple[str, ...] = ()
    refused: str = ""
    ended: State | None = None
    name: str = ""

    @property
    def number(self) -> int:
        """That of the folder."""
        return int(os.path.basename(self.folder))

    @property
    def output_file(self) -> str | None:
        """The output file of the job, where its name is known: one that is there, if any is."""
        files = [os.path.join(self.where, name) for name in self.outputs]
        return next(filter(os.path.exists, files), files[0] if files else None)

    @property
    def stop_file(self) -> str:
        """The file at whose sight the script ends its workers."""
        return os.path.join(self.where, f"workers-{self.job}.stop")


# --- submitting -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Submission:
    """What is submitted: the script, its sizing as JSON, and what its header says."""

    text: str
    sizing: Mapping[str, Any]
    job: Job = field(default_factory=Job)


def submit(
    base: str, submission: Submission, scheduler: Scheduler, run: Runner
) -> tuple[Launch, State]:
    """Submit a script out of a new folder in ``base``; how the job is, right after.

    :raises LaunchError: where the folder can't be written.
    :raises SchedulerError: with what the scheduler said, where it doesn't take the job, or ends
        it at once because it can never run. The folder stays, and says so.
    """
    try:
        folder = new_folder(base)
        script = os.path.join(folder, f"{_SCRIPT}.{scheduler.extension}")
        write_whole(script, submission.text)
        write_whole(os.path.join(folder, _SIZING), json.dumps(submission.sizing, indent=2) + "\n")
        launch = Launch(folder, scheduler.name, os.getcwd(), name=submission.job.name)
        keep(launch)
    except OSError as error:
        raise LaunchError(Problem(f"can't be written: {error.strerror}", file=base)) from None
    with undisturbed():
        try:
            answer = run(scheduler.submit(os.path.abspath(script), submission.text))
            job = scheduler.submitted(answer)
        except SchedulerError as error:
            # Without an answer it may have been taken: the launch stays broken off.
            with suppress(OSError):
                keep(replace(launch, refused="" if answer.hung else str(error)))
            raise
        launch = replace(launch, job=job, outputs=scheduler.output_files(submission.job, job))
        try:
            keep(launch)
        except OSError as error:
            # The job is there all the same, and nobody must lose sight of it.
            what = f"its id can't be kept in {launch.folder}: {error.strerror}"
            return launch, State("unknown", what)
    return launch, _accepted(launch, scheduler, run)


def _accepted(launch: Launch, scheduler: Scheduler, run: Runner) -> State:
    """How a new job is."""
    looks = 4 if scheduler.settles_late else 1
    for look in range(looks):
        time.sleep(_SOON_S / 2 if look else 0)
        try:
            state = state_of(launch, scheduler, run)
        except SchedulerError as error:
            # The job is submitted, whatever can't be told of it.
            return State("unknown", error.problems[0].text)
        if state.phase in ("running", "ended"):
            break
    if state.phase == "ended" and state.succeeded is False:
        what = f"{scheduler.name} took job {launch.job}, and ended it at once"
        raise SchedulerError(Problem(f"{what}: {state.reason}" if state.reason else what))
    return state


def new_folder(base: str) -> str:
    """A new numbered folder in ``base``, which is made where it is missing. Raises OSError."""
    os.makedirs(base, exist_ok=True)
    number = max(numbers(base), default=0)
    while True:
        number += 1
        folder = os.path.join(base, f"{number:04d}")
        try:
            os.mkdir(folder)
        except FileExistsError:
            continue
        return folder


def numbers(base: str) -> list[int]:
    """The numbers of the folders in ``base``, in order."""
    try:
        names = os.listdir(base)
    except OSError:
        return []
    return sorted(int(name) for name in names if re.fullmatch(r"\d{4,}", name, re.ASCII))


def keep(launch: Launch) -> None:
    """Write ``job.json``, as a whole or not at all. Raises OSError."""
    said: dict[str, Any] = {
        "version": 1,
        "scheduler": launch.scheduler,
        "job": launch.job,
        "where": launch.where,
        "outputs": launch.outputs,
        "refused": launch.refused,
        "name": launch.name,
        "ended": None,
    }
    if launch.ended is not None:
        ended = launch.ended
        said["ended"] = {"reason": ended.reason, "nodes": ended.nodes, "succeeded": ended.succeeded}
    write_whole(os.path.join(launch.folder, _JOB), json.dumps(said, indent=2) + "\n")


# --- finding them again ---------------------------------------------------------------------


def launches(base: str) -> list[Launch]:
    """Every launch that is kept in ``base``, in order."""
    return [read(os.path.join(base, f"{number:04d}")) for number in numbers(base)]


def read(folder: str) -> Launch:
    """The launch of a folder; one without ``job.json`` was broken off before anything was asked."""
    try:
        with open(os.path.join(folder, _JOB), encoding="utf-8") as opened:
            return _said(folder, json.load(opened))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return Launch(folder, "", "")


def _said(folder: str, said: Any) -> Launch:
    """What a ``job.json`` says. Raises KeyError or TypeError for what :func:`keep` never wrote."""
    ended = said["ended"]
    launch = Launch(
        folder,
        said["scheduler"],
        said["where"],
        said["job"],
        tuple(said["outputs"]),
        said["refused"],
        State("ended", **ended) if ended else None,
        said.get("name", ""),
    )
    texts = [launch.scheduler, launch.where, launch.refused, launch.name]
    texts += [launch.job or "", *launch.outputs]
    texts += [launch.ended.reason, launch.ended.nodes] if launch.ended else []
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a value is no text")
    return launch


def pick(base: str, said: str | None) -> Launch:
    """The launch that a number of a folder, or the id of a job, names; without one, the last.

    :raises LaunchError: where there is none, or both a folder and another's job are called so.
    """
    known = launches(base)
    if not known:
        hint = "launch --submit keeps what it submits there"
        raise LaunchError(Problem(f"nothing was launched in {base}", hint=hint))
    if said is None:
        return known[-1]
    by_number = [each for each in known if str(each.number) == said.lstrip("0")]
    by_job = [each for each in known if each.job == said]
    # 0012 is a folder, and so is 12, unless there is a job 12, too.
    found = by_number if said.startswith("0") else list({*by_number, *by_job})
    if len(found) == 1:
        return found[0]
    if not found:
        hint = f"there is: {', '.join(map(_told, known[-5:]))}"
        raise LaunchError(Problem(f"there is no launch and no job {said} in {base}", hint=hint))
    hint = f"say {int(said):04d} for the launch; the job is that of {by_job[0].number:04d}"
    raise LaunchError(Problem(f"{said} is a launch and the job of another one", hint=hint))


def _told(launch: Launch) -> str:
    return f"{launch.number:04d}" + (f" (job {launch.job})" if launch.job else "")


# --- how it is ------------------------------------------------------------------------------


def state_of(launch: Launch, scheduler: Scheduler | None, run: Runner) -> State:
    """How a launch's job is. Its end is kept in its folder, since schedulers forget soon."""
    if launch.ended is not None:
        return launch.ended
    if launch.job is None:
        return State(REFUSED if launch.refused else BROKEN_OFF, launch.refused)
    if scheduler is None:
        return State("unknown", f"there is no scheduler {launch.scheduler!r}")
    state = scheduler.state(launch.job, run(scheduler.poll(launch.job)))
    if state.phase == "unknown":
        state = _as_told(launch) or state._replace(
            reason=state.reason or "nobody knows it any more"
        )
    if state.phase == "ended":
        # A folder may be read only; then it is asked again next time.
        with suppress(OSError):
            keep(replace(launch, ended=state))
    return state


def _as_told(launch: Launch) -> State | None:
    """How a job ended whose scheduler has forgotten it: the last line of its output says so."""
    try:
        with open(launch.output_file or "", "rb") as opened:
            opened.seek(max(opened.seek(0, os.SEEK_END) - 1000, 0))
            last = opened.read().rstrip().rpartition(b"\n")[2]
    except OSError:
        return None
    found = re.search(rb"workers: all ended, with status (\d+)$", last)
    if found is None:
        return None
    return State("ended", f"status {found[1].decode()}", succeeded=found[1] == b"0")


# --- ending it ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stopped:
    """How a launch was stopped.

    ``how`` is ``ended`` (it had, before), ``canceled`` (with nothing running yet, or at once
    where that was wished), ``warmly``, or ``killed`` (it took too long). ``state`` is the last.
    """

    how: str
    state: State


def stop(
    launch: Launch,
    scheduler: Scheduler,
    run: Runner,
    wait_s: float = 600.0,
    now: bool = False,
    waits: Callable[[], object] = lambda: None,
) -> Stopped:
    """End a launch: its workers once their tasks are done, and with them the job.

    ``waits`` is called before that is waited for, if it is.

    :raises LaunchError: for one that never got a job, or that nobody knows.
    :raises SchedulerError: where the job is still there after all that.
    """
    state = state_of(launch, scheduler, run)
    if state.phase == "ended":
        return Stopped("ended", state)
    if launch.job is None or state.phase == "unknown":
        what = f"launch {_told(launch)} can't be stopped: {state.reason or state.phase}"
        raise LaunchError(Problem(what))
    if state.phase == "pending" or now:
        return Stopped("canceled", _cancel(launch, scheduler, run))
    _ask_to_end(launch, scheduler, run)
    waits()
    how, state = "warmly", _until_ended(launch, scheduler, run, wait_s)
    if state.phase not in ("ended", "unknown"):
        how, state = "killed", _cancel(launch, scheduler, run)
    # The script takes it away itself, unless it was killed. While it runs the file has to stay.
    with suppress(OSError):
        os.unlink(launch.stop_file)
    return Stopped(how, state)


def _ask_to_end(launch: Launch, scheduler: Scheduler, run: Runner) -> None:
    """By the file, which works everywhere, and by a signal where there is one for it."""
    asked = False
    try:
        with open(launch.stop_file, "w", encoding="utf-8"):
            asked = True
    except OSError:
        pass  # the folder of submission may be gone, or belong to somebody else
    command = scheduler.end(launch.job or "")
    if command is not None:
        asked = run(command).exit_code == 0 or asked
    if not asked:
        what = f"{launch.stop_file} can't be written, which would end the workers"
        raise LaunchError(Problem(what, hint="say --now to cancel the job with its tasks"))


def _cancel(launch: Launch, scheduler: Scheduler, run: Runner) -> State:
    answer = run(scheduler.cancel(launch.job or ""))
    state = _until_ended(launch, scheduler, run, CANCEL_S if answer.exit_code == 0 else 0)
    if state.phase not in ("ended", "unknown"):
        said = answer.stderr.strip() or f"it is {state.phase} still"
        raise SchedulerError(Problem(f"job {launch.job} could not be canceled: {said}"))
    return state


def _until_ended(launch: Launch, scheduler: Scheduler, run: Runner, wait_s: float) -> State:
    """The last state. That a scheduler doesn't answer for a while ends no waiting."""
    limit, pause = time.monotonic() + wait_s, _SOON_S
    while True:
        left = limit - time.monotonic()
        try:
            state = state_of(launch, scheduler, run)
        except SchedulerError:
            if left <= 0:
                raise
        else:
            if state.phase in ("ended", "unknown") or left <= 0:
                return state
        time.sleep(min(pause, max(left, 0.05)))
        pause = min(pause * 1.5, _LATER_S)
