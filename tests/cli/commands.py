"""The command, run as a person would run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.graph.support import LOCAL, ROOT


def command(*arguments: object, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    """What `taskgraph-workers <arguments>` did, 80 columns wide and outside of any task."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(LOCAL)}
    clean.pop("TASKGRAPH_WORKERS_PROFILE", None)
    # The example gives itself a root URL; the small projects of tests have none.
    urls = {} if cwd == ROOT else {"TASKCLUSTER_ROOT_URL": "https://tc.example.com"}
    fixed = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "80"}
    return subprocess.run(
        [sys.executable, "-m", "taskgraph_workers", *map(str, arguments)],
        cwd=cwd,
        env={**clean, **urls, **fixed, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def answer(*arguments: object, code: int = 0, cwd: Path = ROOT, **env: str) -> dict[str, Any]:
    """The JSON object that a command prints; fails the test where it ends with another code."""
    done = command(*arguments, "--json", cwd=cwd, **env)
    assert done.returncode == code, done.stderr + done.stdout
    said: dict[str, Any] = json.loads(done.stdout)
    assert said.pop("version") == 1
    return said


def place(problem: dict[str, Any]) -> str:
    """Where a problem points, as an editor takes it."""
    return f"{problem['file']}:{problem['line']}:{problem['column']}"


def written(file: Path, text: str, nth: int = 1) -> str:
    """The `line:column` of a text in a file: that of its nth time there."""
    content = file.read_text(encoding="utf-8")
    at = -1
    for _ in range(nth):
        at = content.index(text, at + 1)
    line = content.count("\n", 0, at) + 1
    return f"{line}:{at - content.rfind(chr(10), 0, at)}"
