"""Whole scripts, as an administrator would read them: tests/data/launch/scripts.

After a change that is meant: pytest tests/launch/test_golden.py --update-golden, and read the diff.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from needs import needs
from taskgraph_workers.cli import main

DATA = Path(__file__).resolve().parent.parent / "data" / "launch"
GOLDEN = DATA / "scripts"

NODE = ("--node", "cores=36,gpus=4", "--walltime", "2h")
#: What is launched, by shape: see the two inputs beside the scripts.
SHAPES = {
    "merlin": ("demo.yaml", *NODE),
    "cluster": ("--cluster", "lab", "--config", "lab.yml"),
    "flux-inside": ("demo-flux.yaml", *NODE),
}
SCRIPTS = [
    *((scheduler, shape) for shape in ("merlin", "cluster") for scheduler in ("slurm", "flux")),
    *((scheduler, shape) for shape in ("merlin", "cluster") for scheduler in ("lsf", "pbs")),
    ("slurm", "flux-inside"),
    ("lsf", "flux-inside"),
]


@pytest.fixture
def shellcheck() -> str:
    """The tool, found before PATH is another."""
    return needs("shellcheck")


@pytest.fixture
def script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    """What is printed for a scheduler and a shape, in /home/user, with Merlin in /opt/merlin."""
    for name in ("demo.yaml", "lab.yml"):
        text = (GOLDEN / name).read_text("utf-8")
        (tmp_path / name).write_text(text, "utf-8")
    flux = (GOLDEN / "demo.yaml").read_text("utf-8").replace("type: slurm", "type: flux")
    (tmp_path / "demo-flux.yaml").write_text(flux, "utf-8")
    merlin = tmp_path / "opt" / "merlin"
    merlin.parent.mkdir()
    merlin.write_text("#!/bin/sh\n")
    merlin.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(merlin.parent))
    monkeypatch.setattr("taskgraph_workers.launch.script.VERSION", "1.0")

    def script(scheduler: str, shape: str) -> str:
        code = main(["launch", *SHAPES[shape], "--scheduler", scheduler])
        out, err = capsys.readouterr()
        assert code == 0, err
        text: str = out.replace(str(merlin.parent), "/opt/merlin/bin")
        return text.replace(str(tmp_path), "/home/user")

    return script


@pytest.mark.parametrize(("scheduler", "shape"), SCRIPTS)
def test_the_script(script: Any, pytestconfig: pytest.Config, scheduler: str, shape: str):
    """It is the one that was looked at."""
    file = GOLDEN / f"{shape}.{scheduler}"
    text = script(scheduler, shape)
    if pytestconfig.getoption("--update-golden"):
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8")


@pytest.mark.parametrize(("scheduler", "shape"), SCRIPTS)
def test_it_is_clean_bash(shellcheck: str, script: Any, tmp_path: Path, scheduler: str, shape: str):
    """Neither bash nor shellcheck has anything to say."""
    file = tmp_path / "script.sh"
    file.write_text(script(scheduler, shape), "utf-8")
    subprocess.run(["/bin/bash", "-n", str(file)], check=True)
    found = subprocess.run(
        [shellcheck, "-s", "bash", "-S", "style", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout == ""


#: What a script names: functions, and variables by an assignment, or by what reads them.
NAMED = re.compile(
    r"""(?mx) ^\s*(\w+)\(\)
    | (?:^|[\s;({"'])([a-z]\w*)(?:\[[^]\n]*\])?\+?=
    | \bfor\ (?:\(\()?(\w+)\ (?:in\b|=)
    | (?:\bread\ -ra?|\bmapfile\ -t|\blocal)\ (\w+)"""
)


@pytest.mark.parametrize(("scheduler", "shape"), SCRIPTS)
def test_no_name_is_one_of_the_users(script: Any, scheduler: str, shape: str):
    """What the script names begins with tw_, or is a variable for programs, or bash's own."""
    lines = [line for line in script(scheduler, shape).splitlines() if line[:1] != "#"]
    code = "\n".join(line.partition(" # ")[0] for line in lines if " on=" not in line)
    names = {name for found in NAMED.findall(code) for name in found if name}
    assert len(names) > 50
    assert {name for name in names if not re.match("tw_|[A-Z]|_$", name)} == set()


def test_nothing_is_left_over():
    """Each script that is kept is one that is tested."""
    kept = {each.name for each in GOLDEN.iterdir()} - {"demo.yaml", "lab.yml"}
    assert kept == {f"{shape}.{scheduler}" for scheduler, shape in SCRIPTS}
