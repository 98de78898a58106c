"""The most that launches of a step take at a time, out of its keys, raw flags and launches (D1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from taskgraph_workers.launch.merlin.flags import TOOLS, Options, Sizes, options
from taskgraph_workers.launch.merlin.launchers import (
    LAUNCHER_OF,
    Launch,
    allocation,
    launch,
    v_sizes,
)
from taskgraph_workers.launch.merlin.shape import Shape, cover, shape, together
from taskgraph_workers.launch.merlin.shell import Call, Many, Par, Part, Seq, expand
from taskgraph_workers.launch.merlin.variables import REFERENCE

#: What one option says excludes what another key of its family says.
_FAMILIES = ("gpus", "cores", "memory")

_ADDED = "runs several launches at the same time: what they take is added up"
_MIXED = "has launches of which none is the largest in all: it is sized by the most of each"

Row = Mapping[str, str]


class Unread(Exception):
    """A launch whose size can't be read; its text says why, as a sentence."""


class Asked:
    """What a step asks for: ``keys`` as sizes, ``raw`` flags, and of which type its launcher is.

    ``notes`` collects, each once, what is to be told of how its launches were read. ``whole`` is
    set where a launch takes its nodes whole.
    """

    def __init__(self, keys: Sizes, raw: Options, type: str, notes: dict[str, str]) -> None:
        self.keys, self.raw, self.type, self.notes = keys, raw, type, notes
        self.whole = False


def merged(weak: Mapping[str, int], strong: Mapping[str, int]) -> Sizes:
    """Sizes over sizes: who says how many GPUs says it whole, and so with cores and memory."""
    beaten = tuple(family for family in _FAMILIES if any(key.startswith(family) for key in strong))
    kept = {key: number for key, number in weak.items() if not (beaten and key.startswith(beaten))}
    return {**kept, **strong}


def peak(part: Part, asked: Asked, row: Row) -> Shape:
    """The most that the launches of a script take at a time. Raises :class:`Unread`."""
    if isinstance(part, Call):
        found = launch(part.words)
        return _shape(found, part.env, asked, row) if found else Shape()
    if isinstance(part, Many):
        raise Unread("starts launches in the background of a loop: how many at a time is unknown")
    shapes = [peak(each, asked, row) for each in part.parts]
    if isinstance(part, Par):
        busy = [each for each in shapes if each.nodes]
        if len(busy) > 1:
            asked.notes.setdefault(_ADDED, "")
            return together(busy, asked.keys.get("nodes", 1))
        return busy[0] if busy else Shape()
    return _largest(shapes, asked)


def _largest(shapes: Iterable[Shape], asked: Asked) -> Shape:
    busy = [each for each in shapes if each.nodes]
    largest = cover(busy)
    if busy and largest not in busy:
        asked.notes.setdefault(_MIXED, "")
    return largest


def replaced(text: str, row: Row) -> str:
    """A text with global parameters replaced by those of one row."""
    return REFERENCE.sub(lambda found: row.get(found[1], found[0]), text) if row else text


def _shape(found: Launch, env: Mapping[str, str], asked: Asked, row: Row) -> Shape:
    if found.detached:
        raise Unread("submits jobs that nobody waits for: how many run at a time is unknown")
    if found.wrapper:
        raise Unread(f"starts launches by {found.wrapper}: how many at a time is unknown")
    tool = found.tool if found.tool in TOOLS else LAUNCHER_OF.get(asked.type, "")
    words = [replaced(expand(word, env), row) for word in found.words]
    said = options(TOOLS[tool], words) if tool else Options()
    if said.unread:
        raise Unread(f"has {found.tool} {' '.join(said.unread)}: no number that can be read")
    if ":" in said.program and tool in ("srun", "mpirun", "mpiexec"):
        raise Unread(f"has {found.tool} with several programs, and ':' between them")
    asked.whole = asked.whole or said.whole or _whole(found, said.sizes, asked)
    return shape(_sizes(found, said.sizes, env, asked, row))


def _whole(found: Launch, said: Sizes, asked: Asked) -> bool:
    """Whether raw flags ask for whole nodes, or a launch does without a word (flux-core 0.88).

    ``flux run -N2`` without a number of tasks takes its nodes whole.
    """
    if found.tool not in TOOLS:
        return asked.raw.whole
    few = not said.keys() & {"tasks", "cores", "tasks_per_node"}
    return found.tool == "flux" and "nodes" in said and few


def _sizes(found: Launch, said: Sizes, env: Mapping[str, str], asked: Asked, row: Row) -> Sizes:
    if found.tool not in TOOLS:
        keys = asked.keys
        if found.tool == "VLAUNCHER":
            known = {name: replaced(text, row) for name, text in env.items()}
            keys = merged({"nodes": 1, "tasks": 1, **keys}, _variables(known))
        elif found.alloc:
            keys = {**keys, **_alloc(found, row)}
        flags = merged(asked.raw.sizes, said)
        return _sets(keys, flags) if LAUNCHER_OF.get(asked.type) == "jsrun" else merged(keys, flags)
    sizes = merged(asked.keys, said)
    if not said.keys() & {"nodes", "tasks", "sets", "tasks_per_node", "cores"}:
        what = f"has {found.tool} without a number of tasks: it takes all of its job, or of a node"
        hint = "say how many: it is sized by the step's nodes and procs, or as one task"
        asked.notes.setdefault(what, hint)
    if "nodes" not in said and "tasks_per_node" in said:
        sizes.pop("nodes", None)
    elif "nodes" not in said and "tasks" in said:
        sizes["nodes"] = min(sizes.get("nodes", 1), said["tasks"])
    return sizes


def _sets(keys: Sizes, flags: Sizes) -> Sizes:
    """Merlin's jsrun has a resource set for each node; raw flags change these sets."""
    if not any(key.endswith("_set") or key.startswith("sets") for key in flags):
        return merged(keys, flags)
    node = shape(keys)
    sets = {"nodes": node.nodes, "sets": node.nodes}
    cores, gpus = node.cores, node.gpus
    if "sets" in flags:
        cores, gpus = keys.get("cores_per_task", 1), keys.get("gpus_per_task", 0)
    each = {"cores_per_set": cores, "gpus_per_set": gpus}
    return {**sets, **each, **flags}


def _alloc(found: Launch, row: Row) -> Sizes:
    try:
        return allocation(replaced(found.alloc, row))
    except ValueError as error:
        raise Unread(f"has $(LAUNCHER){error}") from None


def _variables(env: Mapping[str, str]) -> Sizes:
    try:
        return v_sizes(env)
    except ValueError as error:
        raise Unread(f"uses $(VLAUNCHER), and {error}") from None


def calls(part: Part) -> Iterator[Call]:
    """Every launch of a script."""
    if isinstance(part, Call):
        yield part
    elif isinstance(part, Many):
        yield from calls(part.part)
    elif isinstance(part, (Seq, Par)):
        for each in part.parts:
            yield from calls(each)
