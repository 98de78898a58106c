"""A plan as one page for a reviewer: ``plan --html``, and the artifact of a decision task.

The page needs nothing but itself, and its policy (CSP) lets it do nothing else. What is static here
reads without JavaScript; ``plan.html`` holds the style, and the script that shows single tasks.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from itertools import groupby
from typing import Any

from taskgraph_workers.graph.markup import Html, embed, escape, join, tag, visible
from taskgraph_workers.graph.plan_groups import (
    Group,
    Row,
    Value,
    as_data,
    exceptions,
    groups,
    listed_data,
    profile_of,
)

# So many ways of one name are told of a group, and so many changes in its heading.
_WAYS = 3
_BRIEF = 2

# Up to so many lines a list is open.
_SHORT = 12

_SLOT = re.compile(r"\{\{(\w+)\}\}")


def render(plan: Mapping[str, Any]) -> str:
    """The page of a plan, given as ``plan --json`` prints it. The same plan gives the same page."""
    found = groups(plan["moves"])
    data = [as_data(group) for group in found]
    data += [listed_data(plan[key]) for key in ("added", "removed") if plan[key]]
    template = _template()
    parts = {
        "policy": escape(_policy(template)),
        "title": escape(_title(plan)),
        "head": _head(plan),
        "totals": _totals(plan),
        "needs": _needs(plan),
        "filter_hidden": Html("" if data else " hidden"),
        "moves": join(*_moves(plan, found)),
        "data": embed(data),
    }
    # In one pass: what is put in is never looked at again.
    return _SLOT.sub(lambda slot: parts[slot[1]], template)


def _template() -> str:
    folder = resources.files("taskgraph_workers.graph")
    return (folder / "plan.html").read_text(encoding="utf-8")


def _policy(template: str) -> str:
    """Only this style and this script; no image but the empty icon, no request, no form."""
    style = _hash(template, "<style>", "</style>")
    script = _hash(template, "<script>", "</script>")
    return (
        f"default-src 'none'; style-src {style}; script-src {script}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(template: str, start: str, end: str) -> str:
    inside = template.split(start, 1)[1].split(end, 1)[0]
    return f"'sha256-{base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()}'"


# --- the head ---


def _elsewhere(plan: Mapping[str, Any]) -> int:
    return sum(move["from"] != move["to"] for move in plan["moves"])


def _title(plan: Mapping[str, Any]) -> str:
    names = " → ".join(profile_of(plan[side]) for side in ("from", "to"))
    moving = _elsewhere(plan)
    return f"{names}: {_tasks(moving)} move{'s' if moving == 1 else ''}"


def _tasks(count: int) -> str:
    return f"{count:,} task{'' if count == 1 else 's'}"


def _head(plan: Mapping[str, Any]) -> Html:
    names = (tag("bdi", profile_of(plan[side])) for side in ("from", "to"))
    differs = plan["moves"] or plan["added"] or plan["removed"]
    lead = "Where the tasks of this graph run, before and after." if differs else "Nothing changes."
    parts = [tag("h1", *_arrow(*names)), tag("p", lead, class_="lead")]
    others = [
        tag("li", tag("bdi", kind), ": ", *_arrow(*(tag("bdi", name) for name in own)))
        for kind, *own in exceptions(plan["from"], plan["to"])
    ]
    if others:
        words = f"Otherwise for {len(others)} kind{'' if len(others) == 1 else 's'}"
        inside = tag("summary", words), tag("ul", *others)
        parts.append(tag("details", *inside, class_="others", open=len(others) <= _SHORT))
    return join(*parts)


def _arrow(before: Html, after: Html) -> tuple[Html, Html, Html]:
    sign = tag("span", "→", class_="arrow", role="img", aria_label="to")
    return before, join(" ", sign, " "), after


def _totals(plan: Mapping[str, Any]) -> Html:
    moving = _elsewhere(plan)
    totals = [
        ("moved", "move elsewhere", moving),
        ("in-place", "change in place", len(plan["moves"]) - moving),
        ("unchanged", "stay unchanged", plan["unchanged"]),
        ("added", "only after", len(plan["added"])),
        ("removed", "only before", len(plan["removed"])),
        ("new-pools", "new pools", len(plan["new_pools"])),
        ("new-scopes", "new scopes", len(plan["new_scopes"])),
        ("scopes", "scopes needed", len(plan["scopes"])),
    ]
    return tag(
        "dl",
        *(
            tag("div", tag("dt", words), tag("dd", f"{count:,}", id="total-" + name))
            for name, words, count in totals
            if count or name not in ("added", "removed")
        ),
        class_="totals",
    )


# --- pools and scopes ---


def _needs(plan: Mapping[str, Any]) -> Html:
    going = Counter(move["to"]["pool"] for move in plan["moves"])
    pools = [
        tag("li", tag("code", pool), " ", tag("span", _tasks(going[pool]), class_="count"))
        for pool in plan["new_pools"]
    ]
    parts: list[Html] = []
    if pools:
        parts += [tag("h2", "New pools"), tag("ul", *pools, id="new-pools", class_="pools")]
    if plan["scopes"]:
        parts += [
            tag("h2", "Scopes that the decision task needs"),
            _scopes("new-scopes", "New with this plan", plan["new_scopes"], True),
            _scopes("all-scopes", "All that these tasks take", plan["scopes"], False),
        ]
    return tag("section", *parts, class_="needs", hidden=not parts)


def _scopes(name: str, words: str, scopes: Sequence[str], opened: bool) -> Html:
    if not scopes:
        return tag("p", f"{words}: none.", id=name, class_="muted")
    copy = tag(
        "button", "Copy", type="button", hidden=True, data_copy=name, aria_label=f"Copy: {words}"
    )
    return tag(
        "details",
        tag("summary", f"{words} ", tag("span", f"{len(scopes):,}", class_="count")),
        tag("div", copy, tag("pre", "\n".join(scopes), id=name, tabindex="0"), class_="copied"),
        open=opened and len(scopes) <= _SHORT,
    )


# --- what moves ---


def _moves(plan: Mapping[str, Any], found: Sequence[Group]) -> Iterator[Html]:
    new = set(plan["new_pools"])
    for pools, there in groupby(found, key=lambda group: (group.before, group.after)):
        alike = list(there)
        count = sum(len(group.tasks) for group in alike)
        heading = tag("h3", *_pools(*pools, new), tag("span", _tasks(count), class_="count"))
        yield tag("section", heading, *map(_group, alike), class_="pool")
    for key, words in (("added", "after"), ("removed", "before")):
        if plan[key]:
            heading = tag("h3", f"Only in the graph {words}")
            labels = _without_script((str(label), "") for label in plan[key])
            yield tag("section", heading, _details([], len(plan[key]), labels), class_="pool")


def _pools(before: str, after: str, new: set[str]) -> Iterator[Html]:
    if before == after:
        yield join(tag("code", before), tag("span", " the same pool", class_="muted"))
        return
    yield from _arrow(tag("code", before), tag("code", after))
    if after in new:
        yield join(" ", tag("span", "new", class_="new"))


def _group(group: Group) -> Html:
    head = [tag("bdi", group.kind, class_="kind"), tag("span", *_brief(group), class_="brief")]
    shared = [group.rows[at] for at in sorted(group.shared)]
    rows = [row for row in shared if row.what != "pool" and row.changes]
    own = {at for at, row in enumerate(group.rows) if row.what == "env"} - group.shared
    labels = _without_script(
        (label, ", ".join(_as_text(group.rows[at]) for at in rows if at in own))
        for label, rows in group.tasks
    )
    alone = len(group.tasks) == 1
    words = "What changes" if alone else "What changes in all of these tasks"
    return _details(head, len(group.tasks), *_tables(rows, words), _varied(group), labels)


def _tables(rows: Sequence[Row], words: str) -> Iterator[Html]:
    """The rows of a line, and those that take more on demand."""
    short = [row for row in rows if not row.long]
    rest = [row for row in rows if row.long]
    if short:
        yield _table(short, words)
    if rest:
        names = ", ".join(row.name for row in rest)
        more = f"{len(rest)} longer value{'' if len(rest) == 1 else 's'}: "
        summary = tag("summary", more, tag("span", names, class_="muted"))
        yield tag("details", summary, _table(rest, ""), class_="longer")


def _details(head: Sequence[Html], count: int, *inside: Html) -> Html:
    """A group that the script fills: the n-th such element is the n-th entry of its data."""
    number = tag("span", _tasks(count), class_="count")
    summary = tag("summary", *head[:1], number, *head[1:])
    return tag("details", summary, *inside, tag("div", class_="tasks"), class_="group")


def _without_script(tasks: Iterable[tuple[str, str]]) -> Html:
    """The labels, for a browser that runs no script; one that does never parses this."""
    lines = (visible(label, line=True) + (f"  {own}" if own else "") for label, own in tasks)
    return tag("noscript", tag("pre", "\n".join(lines)))


def _as_text(row: Row) -> str:
    return (
        f"{row.name}: {visible(row.before.text, line=True)} → {visible(row.after.text, line=True)}"
    )


def _brief(group: Group) -> Iterator[Html]:
    """The change in a line: some env, another implementation, how much else."""
    env = list(dict.fromkeys(row.name for row in group.rows if row.what == "env"))
    shared = [group.rows[at] for at in sorted(group.shared)]
    same = {row.name: row for row in shared if row.what == "env"}
    for name in env[:_BRIEF]:
        yield tag("span", tag("code", name), " ", *_briefly(same.get(name)))
    swaps = [row for row in group.rows if row.what == "implementation" and row.changes]
    yield from (tag("span", *_change(row)) for row in swaps)
    others = len({row.name for row in group.rows if row.what == "other"})
    if env[_BRIEF:]:
        yield tag("span", f"{len(env[_BRIEF:])} more env")
    if others:
        yield tag("span", f"{others} other field{'' if others == 1 else 's'}")
    if not (env or swaps or others):
        yield tag("span", "only the pool")


def _briefly(row: Row | None) -> tuple[Html, ...]:
    if row is None:
        return (Html("differs by task"),)
    return (Html("changes"),) if row.long else _change(row)


def _change(row: Row) -> tuple[Html, ...]:
    return _arrow(_value(row.before), _value(row.after))


def _value(value: Value) -> Html:
    if value.note:
        return tag("i", value.text)
    return tag("code", value.text, dir="auto", class_="long" if value.long else None)


def _table(rows: Iterable[Row], words: str) -> Html:
    """Rows as before and after. The roles hold where a narrow page lays it out as blocks."""
    head = tag(
        "tr",
        *(
            tag("th", each, scope="col", role="columnheader")
            for each in ("Field", "Before", "After")
        ),
        role="row",
    )
    body = (
        tag("tr", _name(row), _cell(row, "before"), _cell(row, "after"), role="row") for row in rows
    )
    return tag(
        "table",
        *([tag("caption", words)] if words else []),
        tag("thead", head, role="rowgroup"),
        tag("tbody", *body, role="rowgroup"),
        role="table",
    )


def _name(row: Row) -> Html:
    sign = [tag("span", "env", class_="what"), " "] if row.what == "env" else []
    return tag("th", *sign, tag("bdi", row.name), scope="row", role="rowheader")


def _cell(row: Row, side: str) -> Html:
    value = row.before if side == "before" else row.after
    return tag(
        "td", _value(value), class_=side if row.changes else None, data_side=side, role="cell"
    )


def _varied(group: Group) -> Html:
    """What differs between the tasks of a group, and for how many."""
    counts = group.counts
    by_name: dict[tuple[str, str], list[int]] = {}
    for at, row in enumerate(group.rows):
        if counts[at] < len(group.tasks):
            by_name.setdefault((row.what, row.name), []).append(at)
    lines = [
        tag("li", tag("code", name), ": ", tag("bdi", _ways(group, ways)))
        for (_, name), ways in by_name.items()
    ]
    if not lines:
        return Html("")
    return join(tag("p", "Differs by task", class_="caption"), tag("ul", *lines, class_="varied"))


def _ways(group: Group, ways: Sequence[int]) -> str:
    """How one field changes in so many ways, the most frequent first."""
    counts = group.counts
    if len(ways) > _WAYS and all(counts[at] == 1 for at in ways):
        return f"in another way in each of {_tasks(len(ways))}"
    most = sorted(ways, key=lambda at: -counts[at])[:_WAYS]
    told = [f"{_as_words(group.rows[at])} ({_tasks(counts[at])})" for at in most]
    rest = len(ways) - len(most)
    told += [f"and {rest} more way{'' if rest == 1 else 's'}"] if rest else []
    return "; ".join(told)


def _as_words(row: Row) -> str:
    """A change in a line; of a long one only that it is there."""
    text = f"{row.before.text} → {row.after.text}"
    return text if len(text) <= 100 and "\n" not in text else "another value"
