"""The pages about dispatch, done as a reader would do them, and what else they say."""

from __future__ import annotations

import ast
import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from local_jobs import job
from trainings import Site

from taskgraph_workers.config import check
from taskgraph_workers.dispatch import message
from taskgraph_workers.dispatch.executors.command import env_file
from taskgraph_workers.dispatch.executors.progress_file import IGNORED
from taskgraph_workers.dispatch.ledger import queries
from taskgraph_workers.dispatch.ledger.database import open_ledger
from taskgraph_workers.dispatch.model import (
    DROPPED,
    END_ROWS,
    IMAGES_DOWNLOADED,
    MACHINE_ROWS,
    SPELLINGS,
    Message,
)
from taskgraph_workers.dispatch.state import STATE
from tests.graph.support import ROOT
from tests.pages import File, Reader, steps, trainer

DOCS = ROOT / "docs"
SERVICE = DOCS / "how-to" / "run-dispatch-as-a-service.md"
CARE = DOCS / "how-to" / "look-after-dispatch.md"
PROMISES = DOCS / "concepts" / "promises.md"
MESSAGES = DOCS / "reference" / "messages.md"


@pytest.fixture
def reader(tmp_path: Path, pytestconfig: pytest.Config) -> Reader:
    """Someone with an empty folder, on a machine with four GPUs."""
    made = trainer(tmp_path / "desk", pytestconfig.getoption("--update-golden"))
    made.path = f"{ROOT / 'tests' / 'stand_ins' / 'four'}{os.pathsep}{made.path}"
    return made


@pytest.mark.parametrize("page", ["write-a-trainer", "plug-in-your-machines"])
def test_a_page_on_trainings(page: str, reader: Reader):
    """What it has its reader write works, and each command prints what is shown."""
    assert reader.follow(DOCS / "how-to" / f"{page}.md")


LAB = 'echo "$3 would train with $TRAINING_IMAGES_CONTAINER"'


@pytest.mark.parametrize(
    ("trainer_does", "wanted", "code", "said"),
    [
        (LAB, {}, 0, "a/b would train with images"),
        ("echo oops >&2; exit 3", {}, 3, "oops"),
        ("false", {}, 1, ""),
        (LAB, {"GPUS": {"detect": "gpu-indices"}}, 69, "GPUS: nvidia-smi failed"),
    ],
    ids=["well", "with a code", "in silence", "before it starts"],
)
def test_how_a_training_of_the_lab_ends(
    tmp_path: Path, trainer_does: str, wanted: dict[str, dict[str, str]], code: int, said: str
):
    """Its code is told, and what was said is kept: of a trainer, or where the env file ends it."""
    page = DOCS / "how-to" / "plug-in-your-machines.md"
    scripts = [s.text for s in steps(page) if isinstance(s, File) and s.name == "lab.sh"]
    assert LAB in scripts[0]
    (tmp_path / "lab.sh").write_text(scripts[0].replace(LAB, trainer_does))
    asked = job(env={"TRAINING_IMAGES_CONTAINER": "images"}, detect=wanted)
    (tmp_path / "env-file").write_text(env_file(asked))
    environ = {"PATH": f"{ROOT / 'tests' / 'stand_ins' / 'no-devices'}:/usr/bin:/bin"}

    def lab(*words: str) -> str:
        return subprocess.run(
            ["sh", "lab.sh", *words], cwd=tmp_path, env=environ, check=True, text=True,
            stdout=subprocess.PIPE,
        ).stdout  # fmt: skip

    lab("start", "tw-1", "a/b", "env-file")
    limit = time.monotonic() + 30
    while (told := lab("poll", "tw-1").strip()) == "running":
        assert time.monotonic() < limit
        time.sleep(0.02)
    phase = "failed" if code else "succeeded"
    assert json.loads(told) == {"phase": phase, "machine": "tw-1", "exit_code": code}
    assert said in (tmp_path / "jobs" / "tw-1" / "output").read_text()


def test_the_training_of_the_readme(reader: Reader):
    """Two commands and this repository's own example are a whole training."""
    shutil.copytree(ROOT / "examples", reader.here / "examples")
    assert reader.follow(ROOT / "README.md", after="## Dispatch", before="## Install")


# --- promises -------------------------------------------------------------------------------


def named(file: Path) -> set[str]:
    """The functions and classes of a file of tests."""
    parts = ast.walk(ast.parse(file.read_text("utf-8")))
    return {each.name for each in parts if isinstance(each, (ast.FunctionDef, ast.ClassDef))}


def test_every_promise_names_tests_that_there_are():
    """P1 to P12, each with the tests that prove it."""
    rows = re.findall(r"^\| (P\d+) \|(.*)$", PROMISES.read_text("utf-8"), re.MULTILINE)
    assert [name for name, _ in rows] == [f"P{number}" for number in range(1, 13)]
    for name, row in rows:
        tests = re.findall(r"`(\S+\.py)::(\w+)`", row)
        assert tests, f"{name} is proved by nothing"
        for file, test in tests:
            assert test in named(ROOT / "tests" / file), f"{name}: {file} has no {test}"


# --- messages -------------------------------------------------------------------------------


def first_cells(page: Path, heading: str) -> set[str]:
    """The names in the first column of the table below a heading."""
    text = page.read_text("utf-8")
    below = text[text.index(f"## {heading}\n") :].split("\n## ")[0]
    first = [line.split("|")[1] for line in below.splitlines() if line.startswith("| `")]
    return set(re.findall(r"`([^`]+)`", " ".join(first)))


def test_the_fields_of_a_start_message():
    """Those of the page are those that are read; what it calls needed is."""
    text = MESSAGES.read_text("utf-8")
    needed = set(re.findall(r"^\| `(\w+)`, needed", text, re.MULTILINE))
    fields = first_cells(MESSAGES, "The start message")
    assert fields - needed == {message.BASE_MODEL}
    read = message.read(json.dumps({name: "x" for name in needed}).encode())
    assert isinstance(read, Message)
    for name in needed:
        others = {other: "x" for other in needed - {name}}
        assert not isinstance(message.read(json.dumps(others).encode()), Message)


def test_the_fields_of_an_end_message():
    """Those of the page are those that are told, its example included."""
    told = message.end_message("first", "failed", "my-box", 0, "it ended with exit code 3")
    assert first_cells(MESSAGES, "The end message") == set(told)
    example = re.search(
        r"^```json\n(.*?)```", MESSAGES.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert example is not None
    assert json.loads(example[1]) == told


def test_the_names_of_progress():
    """All that have a meaning to more than one trainer are on the page."""
    known = {*END_ROWS.values(), *MACHINE_ROWS, IMAGES_DOWNLOADED, "modelIteration1Done"}
    assert first_cells(MESSAGES, "Progress") == known | {IGNORED, DROPPED}
    assert all(f"`{other}`" in MESSAGES.read_text("utf-8") for other in SPELLINGS)


def test_every_code_of_a_dead_letter_is_told():
    """The codes of the page are those that the code has."""
    python = "\n".join(
        file.read_text("utf-8")
        for file in (ROOT / "taskgraph_workers" / "dispatch").glob("**/*.py")
    )
    codes = set(re.findall(r'_Bad\(\s*"([a-z-]+)"', python))
    codes |= set(re.findall(r'Refused\("([a-z-]+)"', python))
    codes |= set(re.findall(r'yield "([a-z-]+)", f', python))
    codes |= {"unknown-sku", "image-not-allowed", "no-placement", "conflict", "handler-failed"}
    assert first_cells(CARE, "Dead letters") == codes


# --- a service ------------------------------------------------------------------------------


def unit() -> str:
    """The unit that the page shows."""
    found = re.search(r"```ini\n(.*?)```", SERVICE.read_text("utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_unit_leaves_trainings_alone():
    """It ends the dispatcher only, and its command is one that there is."""
    parsed = configparser.ConfigParser(interpolation=None)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read_string(unit())
    service = parsed["Service"]
    assert service["KillMode"] == "process"
    assert service["Environment"].startswith("TASKGRAPH_WORKERS_STATE=%S/")
    assert service["Environment"].endswith(service["StateDirectory"])
    assert " dispatch run --config " in service["ExecStart"]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd here")
def test_the_unit_is_one(tmp_path: Path):
    """Systemd finds nothing wrong with it, save that its program is not installed here."""
    file = tmp_path / "dispatch.service"
    text = unit().replace("/opt/dispatch/bin/taskgraph-workers", "/bin/true")
    file.write_text(text.replace("User=trainer\n", ""), "utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", file], capture_output=True, text=True, check=False
    )
    about = [line for line in done.stderr.splitlines() if "dispatch.service" in line]
    assert about == []


def test_a_back_up_as_the_page_has_it(tmp_path: Path):
    """It is made while others have the ledger open, holds all that it held, and replaces none."""
    site = Site(tmp_path)
    site.send("r1")
    line = re.search(r"^\$ taskgraph-workers dispatch (backup .*)$", CARE.read_text("utf-8"), re.M)
    assert line is not None
    copy = tmp_path / "copy"
    copy.mkdir()
    words = line[1].replace("/backup/", f"{copy}/").split()
    with open_ledger(site.state) as ledger:
        ledger.see(queries.is_idle)
        assert "is copied to" in site.call(*words)
    site.finish()
    with open_ledger(copy) as ledger:
        assert not ledger.see(queries.is_idle)
    site.call(*words, code=2)


def test_every_configuration_is_one():
    """What pages about dispatch show of a configuration has no fault."""
    pages = ("tutorials/first-training", "how-to/write-a-trainer", "how-to/plug-in-your-machines")
    for page in pages:
        blocks = re.findall(
            r"```yaml\n(.*?)```", (DOCS / f"{page}.md").read_text("utf-8"), re.DOTALL
        )
        assert blocks
        for block in blocks:
            config, problems = check(yaml.safe_load(block))
            assert [each for each in problems if each.severity == "error"] == []
            assert config is not None
            assert config.dispatch is not None


def test_another_broker_can_be_bridged(tmp_path: Path):
    """The page's two commands: what comes twice is trained once, and ends are read on."""
    line_in, line_out = re.findall(
        r"`taskgraph-workers dispatch ((?:send -|ends .*?))`", SERVICE.read_text("utf-8")
    )[:2]
    site = Site(tmp_path)
    start = (ROOT / "examples" / "dispatch" / "start.json").read_bytes()
    for _ in range(2):
        subprocess.run(
            [sys.executable, "-m", "taskgraph_workers", "dispatch", *line_in.split()],
            env={**os.environ, "PYTHONPATH": str(ROOT), STATE: str(site.state)},
            input=start,
            stdout=subprocess.DEVNULL,
            check=True,
        )
    site.finish()
    first = json.loads(site.call(*line_out.replace("LAST", "0").split()))
    assert [each["outcome"] for each in first["ends"]] == ["succeeded"]
    last = str(first["last"])
    assert json.loads(site.call(*line_out.replace("LAST", last).split()))["ends"] == []
