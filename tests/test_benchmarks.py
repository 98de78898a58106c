from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from merlin_services import merlin_bin

ROOT = Path(__file__).resolve().parent.parent
FULL = "from taskgraph.main import main; main()"


def rows(name: str, *options: str) -> list[str]:
    """What has a figure in the table of a benchmark, here of a small case."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", name, "--runs", "1", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return re.findall(r"^\| (.+?) \| -?[\d.]+ \|", done.stdout, re.MULTILINE)


def test_placement_is_measured():
    """Its part of `make bench` has a figure in each line of its table."""
    assert rows("placement", "--tasks", "4", "--kinds", "2") == [
        "per task, microseconds",
        "whole run without the plugin, CPU s",
        "whole run with the plugin, CPU s",
        "ratio, pair by pair",
    ]


def test_widths_are_measured():
    """Its part of `make bench` has a figure for each shape of graph."""
    shapes = [row.partition(",")[0] for row in rows("widths", "--tasks", "40")]
    assert shapes == ["chains", "layers", "near", "anywhere"]


def test_sizing_is_measured():
    """Its part of `make bench` has figures for sizing and for laying out each shape of groups."""
    shapes = [row.split(", ")[:2] for row in rows("sizing", "--workers", "40")]
    assert shapes == [
        [what, shape]
        for shape in ("one group", "four groups", "choice")
        for what in ("size", "lay out")
    ]


@pytest.mark.service
@pytest.mark.once
def test_launch_is_measured():
    """Its part of `make bench` has figures for our command, for Merlin's, and for their ratio."""
    assert rows("launch", "--merlin", str(merlin_bin() / "merlin")) == [
        "taskgraph-workers launch, s",
        "merlin run-workers --echo, s",
        "Merlin's time over ours, pair by pair",
    ]


def test_what_is_compared_is_the_same_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The project without the plugin says by hand what the plugin does to the other one."""
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setenv("TASKCLUSTER_ROOT_URL", "https://tc.example.com")
    from benchmarks import project

    graphs = []
    for placed in (False, True):
        root = tmp_path / str(placed)
        root.mkdir()
        parameters = project.write(root, 15, 5, placed)
        command = [sys.executable, "-c", FULL, "full", "-J", "-p", str(parameters)]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
        graphs.append(json.loads(done.stdout))
    by_hand, by_plugin = graphs
    assert len(by_hand) == 15
    assert by_plugin == by_hand
