"""What a person says who starts the action, and the choice that it makes."""

from __future__ import annotations

from typing import Any

import pytest

from taskgraph_workers.errors import WorkersError
from taskgraph_workers.graph.request import Request

GPU = {"b-gpu": {"env": {"GPUS": "2 3"}}}
OTHER = {"b-cpu": "b-gpu"}


@pytest.mark.parametrize(
    ("said", "held", "choice"),
    [
        ({"profile": "p"}, None, "p"),
        ({"profile": "p"}, {"profile": "q", "workers": OTHER}, "p"),
        ({"profile": "p", "workers": GPU}, "q", {"profile": "p", "workers": GPU}),
        ({"profile": "p", "kinds": ["train"]}, None, {"train": "p"}),
        ({"profile": "p", "kinds": ["train"]}, "q", {"default": "q", "train": "p"}),
        (
            {"profile": "p", "kinds": ["train"]},
            {"default": "q", "train": "q", "align": "r"},
            {"default": "q", "train": "p", "align": "r"},
        ),
        (
            {"profile": "p", "kinds": ["train"], "workers": GPU},
            {"profile": "q", "workers": OTHER},
            {"profile": {"default": "q", "train": "p"}, "workers": {**OTHER, **GPU}},
        ),
        (
            {"profile": "p", "kinds": ["train"]},
            {"workers": OTHER},
            {"profile": {"train": "p"}, "workers": OTHER},
        ),
    ],
)
def test_the_choice(said: Any, held: Any, choice: Any):
    """For all kinds it takes the place of what was chosen; for some it is laid over it."""
    assert Request.read(said).choice({"workers": held, "level": "1"}) == choice


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (None, ["must be a mapping"]),
        ("p", ["must be a mapping"]),
        ({}, ["names no profile"]),
        ({"profile": 1}, ["must be the name of a profile"]),
        ({"profile": "p", "kind": "train"}, ["did you mean 'kinds'?"]),
        ({"profile": "p", "kinds": "train"}, ["must be a list of kinds"]),
        ({"profile": "p", "workers": [], "downstream": "yes"}, ["must be a map", "true or false"]),
    ],
)
def test_what_is_no_request(said: Any, told: list[str]):
    """Nobody has validated an action's input; every fault in it is told."""
    with pytest.raises(WorkersError) as raised:
        Request.read(said)
    assert len(raised.value.problems) == len(told)
    for problem, part in zip(raised.value.problems, told):
        assert part in str(problem)


def test_what_is_left_out():
    """Null says as little as nothing."""
    said = {"profile": "p", "kinds": None, "workers": None, "downstream": None}
    assert Request.read(said) == Request("p")
