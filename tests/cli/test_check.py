"""`check`: what it prints, how it ends, and a file by itself."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from taskgraph_workers.cli.check import in_order
from taskgraph_workers.errors import Problem
from tests.cli.commands import answer, command, place, written
from tests.graph.project import Project

NULLABLE_COUNT = {"type": ["integer", "null"], "minimum": 1}
PROBLEM = {
    "type": "object",
    "properties": {
        "severity": {"enum": ["error", "warning", "info"]},
        "file": {"type": ["string", "null"]},
        "line": NULLABLE_COUNT,
        "column": NULLABLE_COUNT,
        "path": {"type": "string"},
        "message": {"type": "string", "minLength": 1},
        "hint": {"type": "string"},
    },
    "additionalProperties": False,
}
PROBLEM["required"] = list(PROBLEM["properties"])  # type: ignore[call-overload]
#: What other programs may count on.
SCHEMA = {
    "type": "object",
    "properties": {
        "problems": {"type": "array", "items": PROBLEM},
        "graph": {"type": "boolean"},
    },
    "required": ["problems", "graph"],
    "additionalProperties": False,
}

ALIAS = "{provisioner: 'x-{level}', implementation: docker-worker, os: linux, worker-type: y}"
ALONE = f"""\
workers:
    aliases:
        b-gpu: {ALIAS}
workers-config:
    profiles:
        lab: {{workers: {{b-gpu: shop/lab}}}}
"""


@pytest.fixture
def faulty(project: Project) -> Project:
    """A project whose configuration has two errors, and whose graph has another one."""
    project.config({"profiles": {"lab": {"wokers": {}, "extends": "cluod"}, "cloud": {}}})
    project.kind("train", {"one": {"worker-type": "b-gup"}})
    return project


def test_faults_of_the_configuration_stop_the_graph(faulty: Project):
    """All faults of the configuration are told, and that the graph was not looked at."""
    done = command("check", cwd=faulty.folder)
    assert done.returncode == 1
    text = faulty.folder / "taskcluster/config.yml"
    assert done.stdout == (
        "taskcluster/config.yml\n"
        f"  {written(text, 'wokers')}  error  workers-config.profiles.lab.wokers\n"
        "               unknown key\n"
        "               hint: did you mean 'workers'?\n"
        f"  {written(text, 'extends')}  error  workers-config.profiles.lab.extends\n"
        "               there is no profile 'cluod'\n"
        "               hint: did you mean 'cloud'?\n"
        "\n"
        "2 errors, 0 warnings, 0 info.\n"
        "The graph was not looked at: mend the configuration first.\n"
    )
    assert done.stderr == ""


def test_json(faulty: Project):
    """The JSON says the same, with paths that lead into the file."""
    said = answer("check", code=1, cwd=faulty.folder)
    jsonschema.validate(said, SCHEMA)
    assert said["graph"] is False
    first, second = said["problems"]
    assert place(first) == "taskcluster/config.yml:" + written(
        faulty.folder / "taskcluster/config.yml", "wokers"
    )
    assert first["path"] == "workers-config.profiles.lab.wokers"
    assert second["hint"] == "did you mean 'cloud'?"


def test_a_project_that_is_fine(project: Project):
    """One line says so, nothing else is printed, and the exit code is 0."""
    project.config({"profiles": {"cloud": {}}})
    project.kind("train", {"one": {}})
    project.commit()
    done = command("check", "-p", "params.yml", cwd=project.folder)
    assert (done.returncode, done.stdout) == (0, "No problems.\n")
    said = answer("check", "-p", "params.yml", cwd=project.folder)
    jsonschema.validate(said, SCHEMA)
    assert said == {"problems": [], "graph": True}


def test_strict_counts_warnings(tmp_path: Path):
    """A warning ends with 0, and with 1 if --strict; an info never does."""
    file = tmp_path / "alone.yml"
    file.write_text(ALONE)
    assert command("check", "--config", file).returncode == 0
    assert command("check", "--config", file, "--strict").returncode == 1
    file.write_text(ALONE.replace("{b-gpu: shop/lab}", "{}").replace("x-{level}", "x"))
    done = command("check", "--config", file, "--strict")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "0 errors, 0 warnings, 1 info.")


def test_a_file_by_itself(tmp_path: Path):
    """--config looks at one file, and loads no Taskgraph for it."""
    (tmp_path / "taskgraph.py").write_text("raise AssertionError('Taskgraph was loaded')")
    (tmp_path / "alone.yml").write_text(ALONE)
    done = command("check", "--config", "alone.yml", cwd=tmp_path, PYTHONSAFEPATH="")
    assert done.returncode == 0, done.stderr
    assert "  6:25  warning  workers-config.profiles.lab.workers.b-gpu\n" in done.stdout
    assert "graph" not in done.stdout


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ("workers-config: }", 1, "not readable as YAML", ""),
        ("a: b", 1, "the file has no key workers-config", ""),
        ("a: b\nworker-config: {}", 2, "'worker-config' is no key", "write it as: workers-config"),
        ("WORKERS_CONFIG: {}", 1, "'WORKERS_CONFIG' is no key", "write it as: workers-config"),
        ("worker-configuration: {}", 1, "the file has no key", "there is: worker-configuration"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, text: str, line: int, message: str, hint: str):
    """A file that is no YAML, or has no such key, is faulty; it points at the place."""
    (tmp_path / "alone.yml").write_text(text)
    (told,) = answer("check", "--config", "alone.yml", code=1, cwd=tmp_path)["problems"]
    assert (told["file"], told["line"]) == ("alone.yml", line)
    assert told["message"].startswith(message)
    assert hint in told["hint"]


def test_a_file_that_is_not_there(tmp_path: Path):
    """What is not there can't be checked: exit code 2."""
    done = command("check", "--config", tmp_path / "alone.yml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no such file that can be read" in done.stderr


def test_no_project_here(tmp_path: Path):
    """Without a project there is nothing to check, and that is said."""
    done = command("check", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("taskcluster/config.yml: there is no such file")


def test_a_project_without_our_key(project: Project):
    """It changes nothing, so it is worth a warning."""
    project.config()
    said = answer("check", cwd=project.folder)
    assert [(each["severity"], each["message"]) for each in said["problems"]] == [
        ("warning", "the file has no key workers-config")
    ]


@pytest.mark.parametrize(
    ("folder", "hint"),
    [
        ("taskcluster", "say --root ., or call it in .."),
        ("taskcluster/kinds/train", "say --root ../.., or call it in ../../.."),
        ("docs", "say --root ../taskcluster, or call it in .."),
    ],
)
@pytest.mark.parametrize("arguments", [["check"], ["show"], ["plan", "--profile", "cloud"]])
def test_from_inside_of_a_project(project: Project, folder: str, hint: str, arguments: list[str]):
    """Where no project is, a hint names the one that is around, by an option that works."""
    project.config({"profiles": {"cloud": {}}})
    project.kind("train", {"one": {}})
    (project.folder / "docs").mkdir()
    project.commit()
    here = project.folder / folder
    done = command(*arguments, cwd=here)
    assert (done.returncode, done.stdout) == (2, "")
    what = "taskcluster/config.yml: there is no such file that can be read"
    assert done.stderr == f"{what}\n    hint: {hint}\n"
    named = ["--root", hint.split()[2].rstrip(",")]
    if arguments == ["show"]:
        assert command(*arguments, *named, cwd=here).returncode == 0


def test_a_folder_of_another_name(tmp_path: Path):
    """In a folder that holds a config.yml itself, the hint names this folder."""
    (tmp_path / "config.yml").write_text("workers-config: {}")
    assert command("show", cwd=tmp_path).stderr.endswith("    hint: say --root .\n")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["plan", "--profile", "cloud"], "say --root DIR"),
        (["show"], "say --root DIR, or --config FILE"),
        (["dispatch", "run", "--once"], "say --root DIR, or --config FILE"),
    ],
)
def test_far_from_any_project(tmp_path: Path, arguments: list[str], hint: str):
    """Where no project is around, the hint has the options that this command takes."""
    done = command(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f"can be read\n    hint: {hint}\n")


@pytest.mark.parametrize(
    "arguments", [["check"], ["plan", "--profile", "cloud"], ["explain", "--task", "train-one"]]
)
def test_parameters_that_are_no_file(project: Project, arguments: list[str]):
    """What is neither a file nor a URL is told as a file that is not there, and its name."""
    project.config({"profiles": {"cloud": {}}})
    project.kind("train", {"one": {}})
    done = command(*arguments, "-p", "nofile.yml", cwd=project.folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "nofile.yml: there is no such file of parameters\n"


@pytest.mark.parametrize("arguments", [["check"], ["show"], ["explain", "b-gpu"]])
def test_our_key_is_misspelled(project: Project, arguments: list[str]):
    """It is an error where the key stands, in every command that reads it."""
    file = project.config("\nworker-config: {}\n")
    done = command(*arguments, cwd=project.folder)
    assert done.returncode == (1 if arguments == ["check"] else 2)
    said = done.stdout + done.stderr
    assert written(file, "worker-config") in said
    assert "hint: write it as: workers-config" in said


def test_a_graph_that_can_not_be_made(project: Project):
    """Where the project itself is broken, that is said, and the exit code is 2."""
    project.config({"profiles": {"cloud": {}}}, register="no_such_module:register")
    project.kind("train", {"one": {}})
    project.commit()
    done = command("check", "-p", "params.yml", cwd=project.folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "the graph can't be made: " in done.stderr
    assert "Traceback" not in done.stderr


def test_wide_problems_are_wrapped(tmp_path: Path):
    """No line is wider than 80 columns, and colour is there only if it is asked for."""
    (tmp_path / "alone.yml").write_text(ALONE.replace("shop/lab", "shop/" + "very-long-name-" * 9))
    plain = command("check", "--config", tmp_path / "alone.yml")
    assert max(map(len, plain.stdout.splitlines())) <= 80
    assert "\033" not in plain.stdout
    colored = command("check", "--config", tmp_path / "alone.yml", "--color", "always")
    assert "\033[33mwarning\033[0m" in colored.stdout


def test_order():
    """By file, line and column; what has no file is last, and nothing is told twice."""
    last = Problem("d")
    first, second, third = (
        Problem(text).at(*where)
        for text, where in [("a", ("a", 2, 9)), ("b", ("a", 10, 1)), ("c", ("b", 1, 1))]
    )
    assert in_order([last, third, second, first, third]) == [first, second, third, last]


def test_an_error_hides_a_warning_in_the_same_place():
    """An error says what a warning there would; an info is told all the same."""
    error = Problem("e").at("a", 1, 1)
    warning = Problem("w", severity="warning").at("a", 1, 1)
    info = Problem("i", severity="info").at("a", 1, 1)
    assert in_order([warning, error, info]) == [error, info]
    nowhere = [Problem("e"), Problem("w", severity="warning")]
    assert in_order(nowhere) == nowhere


def test_the_example_has_nothing_to_warn_of():
    """The project that others copy from passes the strict check."""
    done = command("check", "--strict", "--root", "taskcluster")
    assert (done.returncode, "0 errors, 0 warnings" in done.stdout) == (0, True), done.stdout
