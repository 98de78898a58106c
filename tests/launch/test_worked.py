"""Specs whose sizes were worked out by hand, number for number.

Merlin's own examples are those inside of its package, as people have them; of what is nowhere
installed, ``tests/data/launch/worked`` has a spec with the same numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from merlin_services import merlin_bin
from taskgraph_workers.launch.merlin.ask import ask
from taskgraph_workers.launch.merlin.options import Options
from taskgraph_workers.launch.merlin.read import read_spec
from taskgraph_workers.launch.size import size
from taskgraph_workers.machines import Node

DATA = Path(__file__).parents[1] / "data" / "launch" / "worked"
CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "merlin"
NODE = Node(36, 4)


def sizes(file: Path, node: Node = NODE, nodes: int | None = None) -> tuple[list[int], Any]:
    """The numbers of workers; and exclusive, packed, certain, useful."""
    asked = ask(read_spec(str(file), {}), Options(node=node, nodes=nodes, folder="/opt/merlin/bin"))
    found = size(asked.groups, node, asked.stages).sizes
    numbers = [group.number for group in asked.groups]
    return numbers, tuple(each.nodes if each else None for each in found.values())


OURS = {
    "example": (NODE, [4, 2], (10, 2, 2, 2)),
    # The recording of a real Flux: 34 cores on nodes of 8, and six for any order.
    "example-8": (Node(8, 4), [4, 2], (10, 5, 6, 5)),
    "literal": (NODE, [4], (8, 4, 4, 2)),
    "literal-overlap": (NODE, [4, 2], (12, 6, 6, 2)),
    "native": (NODE, [4], (4, 1, 1, 1)),
    "threads": (Node(128), [32], (None, 1, 1, 1)),
}


@pytest.mark.parametrize("name", OURS)
def test_specs_of_ours(name: str):
    """Each of them comes out as it was worked out by hand."""
    node, numbers, nodes = OURS[name]
    file = DATA / f"{name.removesuffix('-8')}.yaml"
    assert sizes(file, node) == (numbers, nodes)


MERLINS: dict[str, tuple[int | None, list[int], tuple[int | None, ...]]] = {
    # Its own script asks for two nodes, which Merlin takes for as many workers.
    "workflows/slurm/slurm_par.yaml": (2, [2], (4, 2, 2, 2)),
    "workflows/hpc_demo/hpc_demo.yaml": (None, [36, 1], (37, 2, 2, 1)),
    "workflows/flux/paper.yaml": (None, [36], (36, 1, 1, 1)),
    "workflows/lsf/lsf_par.yaml": (None, [1], (2, 2, 2, 2)),
    "dev_workflows/multiple_workers.yaml": (None, [1, 1, 1], (None, 1, 1, 1)),
}


@pytest.mark.parametrize("name", MERLINS)
def test_examples_of_merlin(name: str):
    """Each of Merlin's examples comes out as it was worked out by hand."""
    examples = merlin_bin().parent.glob("lib/python*/site-packages/merlin/examples")
    nodes, numbers, expected = MERLINS[name]
    assert sizes(next(examples) / name, nodes=nodes) == (numbers, expected)


CORPUS_SIZES = {
    "issue-example-runnable.yaml": ([4, 2], (10, 2, 2, 2)),
    "issue-example.yaml": ([4], (8, 4, 4, 2)),
}


@pytest.mark.parametrize("name", CORPUS_SIZES)
def test_the_originating_example(name: str):
    """The issue's example, word for word, and as Merlin runs it."""
    if not CORPUS.exists():
        pytest.skip("the corpus of public specs is not beside this checkout")
    assert sizes(CORPUS / name) == CORPUS_SIZES[name]
