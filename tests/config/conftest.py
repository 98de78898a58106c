"""A project whose config.yml is written by a test."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from taskgraph_workers.config import check
from taskgraph_workers.errors import Problem
from taskgraph_workers.model import Config

ALIASES = """
workers:
    aliases:
        b-cpu: &gcp
            provisioner: '{trust-domain}-{level}'
            implementation: docker-worker
            os: linux
            worker-type: '{alias}'
        b-gpu: *gcp
        b-gpu-4: *gcp
        sign: {provisioner: a, implementation: scriptworker-signing, os: b, worker-type: c}
"""


class Project:
    """A folder with a config.yml in it; the current directory while the test runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def data(self, body: str, aliases: str = ALIASES) -> Any:
        """Write config.yml: the first line of `body` is its line 2, moved right by four."""
        text = "workers-config:\n" + textwrap.indent(body.strip("\n"), "    ") + "\n" + aliases
        self.write("config.yml", text)
        return yaml.safe_load(text)

    def check(self, body: str, kinds: Iterable[str] | None = None) -> list[Problem]:
        return check(self.data(body), self.folder, kinds)[1]

    def told(self, body: str, kinds: Iterable[str] | None = None) -> str:
        """All that `check` prints."""
        return "\n".join(str(problem) for problem in self.check(body, kinds))

    def config(self, body: str, kinds: Iterable[str] | None = None) -> Config:
        """The configuration, which has to be without any problem."""
        config, problems = check(self.data(body), self.folder, kinds)
        assert [str(problem) for problem in problems] == []
        assert config is not None
        return config


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path)
