"""`schema`: the JSON Schema, and the line for editors that the documentation gives."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema

from tests.cli.commands import command

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs" / "how-to" / "editor.md"


def test_it_prints_the_committed_schema():
    """Byte for byte, so that the documented line may name either."""
    done = command("schema")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (ROOT / "docs/reference/workers-config.schema.json").read_text()
    jsonschema.Draft7Validator.check_schema(json.loads(done.stdout))


def test_the_editor_lines_are_true(tmp_path: Path):
    """The command of the page makes the file that its first line names."""
    text = DOCS.read_text()
    made = re.search(r"\$ (taskgraph-workers schema) > (\S+)", text)
    assert made is not None
    target = tmp_path / made[2]
    target.parent.mkdir()
    target.write_text(command("schema").stdout)
    lines = re.findall(r"# (\S+)\n# yaml-language-server: \$schema=(\S+)", text)
    assert [name for name, _ in lines] == ["taskcluster/config.yml", "taskcluster/workers/lab.yml"]
    for name, schema in lines:
        assert ((tmp_path / name).parent / schema).resolve() == target.resolve()


def test_this_project_s_own_line_is_true():
    """The page shows the line for a file of this repository, too."""
    found = re.search(r"`# yaml-language-server: \$schema=(\S+docs/\S+)`", DOCS.read_text())
    assert found is not None
    assert (ROOT / "taskcluster" / found[1]).is_file()
