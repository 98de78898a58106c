"""The pages, done as a reader would do them: what they show is what the commands print."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.commands import command
from tests.graph.support import ROOT
from tests.pages import (
    LAUNCH,
    Command,
    File,
    Reader,
    example,
    is_shown,
    shop,
    steps,
    without_places,
)

DOCS = ROOT / "docs"
NO_SCHEDULER = ROOT / "tests" / "stand_ins" / "desk"
#: Pages that go on with the tutorial's project, and change it.
SHOP = (
    *("add-an-alias", "add-a-profile", "share-a-file", "try-a-gpu-type", "move-a-kind-on-prem"),
    "taskcluster-workers-on-slurm",
)
#: Pages about this repository's own example, which they leave as it is.
EXAMPLE = ("find-out-why", "choose-a-profile", "review-a-plan", "check-before-you-push")
#: Pages about the spec of the tutorial on launching, on a machine without a scheduler.
LAUNCHING = ("launch-on-slurm", "launch-on-flux", "launch-on-lsf", "launch-on-pbs")
#: Pages whose commands have a test of their own.
ELSEWHERE = {
    "tutorials/first-profile.md": "tests/cli/test_tutorial.py",
    "tutorials/first-launch.md": "tests/cli/test_tutorial.py",
    "tutorials/first-training.md": "tests/cli/test_tutorial.py",
    "how-to/write-a-trainer.md": "tests/cli/test_how_to_dispatch.py",
    "how-to/plug-in-your-machines.md": "tests/cli/test_how_to_dispatch.py",
    "how-to/adopt.md": "tests/cli/test_adopt.py",
    "how-to/editor.md": "tests/cli/test_schema.py",
    # It needs a Taskcluster.
    "how-to/run-on-other-workers.md": "tests/graph/test_actions_offered.py",
    "concepts/declared-detected-inherited.md": "tests/cli/test_how_to.py",
}


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """Someone in the example's folder, where a site has a file of its own."""
    reader = example(tmp_path_factory.mktemp("training"))
    (reader.here / "site.yml").write_text("workers-config: {workers: {b-gpu: {env: {A: b}}}}\n")
    return reader


@pytest.mark.parametrize("page", SHOP)
def test_a_page_on_the_tutorials_project(page: str, tmp_path: Path, pytestconfig: pytest.Config):
    """What it has its reader write works, and each command prints what is shown."""
    folder = tmp_path / "desk"
    folder.mkdir()
    if page == "taskcluster-workers-on-slurm":
        pytest.importorskip("scipy", reason="number: auto needs SciPy")
    reader = shop(folder)
    reader.path = f"{NO_SCHEDULER}{os.pathsep}{reader.path}"
    reader.update = pytestconfig.getoption("--update-golden")
    assert reader.follow(DOCS / "how-to" / f"{page}.md")


@pytest.fixture
def launching(tmp_path: Path, pytestconfig: pytest.Config) -> Reader:
    """Someone with the spec of the tutorial on launching, as it is before a cluster is needed."""
    folder = tmp_path / "desk"
    folder.mkdir()
    reader = Reader(folder, terminal=True, update=pytestconfig.getoption("--update-golden"))
    reader.path = f"{NO_SCHEDULER}{os.pathsep}{reader.path}"
    for step in steps(LAUNCH, before="## 6."):
        if isinstance(step, File):
            reader.write(step)
    return reader


@pytest.mark.parametrize("page", LAUNCHING)
def test_a_page_on_launching(page: str, launching: Reader):
    """What it has its reader write works, and each command prints what is shown."""
    assert launching.follow(DOCS / "how-to" / f"{page}.md")


def test_the_launch_of_the_readme(launching: Reader):
    """Its spec, and its size as README shows it."""
    assert launching.follow(ROOT / "README.md", after="## Launch", before="## Dispatch")


@pytest.mark.parametrize("page", EXAMPLE)
def test_a_page_on_the_example(page: str, training: Reader):
    """Each command runs, and prints what is shown, line numbers aside."""
    commands = [s for s in steps(DOCS / "how-to" / f"{page}.md") if isinstance(s, Command)]
    assert commands
    for each in commands:
        training.type(each)


def test_the_page_about_detection(tmp_path: Path):
    """Its command prints what is shown on a machine such as it speaks of."""
    folder = tmp_path / "desk"
    folder.mkdir()
    reader = Reader(folder)
    reader.path = f"{ROOT / 'tests' / 'stand_ins' / 'four'}{os.pathsep}{reader.path}"
    assert reader.follow(DOCS / "concepts" / "declared-detected-inherited.md")


def test_the_demo_of_the_readme():
    """What README shows of `make demo` is in what it prints, line by line."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert "plan --root taskcluster --level 1 --from gcp-spot --profile $$profile" in makefile
    done = command(*["plan", "--level", "1", "--from", "gcp-spot", "--profile", "onprem"])
    printed = iter(done.stdout.splitlines())
    shown = re.search(r"```text\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert shown is not None
    assert [line for line in shown[1].splitlines() if line not in printed] == []


def test_every_page_is_tried():
    """A page that shows a command is in one of the lists here."""
    pages = {
        str(page.relative_to(DOCS))
        for page in DOCS.glob("**/*.md")
        if any(isinstance(step, Command) for step in steps(page))
    }
    tried = {f"how-to/{page}.md" for page in (*SHOP, *EXAMPLE, *LAUNCHING)} | ELSEWHERE.keys()
    assert pages == tried
    for page, test in ELSEWHERE.items():
        name = re.escape(Path(page).stem)
        assert re.search(name, (ROOT / test).read_text("utf-8")), f"{test} speaks of no {page}"


def test_places_are_left_out():
    """Line numbers of files and of faults, and nothing else."""
    text = "  12:7  error  a\n  ab.yml:12 b 3:4\n"
    assert without_places(text) == "  N:N  error  a\n  ab.yml:N b 3:4\n"


def test_what_is_shown():
    """A line ``...`` stands for any lines, the rest for itself, and nothing may follow."""
    printed = "a 1\nb\nc... d\ne\n"
    assert is_shown(printed, printed)
    assert is_shown(printed, "a 1\n...\ne")
    assert is_shown(printed, "a 2\n...\ne", [(r"\d", "N")])
    for wrong in ("a 1\n...\nd", "a 2\n...", "a 1\nb\nc... d", "a 1\n...\nc.d\ne"):
        assert not is_shown(printed, wrong)


def test_the_pages_of_the_readme_are_all_pages():
    """README links every page there is, decisions by their index."""
    linked = set(re.findall(r"\]\(docs/(\S+?\.md)", (ROOT / "README.md").read_text("utf-8")))
    pages = {str(page.relative_to(DOCS)) for page in DOCS.glob("*/*.md")}
    pages = {page for page in pages if not page.startswith("decisions/")}
    assert linked == pages | {"decisions/index.md"}


def test_the_decision_task_installs_the_package_as_its_page_says():
    """The line that the page shows is that of this project's own decision task."""
    page = (DOCS / "how-to" / "decision-task.md").read_text("utf-8")
    shown = re.search(r"```text\n(.*) && (taskgraph decision) ", page)
    assert shown is not None
    task = (ROOT / ".taskcluster.yml").read_text("utf-8")
    assert task.index(shown[1]) < task.index(shown[2], task.index(shown[1]))


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a page in a language."""
    text = (DOCS / "how-to" / f"{page}.md").read_text("utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_scheduler_that_a_page_adds(launching: Reader):
    """Installed as the page says, it is found by its name, and its script runs workers that end
    well by themselves.
    """
    installed = launching.here / "installed"
    (installed / "here-1.dist-info").mkdir(parents=True)
    (installed / "here_scheduler.py").write_text(blocks("add-a-scheduler", "python")[0])
    point = blocks("add-a-scheduler", "ini")[0].replace("[options.entry_points]\n", "")
    group, _, entry = point.partition(" =\n")
    (installed / "here-1.dist-info" / "METADATA").write_text("Name: here\nVersion: 1\n")
    (installed / "here-1.dist-info" / "entry_points.txt").write_text(f"[{group}]\n{entry}")
    launching.env["PYTHONPATH"] = f"{ROOT}{os.pathsep}{installed}"
    line = re.search(r"launch spec\.yaml (--scheduler .*)", blocks("add-a-scheduler", "text")[0])
    assert line is not None
    launching.type(
        Command("sed -i 's/nodes: 2/nodes: 1/; s/type: flux/type: slurm/' spec.yaml", "")
    )
    launching.type(Command(f"taskgraph-workers launch spec.yaml -q {line[1]} > workers.sh", ""))
    launching.type(
        Command(
            "bash workers.sh > said && tail -n 1 said | grep -o 'all ended.*'",
            "all ended, with status 0\n",
        )
    )
    lab = "{lab: {scheduler: here, node: {cores: 1}, groups: {w: {command: 'true'}}}}"
    (launching.here / "lab.yml").write_text(f"workers-config: {{clusters: {lab}}}")
    launching.type(
        Command(
            "taskgraph-workers launch -q --cluster lab --config lab.yml | grep '^tw_start_group w'",
            "tw_start_group w 1 'exec true'\n",
        )
    )


def test_the_script_around_a_worker(tmp_path: Path):
    """It asks generic-worker to end by an INT, once, and ends well with it."""
    script = tmp_path / "start"
    script.write_text(blocks("taskcluster-workers-on-slurm", "bash")[0])
    worker = tmp_path / "generic-worker"
    worker.write_text(WORKER)
    for file in (script, worker):
        file.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.Popen(
        [script, "x.yml"], stdout=subprocess.PIPE, text=True, env={**os.environ, "PATH": path}
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "run --config x.yml\n"
    process.terminate()
    assert process.communicate(timeout=60) == ("its task is done\n", None)
    assert process.returncode == 0


#: As generic-worker does: a TERM ends it at once, an INT after its task.
WORKER = """\
#!/bin/bash
trap 'asked=yes' INT
echo "$*"
until [ "$asked" ]; do sleep 0.1; done
echo "its task is done"
"""
