"""Every profile tried on every name."""

from __future__ import annotations

import pytest
from config_cases import KINDS, cases

from taskgraph_workers.config import check, trial
from taskgraph_workers.config.trial import Trial, tasks_decide
from taskgraph_workers.errors import DEAD_END, LEFT_OUT, LOOP, UNSET, PlacementError
from taskgraph_workers.model import ALIAS_FIELDS, Choice, Config, Context, Placement
from taskgraph_workers.resolve import resolve


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
    missed = Trial._missed

    def look(self: Trial, placement: Placement) -> object:
        tried.append(placement.chain)
        return missed(self, placement)

    monkeypatch.setattr(Trial, "_missed", look)
    entry = {"to": "b-cpu", "env": {"A": "a"}}
    profiles = {f"p{number}": {"workers": {"b-0": entry}} for number in range(5)}
    project.config(f"profiles: {profiles}")
    assert tried.count(("b-gpu",)) == 1
    assert tried.count(("b-0", "b-cpu")) == 5


@pytest.mark.parametrize("last", ["b-cpu", "n-0", "n-none"])
def test_a_chain_of_any_length(monkeypatch: pytest.MonkeyPatch, last: str):
    """However many names lead on to each other, only one of them is placed by all its links."""
    links: list[int] = []

    def look(config: Config, asked: str, choice: Choice, context: Context) -> Placement:
        try:
            placement = resolve(config, asked, choice, context)
        except PlacementError as error:
            links.append(len(error.problems[0].names))
            raise
        links.append(len(placement.chain))
        return placement

    monkeypatch.setattr(trial, "resolve", look)
    chain = {f"n-{index}": f"n-{index + 1}" for index in range(300)}
    profiles = {"p": {"workers": {**chain, "n-300": last, "n-none": {"env": {"A": "a"}}}}}
    aliases = {"b-cpu": dict.fromkeys(ALIAS_FIELDS, "x")}
    data = {"workers-config": {"profiles": profiles}, "workers": {"aliases": aliases}}
    told = [each.code for each in check(data)[1]]
    assert told == {"n-0": [LOOP, DEAD_END], "n-none": [DEAD_END] * 2}.get(last, [DEAD_END])
    assert sum(links) < 1000
    assert len(links) < 10


def test_what_only_leads_on_is_told_as_where_it_leads(project):
    """Env that is missing is told of every name that leads to a machine, however many do."""
    told = project.told(
        """
        profiles:
            p: {workers: {a: b, b: c, c: b-gpu, x: {to: b-gpu, env: {A: a}}, y: x}}
            q: {extends: p, workers: {z: a}}
        require: [{workers: b-gpu, env: A}, {workers: c, env: B}]
        """
    )
    assert [line for line in told.splitlines() if "required" in line] == [
        "config.yml:5:23: workers-config.require[0]: warning: A is required, and nothing here sets "
        "it on a, b, b-gpu, c under profile 'p'",
        "config.yml:5:23: workers-config.require[0]: warning: A is required, and nothing here sets "
        "it on z under profile 'q'",
        "config.yml:5:49: workers-config.require[1]: warning: B is required, and nothing here sets "
        "it on a, b, c under profile 'p'",
        "config.yml:5:49: workers-config.require[1]: warning: B is required, and nothing here sets "
        "it on z under profile 'q'",
    ]
