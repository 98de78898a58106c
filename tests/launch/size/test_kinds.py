"""Which mixtures of tasks workers can run at once."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from taskgraph_workers.launch.size.kinds import Instance, Kind, Lot, leanest

KINDS = tuple(Kind(1, (size,)) for size in (1, 2, 3))


@st.composite
def instances(draw: st.DrawFn) -> Instance:
    """Up to three groups; some tasks of which there is any number, and some lots."""
    numbers = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    some = st.frozensets(st.sampled_from(range(3)), max_size=2)
    groups = st.lists(st.sampled_from(range(len(numbers))), min_size=1, unique=True).map(tuple)
    lots = st.builds(Lot, st.integers(0, 3), st.sampled_from(range(3)), groups)
    free = tuple(draw(some) for _ in numbers)
    return Instance((9,), KINDS, tuple(numbers), free, tuple(draw(st.lists(lots, max_size=2))))


def runnable(instance: Instance) -> set[tuple[int, ...]]:
    """Every mixture, by giving each worker every task that it may run."""
    lots = {index: lot.most for index, lot in enumerate(instance.lots)}
    choices = []
    for group, number in enumerate(instance.numbers):
        mine: list[tuple[int, int] | None] = [None, *((kind, -1) for kind in instance.free[group])]
        mine += [(lot.kind, at) for at, lot in enumerate(instance.lots) if group in lot.groups]
        choices += [mine] * number
    found = set()
    for chosen in product(*choices):
        tasks = [one for one in chosen if one is not None]
        if all(sum(lot == at for _, lot in tasks) <= most for at, most in lots.items()):
            found.add(tuple(sum(kind == k for kind, _ in tasks) for k in range(3)))
    return found


@given(instances())
def test_what_is_allowed_is_what_workers_can_run(instance: Instance):
    """The sets that are looked at tell all mixtures apart that can be run from those that can't."""
    allowed = {counts for counts in product(range(10), repeat=3) if instance.allows(counts)}
    assert allowed == runnable(instance)


@given(instances())
def test_the_most_of_a_kind_is_the_most_there_can_be(instance: Instance):
    """Beside given tasks of other kinds."""
    mixtures = runnable(instance)
    for counts in mixtures:
        for kind in range(3):
            others = [
                c
                for c in mixtures
                if all(a == b for i, (a, b) in enumerate(zip(c, counts)) if i != kind)
            ]
            assert instance.most_of(kind, counts) == max(c[kind] for c in others)


@given(instances())
def test_corners_are_mixtures(instance: Instance):
    """Each of them can be run, and no task more."""
    mixtures = runnable(instance)
    for counts, _ in instance.corners(range(3)):
        assert counts in mixtures
        assert sum(counts) == max(map(sum, mixtures))


@given(instances())
def test_kinds_that_others_cover_are_left_out(instance: Instance):
    """For every mixture there is one of the kinds that stay which takes at least as much."""
    lean = leanest(instance)
    heavy = [kind.need[0] for kind in lean.kinds]
    most = max(
        sum(size * count for size, count in zip(heavy, counts))
        for counts in product(range(10), repeat=len(heavy))
        if lean.allows(counts)
    )
    assert most == max(c[0] + 2 * c[1] + 3 * c[2] for c in runnable(instance))


def test_kinds_that_nobody_runs_hide_no_limit():
    """A group without workers leaves the others' limits as they are."""
    instance = Instance((9,), KINDS, (0, 1), (frozenset({0}), frozenset({1, 2})))
    assert instance.allows((0, 1, 0))
    assert not instance.allows((0, 1, 1))
    assert not instance.allows((1, 0, 0))
