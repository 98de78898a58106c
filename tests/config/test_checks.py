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
