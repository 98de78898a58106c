"""A layout as text: nodes that are alike in one line each of cores and of GPUs, and a legend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, groupby, repeat
from string import ascii_uppercase, digits
from typing import TYPE_CHECKING

from taskgraph_workers.errors import counted
from taskgraph_workers.launch.model import Layout, NodeLayout, Share
from taskgraph_workers.launch.size.words import each_of

if TYPE_CHECKING:
    from taskgraph_workers.machines import Node

#: What is free.
FREE = "."
#: No bar is wider than this, however wide the terminal is.
WIDEST = 64
#: No list of nodes is wider than this.
_NAMES = 24
_LABEL = 6
#: Of nodes that are different, so many are drawn; of groups on a node, so many are counted.
_LOOKS = 16
_COUNTS = 12
#: One for each group, and one that all others share.
_SIGNS = ascii_uppercase + digits + "#@%&$"
_OTHERS = "?"
#: A space at which no line ends.
_KEPT = "\xa0"


#: What is on a node, without whose it is: group, step, cores and GPUs of each share.
_Look = tuple[tuple[str, str, int, int], ...]


def picture(layout: Layout, node: Node | None, width: int = 80) -> list[str]:
    """The lines of the picture, none wider than ``width`` unless names make it so.

    A letter is a group, or a digit where there are many; neighbours that are tasks of one group
    differ in its case. In the bars a sign is one core or GPU, or several, which is said then. There
    is nothing to be seen, and no line, where nobody says what a node has.
    """
    if node is None or not any(each.shares for each in layout.nodes):
        return []
    letters = _letters(layout)
    lines, bars = [], ""
    alike = list(_alike(layout).items())
    for look, nodes in alike[:_LOOKS]:
        here = [layout.nodes[at] for at in nodes]
        drawn = list(_bars(look, node, letters, width))
        lines += [*_wrapped(_head(nodes, here, letters), width), *drawn]
        bars += "".join(drawn)
    more = sum(len(nodes) for _, nodes in alike[_LOOKS:])
    lines += [f"and {counted(more, 'node')} more, none of them like these"] if more else []
    # Which are in lower case: a task beside another one of its group.
    pairs = [x for x in letters.values() if x != x.lower() and f"{x}{x.lower()}" in bars]
    legend = _legend(layout, node, letters, width, pairs[:1])
    return [*lines, *(line for text in legend for line in _wrapped(text, width))]


def _wrapped(text: str, width: int) -> Iterator[str]:
    """Lines no wider than this, if words allow; all but the first are indented."""
    line = ""
    for word in text.split(" "):
        if line.strip() and len(line) + 1 + len(word) > width:
            yield line.replace(_KEPT, " ")
            line = f"  {word}"
        else:
            line = f"{line} {word}" if line else word
    yield line.replace(_KEPT, " ")


def _alike(layout: Layout) -> dict[_Look, list[int]]:
    """Nodes by what they look like."""
    found: dict[_Look, list[int]] = {}
    for at, each in enumerate(layout.nodes):
        found.setdefault(_look(each), []).append(at)
    return found


def _look(node: NodeLayout) -> _Look:
    return tuple((s.group, s.step, len(s.cores), len(s.gpus)) for s in node.shares)


def _letters(layout: Layout) -> dict[str, str]:
    """A sign for each group, in the order in which they are first met."""
    met = dict.fromkeys(
        name
        for node in layout.nodes
        for name in (*(name for name, _ in node.workers), *(share.group for share in node.shares))
    )
    return dict(zip(met, chain(_SIGNS, repeat(_OTHERS))))


def _head(numbers: Sequence[int], nodes: Sequence[NodeLayout], letters: dict[str, str]) -> str:
    """Which nodes these are, and how many workers are there: on each if that is the same."""
    counts = [Counter(name for name, _ in node.workers) for node in nodes]
    same = all(count == counts[0] for count in counts)
    total = counts[0] if same else sum(counts, Counter())
    signs: Counter[str] = Counter()
    for name, letter in letters.items():
        signs[letter] += total[name]
    each = [f"{letter}{_KEPT}{count}" for letter, count in signs.items() if count]
    each[_COUNTS:] = ["..."] if len(each) > _COUNTS else []
    there = counted(sum(total.values()), "worker") if each else "no worker"
    there += f" ({', '.join(each)})" if each else ""
    if len(nodes) == 1:
        return f"{_names(numbers)}: {there}"
    if same:
        return f"{_names(numbers)} ({len(nodes)} alike): {there} on each"
    return f"{_names(numbers)} ({len(nodes)} alike in their tasks): {there} on all of them"


def _names(nodes: Sequence[int]) -> str:
    """Nodes, runs of them as one.

    >>> _names([0]), _names([0, 1, 2, 5])
    ('node 0', 'node 0-2,5')
    """
    runs = []
    for _, run in groupby(enumerate(nodes), key=lambda pair: pair[1] - pair[0]):
        numbers = [number for _, number in run]
        runs.append(f"{numbers[0]}" + (f"-{numbers[-1]}" if len(numbers) > 1 else ""))
    text = ",".join(runs)
    if len(text) > _NAMES:
        text = text[: text.rindex(",", 0, _NAMES)] + ",..."
    return f"node {text}"


# --- Bars -----------------------------------------------------------------------------------


def _bars(look: _Look, node: Node, letters: dict[str, str], width: int) -> Iterator[str]:
    cores = [(name, cores) for name, _, cores, _ in look]
    gpus = [(name, gpus) for name, _, _, gpus in look]
    for label, have, parts in (("cores", node.cores, cores), ("GPUs", node.gpus, gpus)):
        if have:
            marks = _marks(parts, letters)
            bar = _scaled(marks + FREE * (have - len(marks)), _each(have, width))
            yield f" {label:<{_LABEL}}{bar}  {len(marks)}/{have}"


def _marks(parts: Sequence[tuple[str, int]], letters: dict[str, str]) -> str:
    """A sign for each core or GPU in use; the case changes from task to task of a group."""
    text, last, upper = "", "", True
    for name, count in parts:
        if count:
            letter = letters[name]
            upper = not upper if letter == last else True
            text += (letter if upper else letter.lower()) * count
            last = letter
    return text


def _each(have: int, width: int) -> int:
    """How many cores one sign is, so that the bar has its place."""
    figures = 2 + 2 * len(str(have)) + 1
    room = max(min(width - 1 - _LABEL - figures, WIDEST), 8)
    return -(-have // room)


def _scaled(text: str, each: int) -> str:
    """Every so manieth sign, each for what most of its part is."""
    parts = (text[at : at + each] for at in range(0, len(text), each))
    return "".join(
        max(dict.fromkeys(part), key=lambda sign: (part.count(sign), sign != FREE))
        for part in parts
    )


# --- Legend ---------------------------------------------------------------------------------


def _legend(
    layout: Layout, node: Node, letters: dict[str, str], width: int, pairs: Sequence[str]
) -> Iterator[str]:
    tasks: dict[str, Share] = {}
    parts: Counter[tuple[str, int]] = Counter()
    for share in (share for each in layout.nodes for share in each.shares):
        tasks.setdefault(share.group, share)
        parts[share.group, share.worker] += 1
    for name, letter in letters.items():
        yield f"{letter}  {name}" + _task(tasks.get(name), parts)
    each = _each(node.cores or 1, width)
    sign = f"one sign is {counted(each, 'core')}" if each > 1 else "one sign is one core or GPU"
    yield f"{FREE}  free; {sign}" + "".join(
        f"; {x * 2}{x.lower() * 2}: two different tasks of {x}" for x in pairs
    )
    if not layout.fits:
        yield "Not all tasks fit at once: those that do are shown."


def _task(share: Share | None, parts: Counter[tuple[str, int]]) -> str:
    """What one task takes; one that has its group's name is all that its workers have."""
    if share is None:
        return ""
    nodes = parts[share.group, share.worker]
    need = each_of((len(share.cores), len(share.gpus), share.memory_mib))
    if nodes > 1:
        need = f"{counted(nodes, 'node')} x " + (f"({need})" if " and " in need else need)
    return f": each {need}" if share.step == share.group else f": {share.step}, {need}"
