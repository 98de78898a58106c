"""A real Redis, and a real Merlin that is set up for it, for as long as tests run.

Merlin lives in an environment of its own: ``.venvs/merlin``, which ``make test`` makes, or the
folder of its commands that the environment variable ``TEST_MERLIN`` names.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from keeper import Keeper, keeper
from needs import lacking, needs
from slurm_cluster import free_ports

ROOT = Path(__file__).resolve().parent.parent

# Its own `merlin config create` writes the same, in ten times the time.
APP = """\
broker: {{name: redis, server: 127.0.0.1, port: {port}, db_num: 0}}
results_backend: {{name: redis, server: 127.0.0.1, port: {port}, db_num: 1, encryption_key: {key}}}
celery: {{overrides: null}}
"""


class MerlinServices:
    """The Redis, and the environment in which ``merlin`` and ``celery`` use it."""

    def __init__(self, kept: Keeper, bin: Path, port: int) -> None:
        self.folder = kept.folder
        self.bin = bin
        self.port = port
        self._kept = kept

    @property
    def env(self) -> dict[str, str]:
        """What to lay over an environment: a home with Merlin's configuration, and its PATH."""
        path = os.pathsep.join((str(self.bin), os.environ.get("PATH", os.defpath)))
        # Celery refuses to unpickle as root unless told that it may.
        return {"HOME": str(self.folder), "PATH": path, "C_FORCE_ROOT": "1"}

    def merlin(self, *words: str, cwd: Path, timeout_s: float = 120) -> str:
        """What a call of ``merlin`` printed; fails the test where it failed."""
        done = subprocess.run(
            [str(self.bin / "merlin"), *words],
            cwd=cwd,
            env={**os.environ, **self.env},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def workers(self, cwd: Path) -> list[str]:
        """The names of the workers that answer, as ``merlin query-workers`` gives them."""
        return sorted(re.findall(r"celery@([\w.-]+)", self.merlin("query-workers", cwd=cwd)))

    def redis(self, *words: str) -> str:
        """What Redis answers."""
        command = ["redis-cli", "-p", str(self.port), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
        return done.stdout.strip()

    def waiting(self, queue: str) -> int:
        """How many tasks are in a queue, and with no worker."""
        return int(self.redis("llen", f"[merlin]_{queue}"))

    def start_worker(self, name: str, *queues: str) -> None:
        """Start a worker of these queues, outside of any scheduler."""
        env = [f"{key}={value}" for key, value in self.env.items()]
        served = ",".join(f"[merlin]_{queue}" for queue in queues)
        words = ["-A", "merlin", "worker", "--concurrency", "1", "-n", name, "-Q", served]
        self._kept.start("env", *env, "celery", *words)

    def clear(self) -> None:
        """Forget every task and every result."""
        self.redis("flushall")

    def start(self) -> bool:
        """Start Redis; whether it came up: its port may have been taken in between."""
        options = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self._kept.start(needs("redis-server"), "--port", str(self.port), *options)
        deadline = time.monotonic() + 10
        while self.redis("ping") != "PONG":
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True


@contextmanager
def merlin_services() -> Iterator[MerlinServices]:
    """Start Redis for as long as the block runs; skips the test where it or Merlin is missing."""
    for tool in ("redis-server", "redis-cli"):
        needs(tool)
    bin = merlin_bin()
    for _ in range(3):
        with keeper("merlin") as kept:
            services = MerlinServices(kept, bin, free_ports(1)[0])
            _set_up(kept.folder / ".merlin", services.port)
            if services.start():
                yield services
                return
    raise AssertionError("Redis does not start")


def merlin_bin() -> Path:
    """The folder of Merlin's commands; skips the test where there is none."""
    bin = Path(os.environ.get("TEST_MERLIN") or ROOT / ".venvs" / "merlin" / "bin")
    if not (bin / "merlin").exists():
        lacking("Merlin is not installed: `make .venvs/merlin/.test` does it")
    return bin


def _set_up(folder: Path, port: int) -> None:
    """Merlin's own folder, ``~/.merlin``."""
    folder.mkdir()
    key = folder / "encrypt_data_key"
    key.write_bytes(base64.urlsafe_b64encode(os.urandom(32)))
    (folder / "app.yaml").write_text(APP.format(port=port, key=key))
