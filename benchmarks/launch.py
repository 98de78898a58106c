"""What ``launch`` costs, from the command to the printed script, beside Merlin's own launcher.

Run by hand, from the root of the tree, with the package installed::

    python -m benchmarks launch --merlin .venvs/merlin/bin/merlin --runs 9

Prints a table in Markdown: wall time of whole processes, in turn, and the ratio pair by pair.
``merlin run-workers SPEC --echo`` prints the commands that it would start workers with. Both find
an empty PATH and an empty home: they ask no scheduler, which takes as long as that one pleases,
and no configuration of the user's is read.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import tables

ROOT = Path(__file__).resolve().parent.parent
SPEC = ROOT / "tests" / "data" / "launch" / "pair.yaml"


def seconds(command: Sequence[str], folder: str) -> float:
    """How long a command takes that prints something, from start to end."""
    # Without PYTHONDONTWRITEBYTECODE, for one, which has all modules compiled each time.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    environment |= {"HOME": folder, "PATH": folder, "PYTHONPATH": str(ROOT)}
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    taken = time.perf_counter() - start
    assert done.stdout, done.stderr
    return taken


def pairs(ours: Sequence[str], theirs: Sequence[str], runs: int) -> list[tuple[float, float]]:
    """Both commands in turn, after one warm-up of each."""
    with tempfile.TemporaryDirectory() as folder:
        taken = [(seconds(ours, folder), seconds(theirs, folder)) for _ in range(runs + 1)]
    return taken[1:]


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks launch", description="What launch costs.")
    parser.add_argument("--merlin", default=str(ROOT / ".venvs" / "merlin" / "bin" / "merlin"))
    parser.add_argument("--spec", default=str(SPEC))
    parser.add_argument("--runs", type=int, default=9)
    given = parser.parse_args(argv)
    if not Path(given.merlin).exists():
        sys.exit(f"there is no {given.merlin}: `make .venvs/merlin/.test` installs it")
    spec = str(Path(given.spec).resolve())
    ours = [sys.executable, "-m", "taskgraph_workers", "launch", spec]
    taken = pairs(ours, [given.merlin, "run-workers", spec, "--echo"], given.runs)
    tables.show(
        f"{Path(spec).name}, {given.runs} runs",
        ("taskgraph-workers launch, s", [a for a, _ in taken], 3),
        ("merlin run-workers --echo, s", [b for _, b in taken], 3),
        ("Merlin's time over ours, pair by pair", [b / a for a, b in taken], 1),
    )


if __name__ == "__main__":
    main()
