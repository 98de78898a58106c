"""What a start-training message may ask for."""

from __future__ import annotations

import pytest
from config_cases import KINDS, cases

from taskgraph_workers.model import Dispatch, Keyed, RequestTask


@pytest.mark.parametrize(("body", "told"), cases("dispatch.txt"))
def test_faults(project, body: str, told: str):
    """Each fault of `dispatch` is told with its place."""
    assert project.told(body, KINDS) == told


def test_the_smallest(project):
    """A SKU, an image and its command are enough."""
    config = project.config(
        """
        dispatch:
            skus: {NC6: b-gpu}
            images: [mine]
            local: {commands: {mine: [python3, train.py]}}
        """
    )
    assert config.dispatch == Dispatch(
        skus={"NC6": "b-gpu"}, images=("mine",), commands={"mine": ("python3", "train.py")}
    )
    assert config.dispatch.level == "1"


def test_the_task(project):
    """Values may be keyed by image and by SKU; times become seconds; env may be empty text."""
    config = project.config(
        """
        dispatch:
            level: 3
            project: try
            kind: train
            task:
                max-run-time: {by-image: {a/.*: 2h, default: {by-sku: {NC6: 60, default: 86400}}}}
                retries: 0
                scopes: {by-image: {a/.*: [secrets:get:x], default: []}}
                env: {A: {by-sku: {6: "", default: b}}}
        """
    )
    assert config.dispatch == Dispatch(
        level="3",
        project="try",
        kind="train",
        task=RequestTask(
            max_run_time_s=Keyed(
                "image",
                {"a/.*": 7200, "default": Keyed("sku", {"NC6": 60, "default": 86400})},
            ),
            retries=0,
            scopes=Keyed("image", {"a/.*": ("secrets:get:x",), "default": ()}),
            env={"A": Keyed("sku", {"6": "", "default": "b"})},
        ),
    )


def test_nothing_said_is_nothing(project):
    """Without the key there is no such door."""
    assert project.config("workers: {}").dispatch is None
