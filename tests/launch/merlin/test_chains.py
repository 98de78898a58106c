"""How tasks hang together, and what Merlin's own code says to it."""

from __future__ import annotations

import json
import random
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from merlin_values import a_spec, a_step

from merlin_services import merlin_bin
from taskgraph_workers.launch.merlin.chains import chains

# What Merlin makes of specs: for each, its groups of chains.
ORACLE = """
import json, sys
from merlin.config.configfile import initialize_config
initialize_config(local_mode=True)
from merlin.study.study import MerlinStudy
found = []
for file in sys.argv[1:]:
    dag = MerlinStudy(file, dry_run=True, no_errors=True).dag
    groups = dag.group_tasks("_source")[1:]
    name = lambda task: dag.step(task).name_no_params()
    found.append([[list(map(name, chain)) for chain in group] for group in groups])
print("FOUND" + json.dumps(found))
"""


def merlins(files: list[Path], folder: Path) -> list[list[Counter[tuple[str, ...]]]]:
    """The chains of each spec, as Merlin 1.13 itself groups them, in a process of its own."""
    done = subprocess.run(
        [str(merlin_bin() / "python"), "-c", ORACLE, *map(str, files)],
        cwd=folder,
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    line = next((x for x in done.stdout.splitlines() if x.startswith("FOUND")), None)
    assert line, done.stderr[-3000:]
    return [[Counter(map(tuple, group)) for group in each] for each in json.loads(line[5:])]


def ours(spec: Any) -> list[Counter[tuple[str, ...]]]:
    by_depth: dict[int, Counter[tuple[str, ...]]] = {}
    for chain in chains(spec):
        assert chain.number is not None
        by_depth.setdefault(chain.depth, Counter())[chain.steps] += chain.number
    return list(by_depth.values())


def a_study(rng: random.Random) -> tuple[dict[str, Any], Any]:
    """One study at random: as YAML, and as a value."""
    rows = rng.randint(1, 4)
    values = {name: [rng.choice("uvw") for _ in range(rows)] for name in "PQ"[: rng.randint(0, 2)]}
    steps, written = [], []
    for index in range(rng.randint(1, 7)):
        name = f"s{index}"
        before = [f"s{each}" for each in range(index)]
        chosen = rng.sample(before, min(len(before), rng.choice([0, 1, 1, 1, 2])))
        depends = tuple(each + rng.choice(["", "", "_*", "*"]) for each in chosen)
        used = [each for each in values if rng.random() < 0.4]
        samples = rng.random() < 0.4
        words = [f"$({each})" for each in used] + ["$(X)"] * samples
        steps.append(a_step(name, depends=depends, parameters=used, samples=samples))
        run = {"cmd": "echo " + " ".join(words), "depends": list(depends)}
        written.append({"name": name, "description": "d", "run": run})
    text = {
        "description": {"name": "study", "description": "d"},
        "study": written,
        "merlin": {
            "resources": {"workers": {"w": {"steps": ["all"]}}},
            "samples": {"column_labels": ["X"], "file": "x.csv", "generate": {"cmd": "true"}},
        },
    }
    if values:
        text["global.parameters"] = {
            name: {"values": each, "label": f"{name}.%%"} for name, each in values.items()
        }
    frozen = {name: tuple(each) for name, each in values.items()}
    return text, a_spec(*steps, values=frozen, samples=1)


@pytest.mark.service
@pytest.mark.once
def test_chains_are_those_of_merlin(tmp_path: Path):
    """Two hundred studies are grouped into the very chains that Merlin's own code makes of them."""
    rng = random.Random(20261130)
    studies = [a_study(rng) for _ in range(200)]
    files = []
    for index, (text, _) in enumerate(studies):
        files.append(tmp_path / f"study{index}.yaml")
        text["description"]["name"] = f"study{index}"
        files[-1].write_text(yaml.safe_dump(text, sort_keys=False))
    for file, found, (_, spec) in zip(files, merlins(files, tmp_path), studies):
        assert ours(spec) == found, file.read_text()


def test_a_barrier_is_behind_each_group():
    """Tasks of one depth are one group; what follows several of them waits for all."""
    spec = a_spec(a_step("a"), a_step("b"), a_step("c", depends=("a", "b")))
    assert ours(spec) == [Counter({("a",): 1, ("b",): 1}), Counter({("c",): 1})]


def test_only_children_hang_to_their_parents():
    """A step that is its parent's only child, and has no other, runs in the parent's chain."""
    spec = a_spec(a_step("a"), a_step("b", depends=("a",)), a_step("c", depends=("b",)))
    assert ours(spec) == [Counter({("a", "b", "c"): 1})]


def test_samples_part_chains():
    """A step that runs once for all samples does not hang to one that runs for each."""
    spec = a_spec(a_step("a", samples=True), a_step("b", depends=("a",)), samples=10)
    assert ours(spec) == [Counter({("a",): 10}), Counter({("b",): 1})]


def test_unknown_samples_are_unknown():
    """Where the number of samples isn't known, neither is that of the tasks."""
    spec = a_spec(a_step("a", samples=True), samples=None)
    assert [chain.number for chain in chains(spec)] == [None]


def test_parameters_are_handed_on_but_not_through_a_funnel():
    """A step behind `a` runs for each of a's parameters, one behind `a_*` once for all."""
    steps = [
        a_step("a", parameters="P"),
        a_step("b", depends=("a",)),
        a_step("c", depends=("a_*",)),
    ]
    spec = a_spec(*steps, values={"P": ("1", "2", "2")})
    assert ours(spec) == [Counter({("a",): 2}), Counter({("b",): 2, ("c",): 1})]


def test_a_circle_has_no_chains():
    """Steps that wait for each other never run."""
    assert chains(a_spec(a_step("a", depends=("b",)), a_step("b", depends=("a",)))) == ()


def test_many_combinations_are_quick():
    """A funnel between two steps of ten thousand combinations makes no hundred million edges."""
    values = {"P": tuple(map(str, range(10_000)))}
    steps = [a_step("a", parameters="P"), a_step("b", parameters="P", depends=("a_*",))]
    found = chains(a_spec(*steps, values=values))
    assert [(chain.steps, chain.number) for chain in found] == [(("a",), 10_000), (("b",), 10_000)]
