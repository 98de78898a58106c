"""Projects with tables of their own, for the tests of adopting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from taskgraph_workers.adopt.compose import Adopted, Wanted, compose
from taskgraph_workers.adopt.hand import Hand, Keys, read
from taskgraph_workers.config.locate import Source

DATA = Path(__file__).parent / "data"

#: A config.yml of every oddity.
ODD = DATA / "adopt" / "config.yml"

ALIASES = """
trust-domain: sky
workers:
    aliases:
        cpu: &cloud
            provisioner: '{trust-domain}-{level}'
            implementation: docker-worker
            os: linux
            worker-type: '{alias}'
        cpu-std: *cloud
        gpu-1: *cloud
        gpu-4: *cloud
        gpu-4-std: *cloud
        gpu-8: *cloud
        rack-.*: *cloud
        sign: {provisioner: s, implementation: scriptworker-x, os: scriptworker, worker-type: sign}
"""


def hand(text: str, kinds: tuple[str, ...] = (), aliases: str = ALIASES, **keys: Any) -> Hand:
    """The tables of a config.yml; its first lines are `text`."""
    source = Source("config.yml", (text.lstrip("\n") + aliases).encode())
    return read(source, Keys(**keys), kinds)


def adopt(said: Hand, **wanted: Any) -> Adopted:
    return compose(said, Wanted(**wanted))


def value(adopted: Adopted) -> Any:
    """What the printed text says, below `workers-config`."""
    said = yaml.safe_load(adopted.text)
    assert list(said) == ["workers-config"]
    return said["workers-config"]


def told(found: Any) -> list[str]:
    return [str(problem) for problem in found.problems]


def translations(folder: Path) -> Path:
    """The config.yml of a real project: its aliases, and its own tables."""
    aliases = (DATA / "translations" / "workers.yml").read_text().split("\nworkers-config:")[0]
    file = folder / "config.yml"
    file.write_text(aliases + "\n" + (DATA / "adopt" / "translations.yml").read_text())
    return file
