"""Real dispatchers in real processes, killed for real, and trainers that leave a trace."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from ledgers import body

from taskgraph_workers.dispatch.failpoints import VARIABLE

ROOT = Path(__file__).resolve().parent.parent

#: A configuration whose trainers run on this machine, without any engine.
CONFIG = """\
workers:
    aliases: {{g: {{provisioner: p, worker-type: g, implementation: docker-worker, os: linux}}}}
workers-config:
    dispatch:
        skus: {{ND6: g}}
        images: [cwolff/my_keras_model]
        local: {{engine: none, at-once: 8, commands: {{cwolff/my_keras_model: {command}}}}}
"""

#: A trainer that leaves a line for each time that it ran.
TRAINER = (
    'echo "$TRAINING_REQUEST_ID" >> {trace}; '
    'echo \'{{"name": "imagesDownloaded"}}\' >> "$TRAINING_PROGRESS_FILE"; sleep {seconds}'
)


class Site:
    """A folder with a configuration, a state, and the trace of trainings.

    ``apart``: messages are in a queue of their own.
    """

    def __init__(self, folder: Path, seconds: float = 0.0, apart: bool = False) -> None:
        self.folder = folder
        self.queue = folder / "queue" if apart else None
        self.state = folder / "state"
        self.trace = folder / "trace"
        trainer = TRAINER.format(trace=self.trace, seconds=seconds)
        self.config = folder / "config.yml"
        command = json.dumps(["/bin/sh", "-c", trainer])
        self.config.write_text(CONFIG.format(command=command), encoding="utf-8")

    def start(self, *words: str, failpoint: str = "", **env: str) -> subprocess.Popen[str]:
        """Begin a command of ``dispatch``."""
        said = {"TASKGRAPH_WORKERS_STATE": str(self.state), "PYTHONPATH": str(ROOT), **env}
        if self.queue is not None:
            said["TASKGRAPH_WORKERS_BROKER"] = f"sqlite:///{self.queue}"
        return subprocess.Popen(
            [sys.executable, "-m", "taskgraph_workers", "dispatch", *words],
            env={**os.environ, "COLUMNS": "80", **said, VARIABLE: failpoint},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, *words: str, code: int = 0, **more: str) -> str:
        """What a command prints; fails where it ends with another code."""
        run = self.start(*words, **more)
        out, err = run.communicate(timeout=120)
        assert run.returncode == code, err + out
        return out

    def dispatcher(self, failpoint: str = "") -> subprocess.Popen[str]:
        """A dispatcher that ends when all is done, or at a failpoint."""
        words = ("run", "--config", str(self.config), "--until-idle")
        return self.start(*words, failpoint=failpoint)

    def killed_at(self, failpoint: str) -> None:
        """Have a dispatcher that is killed at a step; fails where it never gets there."""
        killed = self.dispatcher(failpoint)
        killed.communicate(timeout=60)
        assert killed.returncode == -signal.SIGKILL

    def finish(self) -> str:
        """Have a dispatcher do all that is left; what it logged."""
        run = self.dispatcher()
        _, err = run.communicate(timeout=300)
        assert run.returncode == 0, err
        return err

    def send(self, *request_ids: str, **changes: Any) -> None:
        """Queue messages."""
        for number, each in enumerate(request_ids):
            (self.folder / f"m{number}.json").write_bytes(body(each, **changes))
        self.call("send", *(f"m{number}.json" for number in range(len(request_ids))))

    def requests(self) -> dict[str, dict[str, Any]]:
        """All requests, as ``status`` shows them."""
        said = json.loads(self.call("status", "--json", "--limit", "10000"))
        return {each["requestId"]: each for each in said["requests"]}

    def ends(self) -> list[dict[str, Any]]:
        """All end messages, as ``ends`` shows them."""
        found: list[dict[str, Any]] = json.loads(self.call("ends", "--json", "--limit", "10000"))[
            "ends"
        ]
        return found

    def trained(self) -> Counter[str]:
        """How often each request was trained, as the trainings themselves say."""
        return Counter(self.trace.read_text("utf-8").split() if self.trace.exists() else [])

    def assert_each_once(self, *request_ids: str) -> None:
        """Each was trained once, succeeded, and has one end message; nothing is a dead letter."""
        assert self.trained() == dict.fromkeys(request_ids, 1)
        assert {each["state"] for each in self.requests().values()} == {"succeeded"}
        assert sorted(end["requestId"] for end in self.ends()) == sorted(request_ids)
        assert json.loads(self.call("dead", "--json"))["dead"] == []
