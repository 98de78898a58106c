"""Whatever a file holds, reading it gives a spec, or an error that says why not."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from taskgraph_workers.launch.merlin import schema
from taskgraph_workers.launch.merlin.model import Spec
from taskgraph_workers.launch.merlin.read import read_spec
from taskgraph_workers.launch.model import LaunchError

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 10**12),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.dates(),
    st.sampled_from(
        [
            "all",
            "s",
            "s_*",
            "$(P)",
            "$(V)",
            "$(X)",
            "$(LAUNCHER) a",
            "$(LAUNCHER)[$(P)n, 2p]",
            "$(VLAUNCHER) a",
            "srun -n $(P) a & srun -N2 b",
            "-n 4 --gres=gpu:2",
            "MERLIN_NODES=$(P)",
            "flux",
            "slurm",
            "lsf",
            "10:00:00",
            "90m",
            "for i in 1 2; do srun a & done",
            "'",
            "$(",
        ]
    ),
)
JUNK = st.recursive(
    SCALARS,
    lambda inside: st.one_of(
        st.lists(inside, max_size=3), st.dictionaries(SCALARS, inside, max_size=3)
    ),
    max_leaves=6,
)


def block(keys: Any, values: st.SearchStrategy[Any] = JUNK) -> st.SearchStrategy[Any]:
    """A mapping that has some of the keys that it may have, or something else altogether."""
    return st.one_of(st.dictionaries(st.sampled_from(sorted(keys)), values, max_size=6), JUNK)


RUN = block(schema.RUN)
STEP = st.one_of(
    st.fixed_dictionaries({"name": st.sampled_from("st"), "description": st.just("d"), "run": RUN}),
    block(schema.STEP),
)
WORKER = block(schema.WORKER)
SPEC = st.fixed_dictionaries(
    {
        "description": block({"name", "description"}),
        "batch": block(schema.BATCH),
        "env": st.one_of(JUNK, st.fixed_dictionaries({"variables": block({"V", "LAUNCHER"})})),
        "global.parameters": st.one_of(JUNK, block({"P", "Q"}, block(schema.PARAMETER))),
        "study": st.one_of(st.lists(STEP, max_size=3), JUNK),
        "merlin": st.one_of(
            JUNK,
            st.fixed_dictionaries(
                {
                    "resources": st.one_of(
                        JUNK,
                        st.fixed_dictionaries({"workers": block({"w", "$(V)", "$(P)"}, WORKER)}),
                    ),
                    "samples": block(schema.SAMPLES),
                }
            ),
        ),
    }
)


def outcome(text: str) -> Spec | LaunchError:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "spec.yaml"
        file.write_text(text, encoding="utf-8", errors="surrogatepass")
        try:
            return read_spec(str(file), {"V": "3"})
        except LaunchError as error:
            return error


@given(SPEC)
def test_values_of_any_kind(value: Any):
    """Where a value has the wrong kind, its line says so; no other exception comes out."""
    found = outcome(yaml.safe_dump(value, allow_unicode=True, sort_keys=False))
    if isinstance(found, LaunchError):
        assert any(problem.severity == "error" for problem in found.problems)
    else:
        assert all(note.severity == "warning" for note in found.notes)
        assert all(step.demand is None or step.demand.nodes > 0 for step in found.steps)


@given(st.text(max_size=60))
def test_text_of_any_kind(text: str):
    """A file that holds anything at all is refused: it lacks what a spec needs."""
    assert isinstance(outcome(text), LaunchError)
