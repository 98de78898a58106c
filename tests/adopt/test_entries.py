"""Entries that the chain of placement would otherwise lead astray."""

from __future__ import annotations

from adopting import adopt, hand, value

GPU = "{env: {GPUS: '0', WORKSPACE: '1'}}"


def workers(text: str, **wanted: str) -> dict[str, object]:
    profiles = value(adopt(hand(text), default="x", **wanted))["profiles"]
    return {name: each.get("workers") for name, each in profiles.items()}


def test_an_alias_that_is_sent_on_as_a_name():
    """Hand-written code looks up once: the entry says all about that alias itself."""
    text = "local-worker-aliases: {a: gpu-1, gpu-1: gpu-4}\n"
    text += f"worker-configuration: {{gpu-1: {GPU}}}\n"
    machine = {
        "provisioner": "{trust-domain}-{level}",
        "worker-type": "gpu-1",
        "implementation": "docker-worker",
        "os": "linux",
        "env": {"GPUS": "0", "WORKSPACE": "1"},
    }
    without = {"GPUS": None, "WORKSPACE": None}
    assert workers(text)["x"] == {"a": machine, "gpu-1": {"to": "gpu-4", "env": without}}


def test_a_pattern_of_names_that_matches_an_alias():
    """It would send the alias on, too; a name that is sent to itself goes nowhere else."""
    said = workers("local-worker-aliases: {a: cpu-std, cpu.*: cpu}\n")["x"]
    assert said["a"]["worker-type"] == "cpu-std"
    assert said["cpu.*"] == "cpu"


def test_a_name_that_is_an_alias_with_env_of_its_own():
    """What the alias of that name gives is taken back, key by key."""
    text = (
        "local-worker-aliases: {gpu-1: gpu-4}\n"
        "worker-configuration:\n"
        "    gpu-1: {env: {GPUS: '0', WORKSPACE: '1', ONE: x}}\n"
        "    gpu-4: {env: {GPUS: '0', WORKSPACE: '2'}}\n"
    )
    assert workers(text)["x"] == {
        "gpu-1": {"to": "gpu-4", "env": {"WORKSPACE": "2", "ONE": None}},
    }


def test_a_child_says_each_key_that_its_parent_says():
    """Its entry is laid over the parent's, which would show through."""
    text = (
        "local-worker-aliases: {gpu-1: {by-worker-class: {y: gpu-8, default: gpu-4}}}\n"
        "worker-configuration:\n"
        "    gpu-1: {env: {GPUS: '0', WORKSPACE: '1', ONE: x}}\n"
        "    gpu-4: {env: {GPUS: '0', WORKSPACE: '2', ONE: x}}\n"
        "    gpu-8: {env: {GPUS: '0', WORKSPACE: '3'}}\n"
    )
    assert workers(text) == {
        "x": {"gpu-1": {"to": "gpu-4", "env": {"WORKSPACE": "2", "ONE": "x"}}},
        "y": {"gpu-1": {"to": "gpu-8", "env": {"WORKSPACE": "3", "ONE": None}}},
    }


def test_an_alias_of_itself_under_one_class():
    """It is said there, since it is sent on elsewhere."""
    text = "local-worker-aliases: {cpu: {by-worker-class: {y: cpu-std, default: cpu}}}\n"
    assert workers(text) == {"x": {"cpu": "cpu"}, "y": {"cpu": "cpu-std"}}


def test_services_are_named_exactly():
    """A script worker may be where a name goes."""
    assert workers("local-worker-aliases: {a: sign}\n") == {"x": {"a": "sign"}}
