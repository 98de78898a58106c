"""What README and pages show of a configuration is one, and does what they say.

Pages with commands are followed in tests/cli/test_how_to.py and test_tutorial.py.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from taskgraph_workers.config import check, read_selection
from taskgraph_workers.model import Choice, Config, Context
from taskgraph_workers.resolve import choose, resolve, task_env

ROOT = Path(__file__).resolve().parent.parent
CONTEXT = Context(level="1", trust_domain="shop")


def blocks(page: str, after: str = "") -> list[str]:
    """The YAML of a page, below a heading."""
    text = (ROOT / page).read_text("utf-8")
    return re.findall(r"```yaml\n(.*?)```", text[text.index(after) :], re.DOTALL)


def valid(text: str) -> Config:
    config, problems = check(yaml.safe_load(text))
    assert problems == []
    assert config is not None
    return config


def place(config: Config, name: str, choice: Choice) -> tuple[str, dict[str, Any]]:
    """Where a name leads, and the env of a task with none of its own."""
    placement = resolve(config, name, choice, CONTEXT)
    return placement.pool, task_env(placement, {})[0]


def test_the_readme():
    """One line and one key: the name runs in the pool that README names, with its env."""
    config = valid(blocks("README.md")[0])
    cloud = {"GPUS": "0 1 2 3", "WORKSPACE": "12000"}
    own = {"GPUS": "0 1 2 3", "WORKSPACE": "8000"}
    name, pool = "b-largegpu-xlargedisk", "shop-1/b-linux-v100-gpu-4-1tb"
    assert place(config, name, Choice("gcp-spot")) == (pool, cloud)
    assert place(config, name, Choice("onprem")) == ("shop-onprem-1/snakepit", own)


SHAPES = [
    ("onprem", "shop-onprem-1/snakepit", "0 1 2 3"),
    ("onprem", "shop-onprem-1/snakepit", "0 1 2 3"),
    ("gcp-spot", "shop-1/b-linux-v100-gpu-4-1tb", "0 1 2 3"),
]


@pytest.mark.parametrize(("index", "expected"), list(enumerate(SHAPES)))
def test_the_shapes_of_a_choice(index: int, expected: tuple[str, str, str]):
    """Each is a choice, and picks for the kind that the page picks for."""
    shape = blocks("docs/how-to/choose-a-profile.md", "## The shapes")[index]
    config, kinds = valid(blocks("README.md")[0]), ["train-teacher"]
    said = read_selection(yaml.safe_load(shape)["workers"], "page", ("page",), config, kinds)
    choice = choose([said], "train-teacher")
    pool, env = place(config, "b-largegpu-xlargedisk", choice)
    assert (choice.profile, pool, env["GPUS"]) == expected


def test_an_override_of_a_choice():
    """The override on the page reaches its name, and that name alone."""
    shape = yaml.safe_load(blocks("docs/how-to/choose-a-profile.md", "## The shapes")[2])
    config = valid(blocks("README.md")[0])
    choice = choose([read_selection(shape["workers"], "page", ("page",), config)], "any")
    pool, env = place(config, "b-largegpu", choice)
    assert (pool, env["GPUS"]) == ("shop-1/b-linux-a100-gpu-8", "2 3")
