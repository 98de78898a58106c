"""The reference says what the code says."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from trainings import Site

from taskgraph_workers import cli, detect
from taskgraph_workers.dispatch.ledger import machines
from taskgraph_workers.dispatch.ledger.database import open_ledger
from tests.cli.commands import answer
from tests.graph.support import ROOT

REFERENCE = ROOT / "docs" / "reference"
PACKAGE = ROOT / "taskgraph_workers"
SCRIPTS = "tests/data/launch/scripts"
LAB = ("--cluster", "lab", "--config", f"{SCRIPTS}/lab.yml")
DEMO = (f"{SCRIPTS}/demo.yaml", "--node", "cores=36,gpus=4")
#: What shows each field there is, by command.
SHOWN = {
    "check": [("check", "--config", "tests/data/config/faults.yml")],
    "show": [("show",)],
    "explain": [("explain", "b-largegpu-xlargedisk", "--profile", "onprem")],
    "plan": [("plan", "--profile", "onprem", "--level", "1")],
    "detect": [("detect",)],
    "launch": [("launch", *LAB, "--size"), ("launch", *LAB), ("launch", *DEMO, "--size")],
}


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    """The module docs/generate.py."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", sorted(REFERENCE.glob("*.md")), ids=lambda page: page.name)
def test_what_is_generated_is_fresh(page: Path, generate: ModuleType):
    """After a change of a shape or an option: python docs/generate.py, and commit."""
    text = page.read_text("utf-8")
    assert text == generate.generated(text)


def test_what_is_generated_is_all(generate: ModuleType):
    """Every command has a heading, and every top-level key stands in the table."""
    commands = (REFERENCE / "commands.md").read_text("utf-8")
    assert re.findall(r"^## `(.*)`$", commands, re.MULTILINE) == list(cli.COMMANDS)
    keys = re.findall(r"^\| `(\S+)` ", generate.keys(""), re.MULTILINE)
    assert set(keys) >= {"include", "workers", "profiles", "select", "require", "protect"}
    page = (REFERENCE / "workers-config.md").read_text("utf-8")
    assert page.count("<!-- generated:") == page.count("<!-- end -->") > 10


# --- JSON -----------------------------------------------------------------------------------


def rows(page: str, heading: str) -> list[str]:
    """The names in the first column of the table below a heading."""
    text = (REFERENCE / page).read_text("utf-8")
    below = text[text.index(f"## {heading}\n") :].split("\n## ")[0]
    first = [line.split("|")[1] for line in below.splitlines() if line.startswith("| `")]
    return re.findall(r"`([^`]+)`", " ".join(first))


def fields(value: Any, path: str = "") -> Iterator[str]:
    """The path of each value that an object holds."""
    if isinstance(value, dict) and path not in DATA:
        for key, each in value.items():
            yield from fields(each, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for each in value:
            yield from fields(each, f"{path}[]")
    else:
        yield path


#: Values that are as a configuration says them.
DATA = {
    *("values[].value", "values[].overrode[].value", "choice.sources[].said"),
    "requests[].progress[].data",
}


def pattern(row: str) -> str:
    """What a field of the page stands for: a word in capitals for any name."""
    parts = re.split(r"\b[A-Z]{2,}\b", row)
    return ".+".join(map(re.escape, parts)) + r"(\[\])?(\.(detect|share|of|at-least))?"


@pytest.mark.parametrize("command", SHOWN)
def test_json_fields(command: str):
    """Each field that a command prints is on the page, and each on the page is printed."""
    code = 1 if command in ("check", "plan") else 0
    machine = f"{ROOT / 'tests' / 'stand_ins' / 'four'}{os.pathsep}{os.environ['PATH']}"
    printed = {f for a in SHOWN[command] for f in fields(answer(*a, code=code, PATH=machine))}
    told = rows("json.md", f"`{command}`")
    patterns = {row: re.compile(pattern(row)) for row in told}
    unknown = {f for f in printed if not any(p.fullmatch(f) for p in patterns.values())}
    assert {f for f in unknown if not any(row.startswith(f"{f}[]") for row in told)} == set()
    inner = {row for row in told if any(other.startswith(f"{row}.") for other in told)}
    unseen = {r for r, p in patterns.items() if not any(p.fullmatch(f) for f in printed)}
    assert unseen <= inner


@pytest.fixture
def dispatched(tmp_path: Path) -> Site:
    """A site with one request of each kind, a letter, and a machine that should be gone."""
    site = Site(tmp_path)
    site.send("r1")
    site.send("r2", trainingVmSku="ND7")
    site.finish()
    with open_ledger(site.state) as ledger:
        ledger.do(machines.created, machines.Named("vm-1", "pool"), 1.0)
    return site


@pytest.mark.parametrize("verb", ["status", "ends", "dead"])
def test_json_fields_of_dispatch(verb: str, dispatched: Site):
    """Each field that it prints is on the page, and each on the page is printed."""
    printed = set(fields(json.loads(dispatched.call(verb, "--json")))) - {"version"}
    assert set(rows("json.md", f"`dispatch {verb}`")) == printed


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["send", "m0.json"], 0),
        (["cancel", "r1"], 1),
        (["replay", "r1"], 0),
        (["replay", "r1", "--again", "--config", "config.yml"], 0),
        (["orphans"], 1),
        (["backup", "copy.sqlite"], 0),
    ],
)
def test_json_fields_of_other_commands_of_dispatch(words: list[str], code: int, dispatched: Site):
    """Those that its row names."""
    said = json.loads(dispatched.call(*words, "--json", code=code))
    text = (REFERENCE / "json.md").read_text("utf-8")
    row = re.search(rf"^\| `{words[0]}` \| (.*)$", text, re.MULTILINE)
    assert row is not None
    printed = {f.partition(".")[0] if f.startswith("end.") else f for f in fields(said)}
    assert printed - {"version"} <= set(re.findall(r"`([^`]+)`", row[1]))


# --- environment and exit codes -------------------------------------------------------------


def test_every_variable_is_told():
    """The variables of the page are those that the code reads."""
    python = "\n".join(file.read_text("utf-8") for file in PACKAGE.glob("**/*.py"))
    read = set(re.findall(r"environ(?:\.get|\.pop)?[\[(]\"(\w+)\"", python))
    read |= {name for name in re.findall(r'VARIABLE = "(\w+)"', python)}
    dispatch = (PACKAGE / "dispatch" / "state.py", PACKAGE / "cli" / "dispatch_acts.py")
    named = "\n".join(file.read_text("utf-8") for file in dispatch)
    read |= set(re.findall(r'"((?:TASKGRAPH_WORKERS|TRAINING)_[A-Z_]+)"', named))
    shell = (PACKAGE / "detect.sh").read_text("utf-8")
    read |= set(re.findall(r"\$\{?([A-Z][A-Z_]{3,})\b", shell))
    page = (REFERENCE / "environment.md").read_text("utf-8")
    first = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    told = set(re.findall(r"`(\w+)`", " ".join(first)))
    assert told == read | {"COLUMNS"}  # shutil.get_terminal_size reads that one


def test_every_exit_code_is_told():
    """The codes of the page are those that the code has."""
    codes = [cli.FINE, cli.DIFFERS, cli.FAILED, cli._INTERRUPTED, cli._BROKEN_PIPE]
    text = (REFERENCE / "exit-codes.md").read_text("utf-8")
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)] == codes
    assert f"A task ends with {detect.NOT_FOUND} before" in text
