"""`workers-config.decision`."""

from __future__ import annotations

import pytest
from config_cases import cases

from taskgraph_workers.model import Action, Decision


@pytest.mark.parametrize(("body", "told"), cases("decision.txt"))
def test_faults(project, body: str, told: str):
    """Each fault is told with its place."""
    assert project.told(body) == told


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("", Decision()),
        ("{action: true}", Decision()),
        ("{action: }", Decision()),
        ("{plan: false, action: false}", Decision(plan=False, action=None)),
        (
            "{action: {permission: workers, levels: [1, '3'], order: 7}}",
            Decision(action=Action("workers", frozenset({"1", "3"}), 7)),
        ),
    ],
)
def test_what_is_said(project, said: str, meant: Decision):
    """All of it is optional, and the action may be switched off."""
    assert project.config(f"decision: {said}").decision == meant


def test_without_a_word(project):
    """Where nothing is said, there is a plan and an action."""
    assert project.config("profiles: {p: {}}").decision == Decision(True, Action())
