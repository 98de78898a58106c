"""Every profile tried on every name."""

from __future__ import annotations

import pytest
from config_cases import KINDS, cases

from taskgraph_workers.config.trial import Trial, tasks_decide
from taskgraph_workers.errors import LEFT_OUT, LOOP, UNSET


@pytest.mark.parametrize(("body", "told"), cases("trial.txt"))
def test_faults(project, body: str, told: str):
    """Dead ends, loops, missing branches and unmet requirements are told once each."""
    assert project.told(body, KINDS) == told


def test_which_problems_the_tasks_may_mend(project):
    """Names that a profile leaves out and env that nothing sets; of a loop no task makes less."""
    body = """
profiles: {p: {}, q: {workers: {b-x: b-gpu, b-y: b-z, b-z: b-y}}}
require: [{workers: b-x, env: GPUS}]
"""
    found = {each.code: tasks_decide(each) for each in project.check(body, KINDS)}
    assert found == {LEFT_OUT: True, UNSET: True, LOOP: False}


def test_a_large_configuration_is_tried_in_few_steps(project, monkeypatch: pytest.MonkeyPatch):
    """A name that no profile moves is placed once, not once for each profile."""
    tried = []
    placed = Trial._placed
    monkeypatch.setattr(
        Trial, "_placed", lambda self, each: (tried.append(each.chain), placed(self, each))
    )
    profiles = {f"p{number}": {"workers": {"b-0": "b-cpu"}} for number in range(5)}
    project.config(f"profiles: {profiles}")
    assert tried.count(("b-gpu",)) == 1
    assert tried.count(("b-0", "b-cpu")) == 5
