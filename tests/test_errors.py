from __future__ import annotations

import pickle

import pytest

from taskgraph_workers.errors import (
    MOST_NAMES,
    UNMET,
    ConfigError,
    PlacementError,
    Problem,
    WorkersError,
    did_you_mean,
    dotted,
    listed,
)

PATH = ("workers-config", "require", 0, "env")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("workers-config",), "workers-config"),
        (PATH, "workers-config.require[0].env"),
        (("a", 0, 1, "b"), "a[0][1].b"),
        ((2, "a"), "[2].a"),
        (("profiles", "by-level", "3"), "profiles.by-level.3"),
    ],
)
def test_a_path_reads_as_people_write_it(path: tuple[str | int, ...], text: str):
    """Keys are joined by dots, list indices stand in brackets, and text that is digits is a key."""
    assert dotted(path) == text


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem("is wrong"), "is wrong"),
        (Problem("is wrong", PATH), "workers-config.require[0].env: is wrong"),
        (Problem("is wrong", hint="do this"), "is wrong\n    hint: do this"),
        (Problem("looks odd", ("a",), severity="warning"), "a: warning: looks odd"),
        (Problem("is wrong", profiles=("p", "q")), "is wrong under profile 'p' and 'q'"),
        (Problem("is wrong").at("config.yml", 3, 7), "config.yml:3:7: is wrong"),
        (Problem("is wrong", ("a",)).at("config.yml", 3, 7), "config.yml:3:7: a: is wrong"),
        (Problem("is wrong", ("a",)).at("config.yml", 0, 0), "config.yml: a: is wrong"),
    ],
)
def test_a_problem_reads_place_path_what_hint(problem: Problem, text: str):
    """A problem is `file:line:col: key.path: what` and a hint; what is unknown is left out."""
    assert str(problem) == text


def test_placing_a_problem_makes_another():
    """`at` leaves the problem as it was and changes nothing but the place."""
    problem = Problem("is wrong", PATH, "do this", "warning")
    placed = problem.at("config.yml", 3, 7)
    assert problem == Problem("is wrong", PATH, "do this", "warning")
    assert placed == Problem("is wrong", PATH, "do this", "warning", "config.yml", 3, 7)


@pytest.mark.parametrize("kind", [ConfigError, PlacementError])
def test_an_error_carries_every_problem(kind: type[WorkersError]):
    """One family: an error holds all of its problems and shows them one below the other."""
    first, second = Problem("one", ("a",)), Problem("two", hint="three")
    error = kind(first, second)
    assert isinstance(error, WorkersError)
    assert error.problems == (first, second)
    assert str(error) == "a: one\ntwo\n    hint: three"


def test_an_error_survives_a_process_boundary():
    """Kinds are loaded in other processes: an error pickles without losing its problems."""
    error = pickle.loads(pickle.dumps(PlacementError(Problem("one", PATH, "two"))))
    assert isinstance(error, PlacementError)
    assert error.problems == (Problem("one", PATH, "two"),)


def test_names_are_listed_sorted_and_once():
    """A list in a message is in order and has no name twice."""
    assert listed(["b", "a", "b"]) == "a, b"
    assert listed([]) == ""


@pytest.mark.parametrize("more", [0, 1, 5])
def test_a_long_list_is_cut(more: int):
    """A message lists ten names at the most, and counts the others."""
    text = listed(f"n{index:02}" for index in range(MOST_NAMES + more))
    assert text.count("n0") == MOST_NAMES == 10
    assert text.endswith(f"n09 and {more} more" if more else "n09")


def test_a_near_name_is_asked_for():
    """A mistyped name brings the nearest one, and only that."""
    assert did_you_mean("gcp-sopt", ["onprem", "gcp-standard", "gcp-spot"]) == (
        "did you mean 'gcp-spot'?"
    )


def test_case_tells_no_names_apart():
    """A name in capitals is as near as one without; where two differ in case, it counts."""
    assert did_you_mean("PROFILES", ["profiles", "select"]) == "did you mean 'profiles'?"
    assert did_you_mean("train", ["TRAIN", "Train"]) == "did you mean 'Train'?"


def test_without_a_near_name_all_are_listed():
    """Where nothing is near, the hint says what there is; where there is nothing, it is empty."""
    assert did_you_mean("zebra", ["onprem", "gcp-spot"]) == "there is: gcp-spot, onprem"
    assert did_you_mean("zebra", []) == ""


def test_what_reads_the_same_is_one_problem():
    """What code decides by tells no two problems apart that people could not tell apart."""
    told = Problem("is wrong", PATH)
    assert len({told, Problem("is wrong", PATH, code=UNMET, names=("A",))}) == 1
    assert told != Problem("is wrong", PATH, profiles=("p",))
