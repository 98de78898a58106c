"""Writes a Taskgraph project of any size for the benchmarks, twice.

Once with placement, and once with the same pools and env written into its kinds by hand: the two
make the same graph.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import yaml

#: The worker names that tasks ask for; the profile moves all but the first.
NAMES = ("b-cpu", "b-cpu-large", "b-gpu", "b-gpu-4", "b-gpu-4-1tb")

#: What tasks have to know about the machines.
CPU = {"THREADS": "8"}
GPU = {"GPUS": "0 1 2 3", "WORKSPACE": "12000"}

PARAMETERS = {
    "base_repository": "https://example.com/bench",
    "base_ref": "main",
    "base_rev": "0" * 40,
    "build_date": 0,
    "build_number": 1,
    "do_not_optimize": [],
    "enable_always_target": True,
    "existing_tasks": {},
    "files_changed": [],
    "filters": ["target_tasks_method"],
    "head_ref": "main",
    "head_repository": "https://github.com/example/bench",
    "head_rev": "0" * 40,
    "head_tag": "",
    "level": "1",
    "moz_build_date": "20260101000000",
    "next_version": None,
    "optimize_strategies": None,
    "optimize_target_tasks": True,
    "owner": "bench@example.com",
    "project": "bench",
    "pushdate": 0,
    "pushlog_id": "0",
    "repository_type": "git",
    "target_tasks_method": "default",
    "tasks_for": "github-push",
    "version": None,
}


def write(root: Path, tasks: int, kinds: int, placed: bool) -> Path:
    """Write the project and return its parameters file. ``placed``: by the plugin."""
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    folder = root / "taskcluster"
    for index in range(kinds):
        kind = folder / "kinds" / f"kind-{index:03}"
        kind.mkdir(parents=True)
        share = tasks // kinds + (index < tasks % kinds)
        _dump(kind / "kind.yml", _kind(kind.name, share, placed))
    _dump(folder / "config.yml", config(placed))
    _dump(root / "parameters.yml", PARAMETERS)
    return root / "parameters.yml"


def config(placed: bool) -> dict[str, Any]:
    """The project's config.yml; with ``placed``, it gives every task env and moves most."""
    alias = {
        "provisioner": "{trust-domain}-{level}",
        "implementation": "docker-worker",
        "os": "linux",
        "worker-type": "{alias}",
    }
    names = [*NAMES, *(f"{name}-standard" for name in NAMES[1:])]
    whole: dict[str, Any] = {
        "trust-domain": "bench",
        "task-priority": "low",
        "taskgraph": {"repositories": {"bench": {"name": "bench"}}},
        "workers": {"aliases": {name: dict(alias) for name in names}},
    }
    if placed:
        whole["taskgraph"]["register"] = "taskgraph_workers:register"
        whole["workers-config"] = {
            "workers": {
                "b-cpu.*": {"env": dict(CPU)},
                "b-gpu.*": {"env": dict(GPU)},
            },
            "profiles": {"standard": {"workers": {n: f"{n}-standard" for n in NAMES[1:]}}},
            "select": {"default": "standard"},
            "require": [{"workers": "b-gpu.*", "env": ["GPUS", "WORKSPACE"]}],
        }
    return whole


def name_of(kind: str) -> str:
    """The worker name that the tasks of a kind ask for: one, as nearly everywhere."""
    return NAMES[int(kind[-3:]) % len(NAMES)]


def _kind(kind: str, tasks: int, placed: bool) -> dict[str, Any]:
    name = name_of(kind)
    env = {"LANG": "C.UTF-8"}
    if not placed:
        env |= CPU if name.startswith("b-cpu") else GPU
        name = name if name == NAMES[0] else f"{name}-standard"
    return {
        "task-defaults": {
            "description": "A task",
            "worker-type": name,
            "worker": {"docker-image": "debian:12", "max-run-time": 3600, "env": env},
            "run": {"using": "run-task", "command": "true", "cwd": "{checkout}"},
        },
        "tasks": {f"task-{index:05}": {} for index in range(tasks)},
    }


def _dump(path: Path, value: Any) -> None:
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    path.write_text(yaml.dump(value, Dumper=dumper, sort_keys=False))
