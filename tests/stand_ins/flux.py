#!/usr/bin/env python3
"""Stands in for flux on one machine: getattr, exec, run, as a real one was recorded to be.

FLUX_STAND_IN names a folder with the file `shape`: brokers, cores and GPUs of each. What runs on a
broker knows its rank by FLUX_STAND_IN_RANK.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(os.environ["FLUX_STAND_IN"])
SIZE, CORES, GPUS = map(int, (HERE / "shape").read_text().split())
VALUED = {"-r", "-d", "-N", "-n", "-c", "-g", "-o"}


def options(words: list[str], flags: tuple[str, ...]) -> tuple[dict[str, list[str]], list[str]]:
    """Options up to the first word that is none, and the command behind them."""
    found: dict[str, list[str]] = {}
    while words and words[0].startswith("-"):
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if name in flags:
            found[name] = [""]
        elif name.startswith("--") and equals:
            found.setdefault(name, []).append(value)
        elif name in VALUED:
            found.setdefault(name, []).append(words.pop(0))
        else:
            sys.exit(f"stand-in flux: unknown option {word}")
    return found, words


def run_all(commands: list[tuple[list[str], dict[str, str], str]]) -> int:
    """Run them at once, each in a process group of its own; the highest exit code."""
    processes: list[subprocess.Popen[bytes]] = []

    def forward(number: int, _: object) -> None:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, forward)
    worst = 0
    for argv, env, folder in commands:
        try:
            processes.append(
                subprocess.Popen(
                    argv,
                    env={**os.environ, **env},
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    preexec_fn=begin,  # noqa: PLW1509 (there is one thread)
                )
            )
        except FileNotFoundError:
            worst = 127
    for process in processes:
        code = process.wait()
        worst = max(worst, 128 - code if code < 0 else code)
    return worst


def begin() -> None:
    """What a broker gives its children: a process group, and no signal that is ignored."""
    os.setpgrp()
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def exec_(words: list[str]) -> int:
    said, command = options(words, ("-n",))
    if said["-r"] != ["all"] or "-n" not in said:
        sys.exit(f"stand-in flux: exec {said}")
    folder = said["-d"][0]
    return run_all([(command, {"FLUX_STAND_IN_RANK": str(r)}, folder) for r in range(SIZE)])


@contextmanager
def held(rank: str, cores: int, gpus: int) -> Iterator[tuple[list[int], list[int]]]:
    """Cores and GPUs that nobody else has until the end; fails where there are too few."""
    with (HERE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        file = HERE / f"used-{rank}"
        used = json.loads(file.read_text()) if file.exists() else [[], []]
        free = [[i for i in range(n) if i not in u] for n, u in zip((CORES, GPUS), used)]
        if len(free[0]) < cores or len(free[1]) < gpus:
            sys.exit('0.026s: job.exception fX type=alloc severity=0 type="unsatisfiable"')
        taken = (free[0][:cores], free[1][:gpus])
        file.write_text(json.dumps([u + t for u, t in zip(used, taken)]))
    yield taken


def run(words: list[str]) -> int:
    said, command = options(words, ())
    expected = ["cpu-affinity=per-task", "gpu-affinity=per-task", "exit-timeout=none"]
    kind, _, rank = said["--requires"][0].partition(":")
    if said["-o"] != expected or said["-N"] != ["1"] or kind != "rank":
        sys.exit(f"stand-in flux: run {said}")
    tasks = int(said["-n"][0])
    cores, gpus = int(said["-c"][0]), int(said.get("-g", ["0"])[0])
    with held(rank, tasks * cores, tasks * gpus) as (_, mine):
        commands = []
        for task in range(tasks):
            visible = ",".join(map(str, mine[task * gpus : (task + 1) * gpus])) or "-1"
            env = {"FLUX_STAND_IN_RANK": rank, "FLUX_TASK_RANK": str(task), "FLUX_JOB_ID": "fJ"}
            commands.append((command, {**env, "CUDA_VISIBLE_DEVICES": visible}, said["--cwd"][0]))
        return run_all(commands)


def getattr_(words: list[str]) -> int:
    values = {
        "size": str(SIZE),
        "rank": os.environ.get("FLUX_STAND_IN_RANK", "0"),
        "instance-level": os.environ.get("FLUX_STAND_IN_LEVEL", "1"),
    }
    print(values[words[0]])
    return 0


def start(words: list[str]) -> int:
    """One broker in each task of a Slurm step; the first of them runs the command."""
    ended = HERE / f"ended-{os.environ['SLURM_JOB_ID']}"
    if os.environ["SLURM_PROCID"] == "0":
        code = run_all([(words, {"FLUX_URI": "local://here"}, ".")])
        ended.touch()
        return code
    while not ended.exists():
        time.sleep(0.1)
    return 0


if __name__ == "__main__":
    sys.exit(
        {"start": start, "getattr": getattr_, "exec": exec_, "run": run}[sys.argv[1]](sys.argv[2:])
    )
