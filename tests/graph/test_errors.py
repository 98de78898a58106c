"""How a run is ended."""

from __future__ import annotations

import pickle
import sys

import pytest
from taskgraph.util import schema

from taskgraph_workers.errors import Problem
from taskgraph_workers.graph.errors import Refused, refuse

TASKGRAPH_SHOWS_IT = hasattr(schema, "SchemaValidationError")
PROBLEMS = [Problem("one", ("a", "b")), Problem("two", hint="do this"), Problem("one", ("a", "b"))]


def refused(loading_kind: bool) -> Refused:
    with pytest.raises(Refused) as caught:
        refuse(PROBLEMS, loading_kind)
    return caught.value


@pytest.mark.parametrize("loading_kind", [False, True])
def test_every_problem_is_in_the_message(loading_kind: bool):
    """The message counts the problems and holds each of them once, with its hint."""
    expected = "workers-config: 2 problems\na.b: one\ntwo\n    hint: do this"
    assert str(refused(loading_kind)) == expected


@pytest.mark.parametrize("loading_kind", [False, True])
def test_it_can_be_sent_from_a_process_that_loads_a_kind(loading_kind: bool):
    """A pickled refusal is one again, of the same kind and with the same message."""
    before = refused(loading_kind)
    after = pickle.loads(pickle.dumps(before))
    assert isinstance(after, Refused)
    assert str(after) == str(before)
    assert [each.__name__ for each in type(after).__mro__] == [
        each.__name__ for each in type(before).__mro__
    ]


def test_outside_of_kinds_python_prints_it():
    """What is not raised while a kind is loaded is a SystemExit that holds the message."""
    assert isinstance(refused(False), SystemExit)
    assert refused(False).code == str(refused(False))


def test_taskgraph_shows_it_where_it_can():
    """A refusal of a kind is what Taskgraph shows as text, if it has such an error at all."""
    if TASKGRAPH_SHOWS_IT:
        assert isinstance(refused(True), schema.SchemaValidationError)
        assert not isinstance(refused(True), SystemExit)
    else:
        assert refused(True).code == str(refused(True))


def test_a_reloaded_taskgraph_knows_it(monkeypatch: pytest.MonkeyPatch):
    """`taskgraph --diff` makes Taskgraph's error types anew; the refusal is of the new ones."""
    if not TASKGRAPH_SHOWS_IT:
        pytest.skip("SchemaValidationError came with Taskgraph 23.1.0")
    before = schema.SchemaValidationError
    for name in [each for each in sys.modules if each.split(".")[0] == "taskgraph"]:
        monkeypatch.delitem(sys.modules, name)
    from taskgraph.util.schema import SchemaValidationError

    assert SchemaValidationError is not before
    assert isinstance(refused(True), SchemaValidationError)
