"""Few keys for many names: regular expressions that match these names and no others."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from taskgraph_workers.config.names import fits

#: A common part that is shorter says nothing to a reader.
_SHORTEST_PART = 3


def cover(
    names: Sequence[str], others: Collection[str], known: Iterable[str] = ()
) -> list[tuple[str, tuple[str, ...]]]:
    """Keys that together match exactly ``names``, each with the names that it matches.

    None matches any of ``others``, and no two match one name. ``known`` are patterns that somebody
    wrote already; they are taken before any that is made up here.

    >>> cover(["gpu-4", "gpu-4-1tb", "gpu-4-2tb"], ["gpu", "cpu-4"])
    [('gpu-4.*', ('gpu-4', 'gpu-4-1tb', 'gpu-4-2tb'))]
    """
    left, found = list(names), []
    candidates = [*known, *_for_all(names), *_by_prefix(names)]
    while len(left) > 1:
        fit = [(each, _matched(each, left)) for each in candidates]
        good = [
            (each, matched)
            for each, matched in fit
            if len(matched) > 1 and _misses(each, [*others, *(n for n in names if n not in left)])
        ]
        if not good:
            break
        best = max(good, key=lambda each: len(each[1]))
        found.append(best)
        left = [name for name in left if name not in best[1]]
    found += [(exactly(name, [*others, *names]), (name,)) for name in left]
    return sorted(found, key=lambda each: names.index(each[1][0]))


def exactly(name: str, others: Collection[str]) -> str:
    """A key for one name: the name itself, unless it is a pattern that matches others too."""
    right = is_pattern(name) and _misses(name, [other for other in others if other != name])
    return name if right else _literal(name)


def is_pattern(key: str) -> bool:
    """Whether a key of config.yml can be read as a regular expression, as all of them are."""
    try:
        re.compile(key + "$")
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _misses(pattern: str, names: Iterable[str]) -> bool:
    return not any(fits(pattern, name) for name in names)


def _matched(pattern: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if fits(pattern, name))


def _for_all(names: Sequence[str]) -> Iterator[str]:
    """Patterns that match every name, the easiest to read first."""
    start = _start(names)
    end = _start([name[::-1] for name in names])[::-1]
    if start:
        yield _literal(start) + ".*"
    if start and end:
        yield f"{_literal(start)}.*{_literal(end)}"
    if end:
        yield ".*" + _literal(end)
    part = _common_part(names)
    if len(part) >= _SHORTEST_PART:
        yield f".*{_literal(part)}.*"


def _by_prefix(names: Sequence[str]) -> list[str]:
    """Patterns for names that begin alike; sorted neighbours have all common beginnings."""
    ordered = sorted(names)
    starts = {_start(pair) for pair in zip(ordered, ordered[1:])}
    return [_literal(start) + ".*" for start in sorted(starts, key=len, reverse=True) if start]


def _start(names: Sequence[str]) -> str:
    """The longest text that all names begin with."""
    first, last = min(names), max(names)
    same = (index for index, char in enumerate(first) if last[index : index + 1] != char)
    return first[: next(same, len(first))]


def _common_part(names: Sequence[str]) -> str:
    """The longest text that is in every name."""
    first = min(names, key=len)
    for length in range(len(first), _SHORTEST_PART - 1, -1):
        for at in range(len(first) - length + 1):
            if all(first[at : at + length] in name for name in names):
                return first[at : at + length]
    return ""


def _literal(text: str) -> str:
    """A text as a regular expression that matches it alone; ``re.escape`` escapes ``-`` too."""
    return re.sub(r"[\\.^$*+?{}\[\]|()]", r"\\\g<0>", text)
