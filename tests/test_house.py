"""What the house style asks and no linter checks."""

from __future__ import annotations

import ast
import configparser
import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import taskgraph_workers

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = sorted(ROOT.glob("taskgraph_workers/**/*.py"))
SOURCES = PACKAGE + sorted(ROOT.glob("tests/**/*.py")) + sorted(ROOT.glob("benchmarks/**/*.py"))
# The graph door, and the public names that are its front.
USES_TASKGRAPH = ("graph", "parameters", "transforms")


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Yield each function of a file as `path:line name`, and its length in lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            where = f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
            yield where, (node.end_lineno or node.lineno) - node.lineno + 1


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_are_short(path: Path):
    """No file has more than 400 lines."""
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= 400


def test_functions_are_short():
    """No function has more than 50 lines, and nine of ten in the package have under 25."""
    everything = [function for path in SOURCES for function in functions(path)]
    assert [(where, lines) for where, lines in everything if lines > 50] == []
    lengths = [lines for path in PACKAGE for _, lines in functions(path)]
    assert sum(lines < 25 for lines in lengths) >= 0.9 * len(lengths)


def test_only_the_graph_door_loads_taskgraph():
    """Every module outside the graph door can be imported without Taskgraph being loaded."""
    modules = [
        module.name
        for module in pkgutil.walk_packages(taskgraph_workers.__path__, "taskgraph_workers.")
        if module.name.split(".")[1] not in USES_TASKGRAPH and not module.name.endswith("__main__")
    ]
    program = (
        "import importlib, sys\n"
        f"for name in {modules!r}:\n"
        "    importlib.import_module(name)\n"
        "    assert 'taskgraph' not in sys.modules, f'{name} loads taskgraph'\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert run.stderr == ""
    assert run.returncode == 0


def test_nothing_is_installed_that_nothing_uses():
    """Each requirement of the package and of its own extras is imported somewhere in it."""
    said = configparser.ConfigParser()
    said.read(ROOT / "setup.cfg", "utf-8")
    extras = said["options.extras_require"]
    wanted = said["options"]["install_requires"] + extras["dispatch"] + extras["widths"]
    names = {re.split(r"[<>=;]", line)[0] for line in wanted.split()}
    called = {"pyyaml": "yaml", "taskcluster-taskgraph": "taskgraph", "SQLAlchemy": "sqlalchemy"}
    lines = "".join(path.read_text(encoding="utf-8") for path in PACKAGE)
    for name in names:
        assert re.search(rf"^ *(?:import|from) {called.get(name, name)}\b", lines, re.M), name


EXAMPLES = [path for path in PACKAGE if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_in_docstrings_hold(path: Path):
    """Every example in a docstring gives what it says."""
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    found = doctest.testmod(module)
    assert (found.failed, found.attempted > 0) == (0, True)
