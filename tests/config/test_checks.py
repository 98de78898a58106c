"""What no single value shows: loops of profiles, patterns that clash or match nothing."""

from __future__ import annotations

import pytest
import yaml
from config_cases import KINDS, cases

from taskgraph_workers.config import check


@pytest.mark.parametrize(("body", "told"), cases("checks.txt"))
def test_faults(project, body: str, told: str):
    """Each is told once, where it can be mended."""
    assert project.told(body, KINDS) == told


@pytest.mark.parametrize(
    ("alias", "told"),
    [
        (
            "'b-(': *gcp",
            "config.yml:9:9: workers.aliases.b-(: 'b-(' is no regular expression, which Taskgraph"
            " takes it for: missing ), unterminated subpattern at position 2",
        ),
        (
            "b-x.*: *gcp\n        .*-xy: *gcp",
            "config.yml:10:9: workers.aliases..*-xy: 'b-x.*' and '.*-xy' both match 'b-xy'\n"
            "    hint: write the name itself as a key",
        ),
    ],
)
def test_aliases_that_placement_stumbles_over(project, alias: str, told: str):
    """Alias keys are patterns, too: one that is none, and two that match a name of a profile."""
    fields = "provisioner: a, implementation: docker-worker, os: linux, worker-type: b"
    text = (
        "workers-config:\n    profiles:\n        p:\n            workers: {b-xy: {os: linux}}\n"
        f"workers:\n    aliases:\n        b: &gcp {{{fields}}}\n        c: *gcp\n        {alias}\n"
    )
    project.write("config.yml", text)
    _, problems = check(yaml.safe_load(text), project.folder)
    assert [str(problem) for problem in problems] == [told]


def test_only_real_names_are_offered(project):
    """A key that may itself be misspelled is no answer to who misspells a name."""
    told = project.told(
        """
        workers: {qqq: {}}
        profiles:
            p:
                workers:
                    b-gpo: {env: {A: a}}
                    'b-gpu ': b-cpu
                    zzz: yyyy
                    same: same
                    good: {by-level: {'1': b-gpu, default: b-cpu}}
                    there: {to: {by-kind: {train: good, default: b-cpu}}}
                    gone: {}
        """
    )
    offered = [line.strip() for line in told.splitlines() if "there is: " in line]
    assert offered[0] == "hint: there is: b-cpu, b-gpu, b-gpu-4, good, sign, there"
    assert set(offered) == {offered[0]}
    assert len(offered) == 4
    assert "hint: did you mean 'b-gpu'?" in told
