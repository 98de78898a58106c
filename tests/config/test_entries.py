"""Entries: what is refused, and what the rest becomes."""

from __future__ import annotations

import pytest
from config_cases import KINDS, cases

from taskgraph_workers.detect import Detect
from taskgraph_workers.model import Change, Keyed

AT = ("workers-config", "profiles", "p", "workers")


@pytest.mark.parametrize(("body", "told"), cases("entries.txt"))
def test_faults(project, body: str, told: str):
    """Each fault of an entry is told with its place and what to write instead."""
    assert project.told(body, KINDS) == told


def test_a_machine(project):
    """Sizes become MiB, rounded down; null removes; `{detect: ...}` becomes a Detect."""
    config = project.config(
        """
        workers:
            b-gpu:
                env: {GPUS: "0", OLD: null, EMPTY: "", WORKSPACE: {detect: gpu-memory, share: 0.5}}
                resources: {gpus: 0, cores: 8, memory: 16GB, gpu-memory: 16GiB, disk: null}
        """
    )
    assert config.workers.source == "workers"
    assert config.workers.entries == {
        "b-gpu": Change(
            ("workers-config", "workers", "b-gpu"),
            env={
                "GPUS": "0",
                "OLD": None,
                "EMPTY": "",
                "WORKSPACE": Detect("gpu-memory", share=0.5),
            },
            resources={
                "gpus": 0,
                "cores": 8,
                "memory": 15258,
                "gpu-memory": 16384,
                "disk": None,
            },
        )
    }


@pytest.mark.parametrize(
    ("entry", "change"),
    [
        ("b-cpu", Change((*AT, "b-gpu"), to="b-cpu")),
        ("b-big", Change((*AT, "b-gpu"), to="b-big")),
        ("succeed", Change((*AT, "b-gpu"), to="succeed")),
        ("own/name", Change((*AT, "b-gpu"), to="own/name")),
        ("a/b", Change((*AT, "b-gpu"), fields={"provisioner": "a", "worker-type": "b"})),
        ("{to: b-cpu}", Change((*AT, "b-gpu"), to="b-cpu")),
        ("{to: null}", Change((*AT, "b-gpu"))),
        ("{}", Change((*AT, "b-gpu"))),
        ("null", None),
        (
            "{provisioner: '{trust-domain}-x', os: macosx, implementation: generic-worker}",
            Change(
                (*AT, "b-gpu"),
                fields={
                    "provisioner": "{trust-domain}-x",
                    "implementation": "generic-worker",
                    "os": "macosx",
                },
            ),
        ),
    ],
)
def test_where_a_name_goes(project, entry: str, change: Change | None):
    """A string is a name if there is one, else a pool; null drops; a mapping says what it says."""
    config = project.config(
        f"""
        profiles:
            p:
                workers:
                    b-gpu: {entry}
                    b-big: b-cpu
                    own/name: b-cpu
        """
    )
    assert config.profiles["p"].layer.entries["b-gpu"] == change


def test_entries_that_are_keyed_know_their_branch(project):
    """An entry of a branch stands at the branch, so that a message names it."""
    config = project.config(
        """
        profiles:
            p:
                workers:
                    b-gpu: {by-level: {3: b-cpu, default: {by-kind: {train: null, default: a/b}}}}
        """
    )
    at = (*AT, "b-gpu", "by-level")
    pool = {"provisioner": "a", "worker-type": "b"}
    assert config.profiles["p"].layer.entries["b-gpu"] == Keyed(
        "level",
        {
            "3": Change((*at, "3"), to="b-cpu"),
            "default": Keyed(
                "kind",
                {
                    "train": None,
                    "default": Change((*at, "default", "by-kind", "default"), fields=pool),
                },
            ),
        },
    )


def test_what_is_laid_over_worker(project):
    """Any value that JSON knows, keyed at whatever depth; null stays, since it removes."""
    config = project.config(
        """
        profiles:
            p:
                workers:
                    b-gpu:
                        worker:
                            max-run-time: 60
                            docker-image: null
                            mounts: [{content: {by-level: {"3": a, default: 1.5}}}, [true]]
        """
    )
    entry = config.profiles["p"].layer.entries["b-gpu"]
    assert isinstance(entry, Change)
    assert entry.worker == {
        "max-run-time": 60,
        "docker-image": None,
        "mounts": [{"content": Keyed("level", {"3": "a", "default": 1.5})}, [True]],
    }
