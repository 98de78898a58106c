from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_placement_is_measured():
    """`make bench` runs, here on a small project, and has a figure in each line of its table."""
    small = ["--tasks", "4", "--kinds", "2", "--runs", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", *small],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^\| (.+?) \| -?[\d.]+ \|", done.stdout, re.MULTILINE) == [
        "per task, microseconds",
        "whole run without the plugin, CPU s",
        "whole run with the plugin, CPU s",
        "ratio, pair by pair",
    ]
