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
    assert (config.dispatch.level, config.dispatch.at_once) == ("1", 1)


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


def test_names_from_outside_match_whole(project):
    """A branch by image or SKU with alternatives matches no longer name, unlike elsewhere."""
    config = project.config(
        """
        dispatch:
            task:
                scopes: {by-image: {'a|b': [x], default: {by-sku: {'c|d': [y], default: []}}}}
                env: {A: {by-image: {'a|b': x, default: y}}}
        """
    )
    assert config.dispatch.task == RequestTask(
        scopes=Keyed(
            "image",
            {"(?:a|b)": ("x",), "default": Keyed("sku", {"(?:c|d)": ("y",), "default": ()})},
        ),
        env={"A": Keyed("image", {"(?:a|b)": "x", "default": "y"})},
    )


def test_a_machine_type_twice_in_one_file(project):
    """Twice in one mapping is an error; an including file may say otherwise than the included."""
    project.write("lab.yml", "dispatch: {skus: {ND6: b-cpu, NC6: b-cpu}}")
    config = project.config("include: lab.yml\ndispatch: {skus: {ND6: b-gpu}}")
    assert config.dispatch.skus == {"ND6": "b-gpu", "NC6": "b-cpu"}


def test_commands_of_a_site(project):
    """They are words, in which braces that are meant literally are written twice."""
    config = project.config(
        """
        dispatch:
            executor: vms
            executors:
                vms:
                    submit: [az, vm, create, --name, "tw-{key}", --size, "{sku}"]
                    find: [az, vm, list, --query, "[?name=='tw-{key}'].name"]
                    poll: [az, vm, list, --query, "[?name=='tw-{key}'].{{phase: tags.phase}}"]
                    cancel: [az, vm, delete, --ids, "{handle}"]
                    timeout: 5m
            local: {engine: none, options: [--shm-size, 8g], at-once: 4}
        """
    )
    vms = config.dispatch.executors["vms"]
    assert (config.dispatch.executor, config.dispatch.engine) == ("vms", "none")
    assert config.dispatch.engine_options == ("--shm-size", "8g")
    assert config.dispatch.at_once == 4
    assert vms.submit[4:] == ("tw-{key}", "--size", "{sku}")
    assert (vms.name, vms.release, vms.timeout_s) == ("vms", (), 300)
    assert vms.path == ("workers-config", "dispatch", "executors", "vms")
