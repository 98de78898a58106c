"""Small Taskgraph projects, written into a folder and run by the real `taskgraph` command."""

from __future__ import annotations

import json
import re
import subprocess
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.graph.support import run_taskgraph

REPOSITORY = "https://github.com/example/shop"
PARAMETERS = {
    "base_ref": "main",
    "base_repository": REPOSITORY,
    "base_rev": "6f1e2d3c4b5a69788796a5b4c3d2e1f001122334",
    "build_date": 1767225600,
    "build_number": 1,
    "do_not_optimize": [],
    "enable_always_target": True,
    "existing_tasks": {},
    "files_changed": [],
    "filters": ["target_tasks_method"],
    "head_ref": "main",
    "head_repository": REPOSITORY,
    "head_rev": "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
    "head_tag": "",
    "level": "1",
    "moz_build_date": "20260101000000",
    "next_version": None,
    "optimize_strategies": None,
    "optimize_target_tasks": True,
    "owner": "someone@example.com",
    "project": "shop",
    "pushdate": 1767225600,
    "pushlog_id": "0",
    "repository_type": "git",
    "target_tasks_method": "default",
    "tasks_for": "github-push",
    "version": None,
}
DOCKER = {
    "provisioner": "{trust-domain}-{level}",
    "implementation": "docker-worker",
    "os": "linux",
    "worker-type": "{alias}",
}
ALIASES: dict[str, Any] = {"b-cpu": DOCKER, "b-gpu": DOCKER, "b-other": DOCKER}
#: What git needs to know of whoever commits, whatever this machine is set up for.
GIT = {"user.name": "Someone", "user.email": "someone@example.com", "commit.gpgsign": "false"}

Graph = dict[str, dict[str, Any]]

#: Python 3.11's pool of processes, which Taskgraph loads kinds in, may wake a thread of its own
#: that has just ended when the interpreter ends (concurrent.futures.process._python_exit).
_RACE = re.compile(
    r"^Exception ignored in: <module 'threading'(?:.*\n)+?OSError: .*Bad file descriptor\n?",
    re.MULTILINE,
)


@dataclass
class Run:
    """What one call of the command did."""

    code: int
    stdout: str
    stderr: str

    @property
    def graph(self) -> Graph:
        """The tasks it printed; fails the test, with all that was said, where there are none."""
        assert self.code == 0, self.stderr
        graph: Graph = json.loads(self.stdout)
        return graph

    def refused(self) -> str:
        """What a run said that ended as one ends for a user's mistake: once, no traceback."""
        assert self.code == 1, self.stderr
        assert "Traceback" not in _RACE.sub("", self.stderr + self.stdout), self.stderr
        assert self.stderr.count("workers-config: ") == 1, self.stderr
        return self.stderr[self.stderr.index("workers-config: ") :]


class Project:
    """A project in a folder, in a git repository, as Taskgraph wants it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "taskcluster"
        self.write("params.yml", PARAMETERS)

    def write(self, name: str, content: Any) -> Path:
        """Write a file: text as it is (without its indent), all else as YAML."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = textwrap.dedent(content) if isinstance(content, str) else dump(content)
        path.write_text(text, encoding="utf-8")
        return path

    def config(
        self,
        workers_config: Any = None,
        aliases: Mapping[str, Any] = ALIASES,
        register: str | None = "taskgraph_workers:register",
        **taskgraph: Any,
    ) -> Path:
        """Write config.yml; `workers_config` may be YAML text, and is left out if None."""
        taskgraph["repositories"] = {"ci": {"name": "ci"}}
        if register is not None:
            taskgraph["register"] = register
        top = {
            "trust-domain": "shop",
            "task-priority": "low",
            "taskgraph": taskgraph,
            "workers": {"aliases": dict(aliases)},
        }
        text = dump(top)
        if isinstance(workers_config, str):
            text += textwrap.dedent(workers_config)
        elif workers_config is not None:
            text += dump({"workers-config": workers_config})
        return self.write("taskcluster/config.yml", text)

    def kind(self, name: str, tasks: Mapping[str, Any], **more: Any) -> None:
        """Write a kind; what is not said of a task is that of a small one on docker-worker.

        None takes a key away. With a loader of its own, a kind has no `run`.
        """
        base = {key: value for key, value in TASK.items() if key != "run" or "loader" not in more}
        tasks = {each: {**base, **said} for each, said in tasks.items()}
        for task in tasks.values():
            for key in [key for key, value in task.items() if value is None]:
                del task[key]
        self.write(f"taskcluster/kinds/{name}/kind.yml", {**more, "tasks": tasks})

    def commit(self, message: str = "Change") -> None:
        """Commit everything, into a new repository if there is none."""
        if not (self.folder / ".git").exists():
            self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)

    def git(self, *arguments: str) -> str:
        """What a git command printed."""
        said = [word for key, value in GIT.items() for word in ("-c", f"{key}={value}")]
        run = subprocess.run(
            ["git", *said, *arguments], cwd=self.folder, check=True, capture_output=True, text=True
        )
        return run.stdout.strip()

    def run(self, *arguments: str, env: Mapping[str, str] | None = None) -> Run:
        """Run `taskgraph <arguments>` here."""
        if not (self.folder / ".git").exists():
            self.commit()
        urls = {"TASKCLUSTER_ROOT_URL": "https://tc.example.com"}
        run = run_taskgraph(*arguments, cwd=self.folder, env={**urls, **(env or {})})
        return Run(run.returncode, run.stdout, run.stderr)

    def full(
        self,
        *arguments: str,
        profile: str | None = None,
        env: Mapping[str, str] | None = None,
        **parameters: Any,
    ) -> Run:
        """Run `taskgraph full -J` with the usual parameters, and these over them."""
        said = {"TASKGRAPH_WORKERS_PROFILE": profile} if profile else {}
        name = "params.yml"
        if parameters:
            name = "more.yml"
            self.write(name, {**PARAMETERS, **parameters})
        return self.run("full", "-J", "-p", name, *arguments, env={**said, **(env or {})})


TASK: dict[str, Any] = {
    "description": "A task",
    "worker-type": "b-gpu",
    "worker": {"docker-image": "image:1", "max-run-time": 3600},
    "run": {"using": "run-task", "command": "true", "checkout": False, "cwd": "/tmp"},
}


def docker(**more: Any) -> dict[str, Any]:
    """The `worker` of a task on docker-worker."""
    return {**TASK["worker"], **more}


def dump(content: Any) -> str:
    """YAML, without anchors: in Taskgraph, what shares an anchor is one and the same value."""
    return yaml.safe_dump(json.loads(json.dumps(content)), sort_keys=False)


def pool(task: Mapping[str, Any]) -> str:
    """Where a task runs."""
    return f"{task['task']['provisionerId']}/{task['task']['workerType']}"


def env_of(task: Mapping[str, Any], *names: str) -> dict[str, str | None]:
    """What a task's payload says of some environment variables."""
    env = task["task"]["payload"].get("env", {})
    return {name: env.get(name) for name in names}
