"""What one task of a step takes, out of its keys, its raw flags and its launches (decision D1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from taskgraph_workers.launch.merlin.flags import TOOLS, Options, Sizes, options
from taskgraph_workers.launch.merlin.launchers import (
    LAUNCHER_OF,
    V_VARIABLES,
    Launch,
    allocation,
    launch,
    v_sizes,
)
from taskgraph_workers.launch.merlin.shape import Shape, cover, shape, together
from taskgraph_workers.launch.merlin.shell import Call, Many, Par, Part, Seq, value
from taskgraph_workers.launch.merlin.variables import REFERENCE

#: What one option says excludes what another key of its family says.
_FAMILIES = ("gpus", "cores", "memory")

Row = Mapping[str, str]


class Unread(Exception):
    """A launch whose size can't be read; its text says why, as a sentence."""


@dataclass
class Asked:
    """What a step asks for: ``keys`` as sizes, ``raw`` flags, and of which type its launcher is.

    ``notes`` collects, each once, what is to be told of how its launches were read.
    """

    keys: Sizes
    raw: Options
    type: str
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def base(self) -> Sizes:
        """Keys, and the raw flags that beat them."""
        return merged(self.keys, self.raw.sizes)


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
            _note(asked, "runs several launches at the same time: what they take is added up")
            return together(busy, asked.base.get("nodes", 1))
        return busy[0] if busy else Shape()
    return _largest(shapes, asked)


def _largest(shapes: Iterable[Shape], asked: Asked) -> Shape:
    busy = [each for each in shapes if each.nodes]
    largest = cover(busy)
    if busy and largest not in busy:
        _note(asked, "has launches of which none is the largest in all: the most of each is taken")
    return largest


def _note(asked: Asked, what: str, hint: str = "") -> None:
    asked.notes.setdefault(what, hint)


def replaced(text: str, row: Row) -> str:
    """A text with global parameters replaced by those of one row."""
    return REFERENCE.sub(lambda found: row.get(found[1], found[0]), text) if row else text


def _shape(found: Launch, env: Mapping[str, str], asked: Asked, row: Row) -> Shape:
    if found.detached:
        raise Unread("submits jobs that nobody waits for: how many run at a time is unknown")
    if found.wrapper:
        raise Unread(f"starts launches by {found.wrapper}: how many at a time is unknown")
    tool = found.tool if found.tool in TOOLS else LAUNCHER_OF.get(asked.type, "")
    words = [replaced(value(word, env), row) for word in found.words]
    said = options(TOOLS[tool], words) if tool else Options()
    if said.unread:
        raise Unread(
            f"has {found.tool} {' '.join(said.unread)}, which says no number that can be read"
        )
    if ":" in said.program and tool in ("srun", "mpirun", "mpiexec"):
        raise Unread(f"has {found.tool} with several programs, and ':' between them")
    if said.whole or (tool == "flux" and _whole(said.sizes)):
        _note(asked, "asks flux for whole nodes: sized by what its options say besides")
    return shape(_sizes(found, said.sizes, env, asked, row))


def _whole(sizes: Sizes) -> bool:
    """``flux run -N2`` without a number of tasks takes the nodes whole (flux-core 0.88)."""
    return "nodes" in sizes and not sizes.keys() & {"tasks", "cores", "tasks_per_node"}


def _sizes(found: Launch, said: Sizes, env: Mapping[str, str], asked: Asked, row: Row) -> Sizes:
    if found.tool == "LAUNCHER":
        if not found.alloc:
            return merged(asked.base, said)
        alloc = _alloc(found, row)
        return merged({**asked.base, **alloc}, said)
    if found.tool == "VLAUNCHER":
        sizes = _variables({name: replaced(text, row) for name, text in env.items()}, asked)
        return merged(merged(merged(asked.keys, sizes), asked.raw.sizes), said)
    sizes = merged(asked.keys, said)
    if not said.keys() & {"nodes", "tasks", "sets", "tasks_per_node", "cores"}:
        _note(
            asked,
            f"has {found.tool} without a number of tasks: it takes all of its job, or of a node",
            "say how many: it is sized by the step's nodes and procs, or as one task",
        )
    if "nodes" not in said and "tasks" in said:
        sizes["nodes"] = min(sizes.get("nodes", 1), said["tasks"])
        if "tasks_per_node" in said:
            sizes.pop("nodes")
    return sizes


def _alloc(found: Launch, row: Row) -> Sizes:
    try:
        return allocation(replaced(found.alloc, row))
    except ValueError as error:
        raise Unread(f"has $(LAUNCHER){error}") from None


def _variables(env: Mapping[str, str], asked: Asked) -> Sizes:
    defaults = {
        name: str(asked.keys.get(key, least)) for name, (key, _, least) in V_VARIABLES.items()
    }
    try:
        return v_sizes({**defaults, **env})
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
