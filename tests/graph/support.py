"""Whole graphs, made by the `taskgraph` command as a person would run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLE = ROOT / "taskcluster"

# The Taskgraph of the interpreter that runs the tests, whatever PATH says.
COMMAND = (sys.executable, "-c", "import sys; from taskgraph.main import main; sys.exit(main())")
# What would make a graph on this machine differ from one elsewhere. TASK_ID and its like are set
# where the tests themselves run in a task.
LOCAL = ("TASK", "MOZ_", "GITHUB_", "PYTHON")


def run_taskgraph(
    *arguments: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What `taskgraph <arguments>` did, in an environment without anything from Taskcluster."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(LOCAL)}
    # Other values would put sets into another order.
    fixed = {"PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        env={**clean, **fixed, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )


def full_graph(
    root: Path, parameters: Path | None = None, env: Mapping[str, str] | None = None
) -> dict[str, dict[str, Any]]:
    """What `taskgraph full` makes of a project: its tasks, by label.

    `root` is the folder that holds config.yml. Fails the test, with all that was printed, where
    there is no graph.
    """
    arguments = ["full", "--json", "--root", str(root)]
    if parameters is not None:
        arguments += ["--parameters", str(parameters)]
    run = run_taskgraph(*arguments, cwd=_project(root), env=env)
    assert run.returncode == 0, run.stderr
    graph: dict[str, dict[str, Any]] = json.loads(run.stdout)
    return graph


def _project(root: Path) -> Path:
    """The clone that a root is part of, or the folder around it: Taskgraph looks for it here."""
    clones = [folder for folder in root.parents if (folder / ".git").exists()]
    return clones[0] if clones else root.parent
