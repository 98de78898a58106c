"""What a decision task is told and a person at a terminal is not: `taskgraph full` works anyway."""

from __future__ import annotations

import os
from subprocess import CalledProcessError
from typing import Any

#: Where generic-worker tasks download ``run-task`` from, in place of TASKCLUSTER_ROOT_URL.
ROOT_URL = "https://taskcluster.example.com"

#: What Taskgraph can make links to the source of a task from.
GITHUB = ("https://github.com/", "git@github.com:")
REPOSITORY = "https://github.com/example/taskgraph-workers"


def register() -> None:
    """Make the defaults known to Taskgraph. A decision task uses none of them."""
    from taskgraph import parameters
    from taskgraph.util import taskcluster

    taskcluster.PRODUCTION_TASKCLUSTER_ROOT_URL = ROOT_URL
    parameters.defaults_functions.append(repository)


def repository(repo_root: str | None = None) -> dict[str, Any]:
    """Parameters for a clone of no GitHub repository, where Taskgraph fails without them."""
    from taskgraph.util.vcs import get_repository

    try:
        url = get_repository(repo_root or os.getcwd()).get_url()
    except (CalledProcessError, RuntimeError):
        url = ""
    if url.startswith(GITHUB):
        return {}
    return {
        "base_repository": REPOSITORY,
        "head_repository": REPOSITORY,
        "project": "taskgraph-workers",
    }
