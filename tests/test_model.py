from __future__ import annotations

import dataclasses
import inspect

import pytest

from taskgraph_workers import model
from taskgraph_workers.model import KEYED_BY, Config, Context


@pytest.mark.parametrize(
    "kind",
    [kind for _, kind in inspect.getmembers(model, dataclasses.is_dataclass)],
    ids=lambda kind: kind.__name__,
)
def test_values_are_frozen(kind: type):
    """Nothing that is shared between kinds and graphs can be changed in place."""
    assert kind.__dataclass_params__.frozen


def test_a_context_without_a_field_does_not_know_it():
    """What is empty is unknown to `by-...`; the level is 1 unless said."""
    known = {by: Context().get(by) for by in KEYED_BY}
    assert known.pop("level") == "1"
    assert set(known.values()) == {None}
    assert Context(tasks_for="action").get("tasks-for") == "action"


def test_how_lines_are_found_is_no_part_of_a_configuration():
    """Two configurations that say the same are equal, wherever they were read."""
    assert Config(trace=object()) == Config(trace=object())
