"""`adopt`, run as a person would run it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from adopting import ALIASES, ODD, translations

from tests.cli.commands import command

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs" / "how-to" / "adopt.md"


def write(folder: Path, text: str, aliases: str = ALIASES) -> Path:
    (folder / "taskcluster").mkdir(exist_ok=True)
    file = folder / "taskcluster" / "config.yml"
    file.write_text(text + aliases)
    return file


def test_it_prints_what_was_adopted():
    """The configuration on standard output and nothing else; talk on standard error."""
    done = command("adopt", "--config", ODD, "--default", "spot", "--class", "lab-1")
    assert done.returncode == 0
    assert done.stdout == (ODD.parent / "adopted.yml").read_text()
    assert f"{ODD.relative_to(ROOT)}:67:24: worker-configuration.a100-gpu-1.env.GPUS: warning:" in (
        done.stderr
    )
    assert "comments about the tables themselves are left behind" not in done.stderr


def test_it_is_quiet_when_told():
    """Warnings are talk; the exit code tells enough."""
    done = command("adopt", "-q", "--config", ODD, "--default", "spot", "--class", "lab-1")
    assert (done.returncode, done.stderr) == (0, "")


def test_it_verifies(tmp_path: Path):
    """One line where nothing differs."""
    file = translations(tmp_path)
    done = command("adopt", "-q", "--config", file, "--default", "gcp-spot", "--verify")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "36 placements compared (2 profiles: gcp-spot, gcp-standard): no difference\n"
    )


def test_it_verifies_a_file_that_was_changed(tmp_path: Path):
    """A table of what differs, no wider than the terminal, and 1."""
    file, changed = translations(tmp_path), tmp_path / "changed.yml"
    printed = command("adopt", "--config", file, "--default", "gcp-spot").stdout
    changed.write_text(printed.replace("b-gpu: b-linux-v100-gpu\n", "b-gpu: b-linux-v100-gpu-4\n"))
    done = command("adopt", "--config", file, "--default", "gcp-spot", "--verify", changed)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["name", "profile", "where", "what", "by", "hand", "here"]
    assert lines[-1].endswith("4 differ")
    assert len([line for line in lines if line.startswith("b-gpu")]) == 6
    assert max(map(len, lines)) <= 80


def test_a_difference_is_told_without_being_asked_for(tmp_path: Path):
    """Where the text can't say the same, it is printed all the same, and the exit code is 1."""
    write(tmp_path, "local-worker-aliases: {cpu: {by-worker-class: {x: cpu-std}}, z: cpu}\n")
    done = command("adopt", "--class", "w", cwd=tmp_path)
    assert done.returncode == 1
    what = "error: cpu, w, level 1: pool: by hand refused: nothing is said of w, here sky-1/cpu\n"
    assert what in done.stderr
    profile = yaml.safe_load(done.stdout)["workers-config"]["profiles"]["w"]
    assert profile == {"extends": "x", "workers": {"cpu": None}}


def test_what_cannot_be_said_ends_with_1(tmp_path: Path):
    """With its file and line, as editors read it."""
    write(tmp_path, "local-worker-aliases:\n    a: {by-platform: {x: cpu, default: cpu}}\n")
    done = command("adopt", cwd=tmp_path)
    assert done.returncode == 1
    assert (
        "taskcluster/config.yml:2:9: local-worker-aliases.a.by-platform: is nothing" in done.stderr
    )
    assert "workers-config:" in done.stdout


def test_it_writes_a_new_file_that_can_be_included(tmp_path: Path):
    """Nothing is overwritten; what is written is read by way of `include`."""
    file = write(tmp_path, "local-worker-aliases: {a: cpu}\n")
    arguments = ("adopt", "-q", "--default", "x", "-o", "taskcluster/adopted.yml")
    done = command(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    again = command(*arguments, cwd=tmp_path)
    assert again.returncode == 2
    assert "taskcluster/adopted.yml: can't be written: File exists" in again.stderr
    file.write_text(file.read_text() + "workers-config: {include: [adopted.yml]}\n")
    from taskgraph_workers.config.load import load

    config = load(yaml.safe_load(file.read_text()), file.parent)
    assert list(config.profiles) == ["x"]


def test_kinds_that_set_such_env_are_named(tmp_path: Path):
    """By hand it would lose; the line says where to take it out."""
    text = "local-worker-aliases: {a: cpu}\nworker-configuration: {cpu: {env: {A: b}}}\n"
    write(tmp_path, text)
    kind = tmp_path / "taskcluster" / "kinds" / "train" / "kind.yml"
    kind.parent.mkdir(parents=True)
    kind.write_text("tasks:\n    t: {worker: {env: {A: own}}}\n")
    done = command("adopt", "--needs", "", "--verify", cwd=tmp_path)
    assert done.returncode == 0
    assert "taskcluster/kinds/train/kind.yml:2:24: warning: a task's own A wins" in done.stderr
    assert done.stdout.startswith("2 placements compared")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--config", "none.yml"), "none.yml: there is no such file that can be read"),
        (("--default", "z"), "no branch is for the class 'z'"),
        (("--names-key", "a", "--env-key", "b"), "has neither a nor b"),
        (("--verify", "none.yml"), "none.yml: can't be read"),
    ],
)
def test_it_could_not_run(tmp_path: Path, arguments: tuple[str, ...], problem: str):
    """A sentence, and 2."""
    write(tmp_path, "local-worker-aliases: {a: {by-worker-class: {x: cpu, y: cpu-std}}}\n")
    done = command("adopt", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


def test_the_how_to_is_true(tmp_path: Path):
    """Its tables give what it shows, and its proof holds."""
    tables, *consoles = re.findall(r"```(?:yaml|console)\n(.*?)```", DOCS.read_text(), re.DOTALL)
    fields = "provisioner: '{trust-domain}-{level}', implementation: docker-worker, os: linux"
    aliases = f"{{{fields}, worker-type: '{{alias}}'}}"
    write(
        tmp_path,
        tables,
        f"\ntrust-domain: t\nworkers: {{aliases: {{b-linux-v100-gpu: &a {aliases},"
        " b-linux-v100-gpu-standard: *a}}\n",
    )
    for console, compared in zip(consoles, ("workers-config:", "8 placements")):
        line, shown = console.split("\n", 1)
        assert line.startswith("$ taskgraph-workers adopt ")
        done = command(*line.split()[2:], cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == shown
        assert done.stdout.startswith((compared, "4 placements"))
