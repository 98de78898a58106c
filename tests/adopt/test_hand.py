"""Reading tables that were written by hand."""

from __future__ import annotations

import pytest
from adopting import hand, told

from taskgraph_workers.adopt.hand import Keys, for_class, read
from taskgraph_workers.config.locate import Source
from taskgraph_workers.errors import ConfigError
from taskgraph_workers.model import Keyed


def test_plain_and_keyed_names():
    """An alias, or one by class, nested with what else differs."""
    said = hand(
        """
local-worker-aliases:
    a: cpu
    b: {by-worker-class: {std: cpu-std, default: {by-level: {3: gpu-1, default: cpu}}}}
"""
    )
    level = Keyed("level", {"3": "gpu-1", "default": "cpu"})
    assert said.names == {
        "a": "cpu",
        "b": Keyed("worker-class", {"std": "cpu-std", "default": level}),
    }
    assert said.problems == ()


@pytest.mark.parametrize(
    ("tree", "name", "becomes"),
    [
        ("a", "std", "a"),
        (Keyed("c", {"std": "a", "default": "b"}), "std", "a"),
        (Keyed("c", {"std": "a", "default": "b"}), "other", "b"),
        (Keyed("c", {"s.*": "a"}), "std", "a"),
        (Keyed("c", {"std": "a"}), "other", None),
        (Keyed("c", {"s.*": "a", ".*d": "b"}), "std", None),
        (Keyed("level", {"3": Keyed("c", {"std": "a", "default": "b"}), "default": "b"}), "x", "b"),
        (
            Keyed("level", {"3": Keyed("c", {"std": "a", "default": "b"}), "default": "b"}),
            "std",
            Keyed("level", {"3": "a", "default": "b"}),
        ),
        (Keyed("level", {"1": "a", "3": "a"}), "x", Keyed("level", {"1": "a", "3": "a"})),
    ],
)
def test_what_one_class_gets(tree, name: str, becomes):
    """Its branch, by name, pattern or default; what does not differ any more is plain."""
    assert for_class(tree, name, "c") == becomes


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "local-worker-aliases:\n    a: {by-worker-class: {std: cup, default: cpu}}",
            "config.yml:2:27: local-worker-aliases.a.by-worker-class.std: leads to 'cup', which is"
            " no alias in workers.aliases\n    hint: did you mean 'cpu'?",
        ),
        (
            "local-worker-aliases:\n    a: {by-platform: {linux: cpu-std, default: cpu}}",
            "config.yml:2:9: local-worker-aliases.a.by-platform: is nothing that placement knows;"
            " its default is taken",
        ),
        (
            "local-worker-aliases:\n    a: [cpu]",
            "config.yml:2:5: local-worker-aliases.a: leads to no alias",
        ),
        (
            "local-worker-aliases:\n    a: {by-level: {4: cpu, default: cpu}}",
            "config.yml:2:20: local-worker-aliases.a.by-level.4: is no level that there is",
        ),
        (
            "local-worker-aliases:\n    a: {by-kind: {trian: cpu-std, default: cpu}}",
            "config.yml:2:19: local-worker-aliases.a.by-kind.trian: is no kind that there is",
        ),
        (
            "local-worker-aliases:\n    a: {by-worker-class: {'(': cpu, default: cpu}}",
            "config.yml:2:27: local-worker-aliases.a.by-worker-class.(: is no regular expression",
        ),
        (
            "local-worker-aliases:\n    a: {by-worker-class: }",
            "config.yml:2:9: local-worker-aliases.a.by-worker-class: has no branches",
        ),
        ("local-worker-aliases: [a]", "config.yml:1:1: local-worker-aliases: is no mapping"),
        (
            "local-worker-aliases:\n    1: cpu",
            "config.yml:2:5: local-worker-aliases.1: is no text as a key",
        ),
        (
            "local-worker-aliases:\n    a: cpu\n    a: cpu-std",
            "config.yml:3:5: local-worker-aliases.a: this key stands on line 2 already; YAML takes"
            " the last only",
        ),
        (
            "local-worker-aliases:\n    a.*: cpu",
            "config.yml:2:5: local-worker-aliases.a.*: warning: is read as a regular expression, as"
            " in workers.aliases",
        ),
        (
            "worker-configuration:\n    cpu: {env: {A: 1.50}}",
            "config.yml:2:17: worker-configuration.cpu.env.A: is 1.5 to YAML, which tasks refuse as"
            " env: here it is '1.50'",
        ),
        (
            "worker-configuration:\n    cpu: {env: {A: 8}}",
            "config.yml:2:17: worker-configuration.cpu.env.A: warning: is the number 8, which tasks"
            " refuse as env: quoted here",
        ),
        (
            "worker-configuration:\n    cpu: {env: {A: on}}",
            "config.yml:2:17: worker-configuration.cpu.env.A: is true to YAML, which tasks refuse"
            " as env: here it is 'on'",
        ),
        (
            "worker-configuration:\n    cpu: {env: {A: {x: y}}}",
            "config.yml:2:17: worker-configuration.cpu.env.A: is no text, which env holds",
        ),
        (
            "worker-configuration:\n    cpu: {env: {A-B: x}}",
            "config.yml:2:17: worker-configuration.cpu.env.A-B: is no name for an environment"
            " variable",
        ),
        (
            "worker-configuration:\n    cpu: {env: {}, disk: 1}",
            "config.yml:2:20: worker-configuration.cpu.disk: has no counterpart in workers-config",
        ),
        (
            "worker-configuration:\n    cpu: 8",
            "config.yml:2:5: worker-configuration.cpu: is no mapping",
        ),
    ],
)
def test_what_cannot_be_said_is_told_with_its_line(text: str, problem: str):
    """Nothing is left out in silence."""
    assert told(hand(text + "\n", ("train",))) == [problem]


def test_numbers_are_kept_as_they_are_written():
    """Env holds text, and a number in YAML may be another one than it looks like."""
    said = hand("worker-configuration: {cpu: {env: {A: 0, B: 010, C: yes, D: null, E: '1'}}}\n")
    assert said.env == {"cpu": {"A": "0", "B": "010", "C": "yes", "E": "1"}}


def test_tables_under_other_names():
    """Projects call them what they like."""
    text = "names: {a: {by-fleet: {x: cpu}}}\nmachines: {cpu: {env: {A: b}}}\n"
    said = hand(text, names="names", machines="machines", by="fleet")
    assert said.names == {"a": Keyed("fleet", {"x": "cpu"})}
    assert said.env_of("cpu") == {"A": "b"}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "c.yml: there is no such file that can be read"),
        (b"a: ]", "c.yml:1:4: not readable as YAML: did not find expected node content"),
        (
            b"local-worker-alias: {}",
            "c.yml: has neither local-worker-aliases nor worker-configuration\n"
            "    hint: did you mean 'local-worker-alias'?",
        ),
        (
            b"workers: {}",
            "c.yml: has neither local-worker-aliases nor worker-configuration\n"
            "    hint: --names-key and --env-key say other names",
        ),
    ],
)
def test_a_file_without_tables(content: bytes | None, problem: str):
    """There is nothing to adopt, and that is said."""
    with pytest.raises(ConfigError) as raised:
        read(Source("c.yml", content), Keys())
    assert str(raised.value) == problem
