"""Env that kinds set themselves."""

from __future__ import annotations

from taskgraph_workers.adopt.kinds import own_env
from taskgraph_workers.config.locate import Source

KIND = b"""
task-defaults:
    worker:
        env: {GPUS: "0", OTHER: x}
tasks:
    a: {worker: {env: {by-level: {'3': {GPUS: "1"}}, WORKSPACE: "1"}}}
    b: {GPUS: not env}
    c: [{env: &env {GPUS: "2"}}, {env: *env}]
"""


def test_each_is_found_once_with_its_line():
    """At whatever depth, and nothing that is not right below an env."""
    found = [
        (p.line, p.message.split()[3]) for p in own_env(Source("k", KIND), {"GPUS", "WORKSPACE"})
    ]
    assert found == [(4, "GPUS"), (6, "WORKSPACE"), (8, "GPUS")]


def test_a_kind_that_cannot_be_read():
    """Taskgraph will say so."""
    assert list(own_env(Source("k", b"a: ["), {"A"})) == []
    assert list(own_env(Source("k"), {"A"})) == []
