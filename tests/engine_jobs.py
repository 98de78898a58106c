"""Jobs in containers, for tests: stand-ins for engines, whose containers outlive their clients."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from local_jobs import Bench

from taskgraph_workers.dispatch.executors.local import LocalExecutor
from taskgraph_workers.dispatch.message import key_of
from taskgraph_workers.model import Dispatch

KEY = key_of("r", 1)
STAND_IN = Path(__file__).resolve().parent / "stand_ins" / "engines" / "engine.py"

#: What an image does: says that it started, waits, and ends with the code in a file.
IMAGE = """
echo "start $TRAINING_RUN" >> {trace}
echo '{{"name": "imagesDownloaded"}}' >> "$TRAINING_PROGRESS_FILE"
until [ -e {go} ]; do sleep 0.02; done
echo "end $TRAINING_RUN" >> {trace}
exit $(cat {go})
"""


class Engine:
    """An engine of this name, alone in PATH."""

    def __init__(self, bench: Bench, name: str) -> None:
        self.name = name
        self.bench, self.home = bench, bench.folder / "engine"
        programs = bench.folder / "bin"
        programs.mkdir()
        (self.home / "containers").mkdir(parents=True)
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} {name} "$@"\n')
        (programs / name).chmod(0o755)
        for tool in ("sh", "sleep", "cat", "mv", "pgrep"):
            (programs / tool).symlink_to(shutil.which(tool) or "")
        image = IMAGE.format(trace=bench.trace, go=bench.go)
        (self.home / "image").write_text(image)
        self.environ = {"PATH": str(programs), "STAND_IN": str(self.home), "SECRET": "x"}

    def executor(
        self, failpoint: str = "", grace_s: int = 5, rest_s: float = 0.01
    ) -> LocalExecutor:
        environ = {**self.environ, "TASKGRAPH_WORKERS_FAILPOINT": failpoint}
        made = LocalExecutor(self.bench.state, Dispatch(), environ, grace_s=grace_s)
        made.rest_s = rest_s
        return made

    def go(self, code: int = 0) -> None:
        self.bench.folder.joinpath("new").write_text(str(code))
        self.bench.folder.joinpath("new").rename(self.bench.go)

    @property
    def container(self) -> Path:
        return next(self.home.glob(f"containers/tw-{KEY}-*"), self.home / "none")
