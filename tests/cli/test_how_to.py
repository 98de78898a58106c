"""The pages, done as a reader would do them: what they show is what the commands print."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.cli.commands import command
from tests.graph.support import ROOT
from tests.pages import Command, Reader, example, shop, steps, without_places

DOCS = ROOT / "docs"
#: Pages that go on with the tutorial's project, and change it.
SHOP = ("add-an-alias", "add-a-profile", "share-a-file", "try-a-gpu-type", "move-a-kind-on-prem")
#: Pages about this repository's own example, which they leave as it is.
EXAMPLE = ("find-out-why", "choose-a-profile", "review-a-plan", "check-before-you-push")
#: Pages whose commands have a test of their own.
ELSEWHERE = {
    "tutorials/first-profile.md": "tests/cli/test_tutorial.py",
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
def test_a_page_on_the_tutorials_project(page: str, tmp_path: Path):
    """What it has its reader write works, and each command prints what is shown."""
    folder = tmp_path / "desk"
    folder.mkdir()
    shop(folder).follow(DOCS / "how-to" / f"{page}.md")


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
    reader.follow(DOCS / "concepts" / "declared-detected-inherited.md")


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
    tried = {f"how-to/{page}.md" for page in (*SHOP, *EXAMPLE)} | ELSEWHERE.keys()
    assert pages == tried
    for page, test in ELSEWHERE.items():
        name = re.escape(Path(page).stem)
        assert re.search(name, (ROOT / test).read_text("utf-8")), f"{test} speaks of no {page}"


def test_places_are_left_out():
    """Line numbers of files and of faults, and nothing else."""
    text = "  12:7  error  a\n  ab.yml:12 b 3:4\n"
    assert without_places(text) == "  N:N  error  a\n  ab.yml:N b 3:4\n"


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
