"""Decision and action tasks of this project, as Taskcluster renders them and a worker runs them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jsone
import yaml
from jsonschema import Draft7Validator
from slugid import nice as slugid

from tests.graph.project import Project, Run
from tests.graph.support import COMMAND, LOCAL, ROOT
from tests.queue.rules import Queue
from tests.queue.server import Taskcluster

REPOSITORY = "https://github.com/example/taskgraph-workers"
FORK = "https://github.com/someone/taskgraph-workers"
#: Where the tasks of .taskcluster.yml think they are.
BUILDS = "/builds/worker"
CHECKOUT, ARTIFACTS = f"{BUILDS}/checkouts/src", f"{BUILDS}/artifacts"
# This project's own trainings run for 20 days.
DEADLINE_DAYS = 21
#: From which Taskgraph on an artifact is looked for where the Queue says it is; see `server.py`.
REDIRECTS = int(version("taskcluster-taskgraph").split(".")[0]) != 18


@cache
def taskcluster_yml() -> Any:
    return yaml.safe_load((ROOT / ".taskcluster.yml").read_text())


def render(tasks_for: str, **context: Any) -> list[dict[str, Any]]:
    """The tasks that .taskcluster.yml asks for, as taskcluster-github and hooks render it."""
    made: dict[str, str] = {}
    given = {
        "tasks_for": tasks_for,
        "taskcluster_root_url": "https://tc.example.com",
        "as_slugid": lambda name: made.setdefault(name, slugid()),
        **context,
    }
    tasks: list[dict[str, Any]] = jsone.render(taskcluster_yml(), given)["tasks"]
    return tasks


@dataclass
class Clone:
    """A clone of the example in a folder, with two commits."""

    folder: Path
    base: str = ""
    head: str = ""

    @classmethod
    def make(cls, folder: Path) -> Clone:
        shutil.copytree(ROOT / "taskcluster", folder / "taskcluster", symlinks=True)
        shutil.copy(ROOT / ".taskcluster.yml", folder)
        project = Project(folder)
        project.commit("Base")
        base = project.git("rev-parse", "HEAD")
        project.commit("Head")
        return cls(folder, base, project.git("rev-parse", "HEAD"))

    def push(self, ref: str = "refs/heads/main") -> dict[str, Any]:
        """The event of a push."""
        repository = {"name": "taskgraph-workers", "html_url": REPOSITORY}
        pusher = {"email": "someone@example.com"}
        event = {"ref": ref, "before": self.base, "after": self.head, "base_ref": None}
        return {**event, "repository": repository, "pusher": pusher}

    def pull_request(self, action: str = "opened", branch: str = "try-it") -> dict[str, Any]:
        """The event of a pull request from a fork."""
        name = "taskgraph-workers"
        full = {"name": name, "full_name": f"example/{name}", "html_url": REPOSITORY}
        request = {
            "number": 7,
            "user": {"login": "someone"},
            "base": {"repo": full, "ref": "main", "sha": self.base},
            "head": {"repo": {"html_url": FORK}, "ref": branch, "sha": self.head},
        }
        return {"action": action, "pull_request": request}

    def hook(self, level: str = "3") -> dict[str, Any]:
        """What the hooks of cron jobs and actions say of the repository."""
        return {
            "repository": {"url": REPOSITORY, "project": "taskgraph-workers", "level": level},
            "push": {"branch": "main", "revision": self.head, "pushlog_id": "0"},
            "ownTaskId": slugid(),
            "clientId": "github/1|someone",
        }

    def cron(self, **more: Any) -> dict[str, Any]:
        job = {"task_id": slugid(), "job_name": "nightly", "job_symbol": "N", "quoted_args": ""}
        return {**self.hook(), "cron": {**job, **more}}


@dataclass
class Worker:
    """Runs a rendered task in a clone, against a small Taskcluster."""

    clone: Clone
    taskcluster: Taskcluster
    installed: list[str] = field(default_factory=list)

    @property
    def artifacts(self) -> Path:
        return self.clone.folder.parent / "artifacts"

    def act(self, decision: str, name: str, input: Any, task_id: str | None = None) -> Run:
        """Start an action on a task, or on the group of a decision task, as a hook does."""
        content = self.taskcluster.artifacts[decision, "public/actions.json"]
        (action,) = (
            each
            for each in json.loads(content)["actions"]
            if each["name"] == name and (task_id is None) == (each["context"] == [])
        )
        Draft7Validator(action["schema"]).validate(input)
        given = {"input": input, "taskId": task_id, "taskGroupId": decision}
        payload = jsone.render(action["hookPayload"], given)
        context = {
            **payload["decision"],
            **given,
            "action": {
                **payload["decision"]["action"],
                "action_perm": action["extra"]["actionPerm"],
            },
            "ownTaskId": slugid(),
            "clientId": "github/1|someone",
        }
        (task,) = render("action", **context)
        return self.run({**task, "taskId": context["ownTaskId"]})

    def run(self, task: Mapping[str, Any], env: Mapping[str, str] | None = None) -> Run:
        """Do what the task's command does after `run-task` has checked out; keep the artifacts.

        The task itself is there before it runs, as in a Queue.
        """
        task_id = self.admit(task)
        shutil.rmtree(self.artifacts, ignore_errors=True)
        self.artifacts.mkdir()
        (self.clone.folder / "artifacts").unlink(missing_ok=True)
        payload = task["payload"]
        command = payload["command"]
        assert command[2:5] == ["--", "bash", "-cx"]
        script = command[5].replace(CHECKOUT, str(self.clone.folder))
        run = subprocess.run(
            ["bash", "-ce", script.replace(ARTIFACTS, str(self.artifacts))],
            env=self._env(task_id, {**payload["env"], **(env or {})}),
            capture_output=True,
            text=True,
            check=False,
        )
        for path in self.artifacts.iterdir():
            self.taskcluster.artifacts[task_id, f"public/{path.name}"] = path.read_bytes()
        if run.returncode == 0:
            self._index(task_id, task)
        return Run(run.returncode, run.stdout, run.stderr)

    def admit(self, task: Mapping[str, Any]) -> str:
        """Create the task itself; its id."""
        task_id = str(task.get("taskId") or slugid())
        definition = {key: value for key, value in task.items() if key != "taskId"}
        self.taskcluster.queue.create(task_id, definition)
        return task_id

    def _index(self, task_id: str, task: Mapping[str, Any]) -> None:
        """The index learns of a task when it is completed."""
        for route in task["routes"]:
            if route.startswith("index."):
                self.taskcluster.index[route[len("index.") :]] = task_id

    def _env(self, task_id: str, said: Mapping[str, str]) -> dict[str, str]:
        tools = self.clone.folder.parent / "bin"
        if not tools.exists():
            tools.mkdir()
            _script(tools / "pip3", 'echo "$@" > "${0%/*}/pip3.told"')
            _script(tools / "taskgraph", f"exec {COMMAND[0]} {COMMAND[1]} '{COMMAND[2]}' \"$@\"")
        clean = {name: each for name, each in os.environ.items() if not name.startswith(LOCAL)}
        return {
            **clean,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            "TASK_ID": task_id,
            "RUN_ID": "0",
            "TASKCLUSTER_ROOT_URL": self.taskcluster.url,
            "TASKCLUSTER_PROXY_URL": self.taskcluster.url,
            **said,
        }


def _script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def queue() -> Queue:
    """A Queue that takes tasks that run for as long as this project's."""
    return Queue(deadline_days=DEADLINE_DAYS)


def training(clone: Clone, workers: Any = None, level: str = "3") -> dict[str, Any]:
    """The decision task of the cron job `train`, as its hook is triggered with a choice."""
    job = yaml.safe_load((ROOT / ".cron.yml").read_text())["jobs"][0]
    said = {} if workers is None else {"workers": workers}
    context = clone.cron(
        job_name=job["name"],
        quoted_args=f"--target-tasks-method={job['job']['target-tasks-method']}",
        input=said,
    )
    context["repository"]["level"] = level
    (task,) = render("cron", **context)
    return task


def pools(worker: Worker) -> dict[str, str]:
    """Where each task that was created runs, by its name."""
    return {
        name: f"{task['provisionerId']}/{task['workerType']}"
        for name, task in worker.taskcluster.tasks.items()
    }
