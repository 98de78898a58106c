"""How a comparison of two graphs is shown to people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from taskgraph_workers.cli.layout import Cell, Line, Part, Styled
from taskgraph_workers.cli.output import Output
from taskgraph_workers.detect import Detect
from taskgraph_workers.graph.plan_json import Profiles, key_of
from taskgraph_workers.units import duration_text

if TYPE_CHECKING:
    from taskgraph_workers.graph.compare import Comparison, Move

#: How many labels a group shows, and a list of tasks, where not all are asked for.
FEW, SOME = 2, 10

#: What people read where no profile is chosen.
NONE = "no profile"


def show(found: Comparison, before: Profiles, after: Profiles, output: Output) -> None:
    """The plan as people read it."""
    _head(found, before, after, output)
    rows: list[list[Cell]] = []
    moves = sorted(found.moves, key=_group)
    for pools, there in groupby(moves, key=lambda move: (move.before.pool, move.after.pool)):
        rows += [[""], [[_pools(*pools)]]]
        rows += [_row(list(alike), output.verbose) for _, alike in groupby(there, key=_group)]
    output.table(rows, indent=2)
    for when, labels in (("after", found.added), ("before", found.removed)):
        shown = labels if output.verbose or len(labels) <= SOME + 1 else labels[:SOME]
        more = len(labels) - len(shown)
        rest = [f"and {more} more"] if more else []
        _list(f"Only in the graph {when}: {_tasks(len(labels))}", [*shown, *rest], output)
    _list("New pools", found.new_pools, output)
    _list("New scopes that the decision task needs", found.new_scopes, output)
    if output.verbose:
        _list("All scopes that it needs for these tasks", found.scopes, output)


def _head(found: Comparison, before: Profiles, after: Profiles, output: Output) -> None:
    moving = sum(move.elsewhere for move in found.moves)
    rest, stay = len(found.moves) - moving, found.unchanged
    counts = [f"{_tasks(moving)} move{_s(moving == 1)}"] if found.differs else ["nothing changes"]
    counts += [f"{rest} change{_s(rest == 1)} in place"] if rest else []
    kept = str(stay) if found.differs else _tasks(stay)
    counts.append(f"{kept} stay as they are" if stay != 1 else f"{kept} stays as it is")
    counts += [f"{len(found.added)} only after"] if found.added else []
    counts += [f"{len(found.removed)} only before"] if found.removed else []
    names = Styled(f"{_name(before)} → {_name(after)}", "bold")
    output.line(names, ": " + ", ".join(counts))


def _s(wanted: bool) -> str:
    return "s" if wanted else ""


def _name(profiles: Profiles) -> str:
    """The profile of most kinds, and the kinds with another."""
    most = Counter(profiles.values()).most_common(1)
    first = most[0][0] if most else None
    others = [f"{k}: {p or NONE}" for k, p in sorted(profiles.items()) if p != first]
    return (first or NONE) + (f" ({', '.join(others)})" if others else "")


def _tasks(count: int) -> str:
    return f"{count} task{_s(count != 1)}"


def _group(move: Move) -> tuple[str, ...]:
    """Tasks with the same are shown together."""
    alike = [move.before.implementation, move.after.implementation, move.env, move.other]
    return (move.before.pool, move.after.pool, move.kind, repr(alike))


def _pools(before: str, after: str) -> list[Part]:
    if before == after:
        return [Styled(before, "cyan"), ", the same pool"]
    return [Styled(before, "cyan"), " → ", Styled(after, "cyan")]


def _row(moves: Sequence[Move], verbose: bool) -> list[Cell]:
    """A group of moves: its kind and tasks, and what changes for them."""
    labels = [f"  {move.label}" for move in moves]
    shown = labels if verbose or len(labels) <= FEW + 1 else labels[:FEW]
    more = len(labels) - len(shown)
    tasks: list[Line] = [[Styled(moves[0].kind, "bold"), f", {_tasks(len(moves))}"], *shown]
    if more:
        tasks.append(Styled(f"  and {more} more", "dim"))
    return [tasks, list(_changes(moves[0], verbose))]


def _changes(move: Move, verbose: bool) -> Iterator[Line]:
    """What is told differently, a line each; the parts of the payload without their values."""
    for name, (before, after) in move.env.items():
        yield [Styled(name, "bold"), ": ", *_arrow(_env_text(before), _env_text(after))]
    here, there = move.before.implementation, move.after.implementation
    if here != there:
        yield _arrow(here or "no implementation", there or "no implementation")
    rest = []
    for path, (before, after) in move.other.items():
        key = key_of(path)
        if key == "payload.maxRunTime":
            yield ["maxRunTime: ", *_arrow(_duration(before), _duration(after))]
        else:
            rest.append(key if verbose else key.replace("payload.", "", 1))
    if rest:
        yield Styled("also " + ", ".join(rest), "dim")


def _arrow(before: str, after: str) -> list[Part]:
    return [before, " → ", Styled(after, "green")]


def _env_text(value: Any) -> str:
    """A value of env as people say it."""
    if value is None:
        return "not set"
    if isinstance(value, Detect):
        inherited = value.what == "inherited"
        return "inherited from the worker" if inherited else "detected on the machine"
    if isinstance(value, Mapping):
        return " ".join(map(str, value.values()))
    return str(value) if value != "" else "''"


def _duration(value: Any) -> str:
    """Seconds in the largest unit that leaves no rest.

    >>> _duration(1728000), _duration(5400), _duration(None)
    ('20 days', '90 min', 'not set')
    """
    if value is None:
        return "not set"
    return duration_text(value) if isinstance(value, int) and value > 0 else str(value)


def _list(title: str, items: Iterable[str], output: Output) -> None:
    items = list(items)
    if items:
        output.line()
        output.line(Styled(title, "bold"))
        for item in items:
            output.line("  " + item)
