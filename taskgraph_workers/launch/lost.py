"""Launches that broke off between the folder and the job's id: the job may be there.

Whoever was killed there, or got no answer in time, knows a name only, which other jobs may have. So
nothing is done to a job that is found by it: it is told, with the command that ends it.
"""

from __future__ import annotations

import os
import shlex

from taskgraph_workers.launch.jobs import BROKEN_OFF, Launch, Runner, launches
from taskgraph_workers.schedulers.base import Scheduler, State


def is_lost(launch: Launch) -> bool:
    """Whether there may be a job that the launch knows by its name alone."""
    return launch.job is None and not launch.refused and launch.name != ""


def state_of(launch: Launch, scheduler: Scheduler, run: Runner) -> State:
    """That it broke off, and which jobs may be its: those of its name that no launch here knows.

    Raises SchedulerError where nobody can tell.
    """
    known = {each.job for each in launches(os.path.dirname(launch.folder))}
    named = scheduler.found(launch.name, run(scheduler.find(launch.name)))
    ids = [job for job in named if job not in known]
    if not ids:
        return State(BROKEN_OFF, "broken off; the scheduler has no job that may be its")
    ends = " or ".join(shlex.join(scheduler.cancel(job).argv) for job in ids)
    what = f"broken off; named {launch.name!r}, and of no launch: {', '.join(ids)}"
    return State(BROKEN_OFF, f"{what} ({ends})")
