"""`plan --html`: where the page goes, and where it can't."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.commands import command
from tests.graph.project import Project

SIDES = ("plan", "-p", "params.yml", "--profile", "onprem")


@pytest.fixture
def project(project: Project) -> Project:
    """Return a project with a task that moves."""
    project.config({"profiles": {"onprem": {"workers": {"b-gpu": "shop-onprem/big"}}}})
    project.kind("train", {"a": {}})
    project.commit()
    return project


def test_the_page_comes_besides_what_is_printed(project: Project):
    """The plan is printed as without --html, and the file holds the page; exit 1 all the same."""
    plain = command(*SIDES, cwd=project.folder)
    done = command(*SIDES, "--html", "plan.html", cwd=project.folder)
    assert (done.returncode, done.stdout) == (1, plain.stdout)
    assert done.stderr == plain.stderr + "wrote plan.html\n"
    page = (project.folder / "plan.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "shop-onprem/big" in page


def test_quiet_says_nothing_of_it(project: Project):
    """With -q the page is written without a word."""
    done = command(*SIDES, "-q", "--html", "plan.html", cwd=project.folder)
    assert "wrote" not in done.stderr
    assert (project.folder / "plan.html").exists()


def test_a_folder_that_is_not_there_is_told_before_a_graph_is_made(tmp_path: Path):
    """Nobody waits for two graphs to learn that there is no such folder."""
    file = tmp_path / "none" / "plan.html"
    done = command("plan", "--profile", "onprem", "-v", "--html", file)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: --html {file}: there is no folder {file.parent}\n"


def test_a_file_that_can_not_be_written(project: Project):
    """It ends with 2, prints no plan and shows no traceback."""
    done = command(*SIDES, "--html", project.folder, cwd=project.folder)
    assert (done.returncode, done.stdout) == (2, "")
    told = f"error: --html {project.folder} can't be written: Is a directory"
    assert done.stderr.splitlines()[-1] == told
