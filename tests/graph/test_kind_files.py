"""Places in a kind.yml."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskgraph_workers.errors import Problem
from taskgraph_workers.graph.kind_files import KindFile

KIND = """\
task-defaults:
    worker-type: b-gpu
    worker: {env: {GPUS: "0"}}
tasks:
    one:
        worker-type:
            by-level: {"3": b-big, default: b-gpu}
    two:
        worker: &anchor
            env: {GPUS: "0", LIST: [a, b]}
    three:
        worker: *anchor
"""


@pytest.fixture
def file(tmp_path: Path) -> KindFile:
    (tmp_path / "kind.yml").write_text(KIND)
    return KindFile(str(tmp_path))


@pytest.mark.parametrize(
    ("key", "value", "task", "path", "line"),
    [
        ("worker-type", "b-gpu", "", ("task-defaults", "worker-type"), 2),
        ("worker-type", "b-gpu", "one", ("tasks", "one", "worker-type", "by-level", "default"), 7),
        ("worker-type", "b-big", "two", ("tasks", "one", "worker-type", "by-level", "3"), 7),
        ("GPUS", "0", "", ("task-defaults", "worker", "env", "GPUS"), 3),
        ("GPUS", "0", "two", ("tasks", "two", "worker", "env", "GPUS"), 10),
        ("GPUS", "0", "three", ("tasks", "three", "worker", "env", "GPUS"), 10),
        ("LIST", "b", "", ("tasks", "two", "worker", "env", "LIST", 1), 10),
        ("worker-type", None, "", ("task-defaults", "worker-type"), 2),
    ],
)
def test_a_value_is_found(
    file: KindFile, key: str, value: str, task: str, path: tuple[str, ...], line: int
):
    """A key with a value is found, keyed or not, in the task itself before elsewhere."""
    found = file.at(Problem("what"), key, value, task)
    assert (found.path, found.line, found.message) == (path, line, "what")
    assert found.column > 0
    assert found.file.endswith("kind.yml")


@pytest.mark.parametrize(("key", "value"), [("worker-type", "b-cpu"), ("XYZ", None)])
def test_a_value_that_a_transform_gave(file: KindFile, key: str, value: str):
    """What does not stand in the file leads to the file alone."""
    found = file.at(Problem("what", ("env", "GPUS")), key, value)
    assert (found.path, found.line, found.column) == ((), 0, 0)
    assert found.file.endswith("kind.yml")


@pytest.mark.parametrize("text", ["", "tasks: [", "a: &a {b: *a}"])
def test_files_that_say_little(tmp_path: Path, text: str):
    """A file that is empty, broken, or contains itself, is no trouble."""
    (tmp_path / "kind.yml").write_text(text)
    assert KindFile(str(tmp_path)).at(Problem("what"), "tasks").line == 0


def test_a_file_that_is_not_there(tmp_path: Path):
    """Neither is one that is missing."""
    assert KindFile(str(tmp_path)).at(Problem("what"), "tasks").line == 0
