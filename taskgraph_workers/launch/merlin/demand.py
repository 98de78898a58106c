"""A step's :class:`~taskgraph_workers.launch.model.Demand`, and what has to be said about it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from taskgraph_workers.errors import Path, counted
from taskgraph_workers.launch.merlin import dropped
from taskgraph_workers.launch.merlin.flags import TOOLS, Options, options
from taskgraph_workers.launch.merlin.launchers import (
    LAUNCHER_OF,
    RAW_KEY,
    Launch,
    launch,
    launches,
    mentions,
    token_alone,
)
from taskgraph_workers.launch.merlin.lexer import tokens
from taskgraph_workers.launch.merlin.peak import Asked, Row, Unread, calls, peak, replaced
from taskgraph_workers.launch.merlin.run import KEYS, Run
from taskgraph_workers.launch.merlin.shape import Shape, cover
from taskgraph_workers.launch.merlin.shell import NOTHING, Part, Seq, expand
from taskgraph_workers.launch.merlin.values import Reader
from taskgraph_workers.launch.merlin.variables import REFERENCE
from taskgraph_workers.launch.model import Demand

#: How a script that is not a shell's starts a launcher.
_WORDS = re.compile(r"\b(?:srun|jsrun|mpirun|mpiexec|aprun|ibrun|flux (?:mini )?run)\b")


class Found(NamedTuple):
    """The launches of a step: as a tree, and each with the variables that its shell knows."""

    tree: Part
    each: tuple[tuple[Launch, Mapping[str, str]], ...]


class Inherited(NamedTuple):
    """What a step takes over from the spec's batch block."""

    type: str
    shell: str | None = None


def demand(
    reader: Reader, name: str, raw: dict[str, Any], place: tuple[Path, int], header: Inherited
) -> Demand | None:
    """What a task of a step takes; None, and a note of why, where that can't be read.

    ``place`` is the path of its run, and the line of its name.
    """
    path, line = place
    run = Run(reader, name, raw, path)
    walltime = reader.walltime(raw.get("walltime"), run.at("walltime"), fatal=False)
    type = run.type(header.type)
    found = _launches(run, header.shell)
    if not found.each:
        cores, gpus = (int(_most(run, key, least)) for key, least in (("cores", 1), ("gpus", 0)))
        shapes, whole = [Shape(1, cores, gpus)], False
        dropped.without_launcher(run)
    else:
        shapes, whole = _shapes(run, found, type)
    if run.failed or not shapes:
        return None
    size = _cover(run, shapes)
    if found.each:
        dropped.with_launcher(run, type, found.each)
    return Demand(
        step=name,
        nodes=size.nodes,
        cores=size.cores,
        gpus=size.gpus,
        memory_mib=size.memory_mib,
        launcher=bool(found.each),
        walltime_s=walltime,
        written_nodes=_written_nodes(run, found, type, size.nodes),
        says_nodes=_says_nodes(run, found, type),
        whole=whole,
        why=_why(run, size, (bool(found.each), whole), len(shapes)),
        line=line,
    )


def _most(run: Run, key: str, least: int) -> int:
    """The most that a key says over all rows of the parameters."""
    return max((run.keys(row).get(KEYS[key].size, least) for row in _rows(run, ())), default=least)


def _launches(run: Run, shell: str | None) -> Found:
    """The launches of cmd, and those of restart, which come one after another."""
    parts: list[Part] = []
    for key in ("cmd", "restart"):
        script = run.script(key)
        if not mentions(script):
            continue
        part, others = launches(script) if run.is_shell(shell) else (NOTHING, ())
        for word in others:
            what = f"step {run.name!r} hands a launcher to {word}: what that starts is not counted"
            run.warn(what, key)
        if not any(calls(part)):
            part = token_alone(script)
        if not run.is_shell(shell) and _WORDS.search(script):
            run.fail("it starts a launcher out of a script that is no shell's", key)
        parts.append(part)
    tree = Seq(tuple(parts))
    each = [(launch(call.words), call.env) for call in calls(tree)]
    return Found(tree, tuple((one, env) for one, env in each if one is not None))


def _shapes(run: Run, found: Found, type: str) -> tuple[list[Shape], bool]:
    """The shape of a task for every row of the parameters that makes a difference.

    And whether one of them takes its nodes whole.
    """
    run.refuse_both()
    if run.failed:
        return [], False
    shapes: dict[Shape, None] = {}
    whole = False
    notes: dict[str, str] = {}
    for row in _rows(run, found.each, type):
        asked = Asked(run.keys(row), raw_flags(run, type, row), type, notes)
        if asked.raw.unread or asked.raw.program:
            rest = " ".join([*asked.raw.unread, *asked.raw.program])
            run.fail(f"its raw flags can't be read: {rest}", run.raw_key(type) or "cmd")
            return [], False
        try:
            shapes[peak(found.tree, asked, row)] = None
            whole = whole or asked.whole
        except Unread as error:
            run.fail(f"it {error}")
            return [], False
    for what, hint in notes.items():
        run.warn(f"step {run.name!r} {what}", hint=hint)
    return list(shapes), whole


def _cover(run: Run, shapes: list[Shape]) -> Shape:
    size = cover(shapes)
    if size.uneven:
        run.warn(f"the tasks of step {run.name!r} do not divide by its nodes: rounded up", "procs")
    if len(shapes) > 1 and not any(each[:4] == size[:4] for each in shapes):
        what = f"no row of the parameters takes the most of everything in step {run.name!r}"
        run.warn(f"{what}: it is sized by the most of each")
    return size


def raw_flags(run: Run, type: str, row: Row) -> Options:
    """What the raw flags say that Merlin hands to this step's launcher."""
    key = run.raw_key(type)
    text = run.script(key) if key else ""
    words = [token.text for token in tokens(text) if not token.operator and not token.script]
    tool = TOOLS[LAUNCHER_OF[type]] if words else None
    return options(tool, [replaced(word, row) for word in words]) if tool else Options()


def _rows(
    run: Run, found: Sequence[tuple[Launch, Mapping[str, str]]], type: str = ""
) -> Iterator[Row]:
    """The rows of the global parameters, each once, as far as sizes depend on them."""
    texts = [*run.sizes.values(), *(run.script(key) for key in RAW_KEY.values())]
    for one, env in found:
        tool = TOOLS.get(one.tool) or TOOLS.get(LAUNCHER_OF.get(type, ""))
        behind = len(options(tool, one.words).program) if tool else 0
        texts += one.words[: len(one.words) - behind] if tool else ()
        texts += [one.alloc, *env.values()]
    known = run.reader.parameters
    names = sorted({name for text in texts for name in REFERENCE.findall(text) if name in known})
    if not names:
        yield {}
        return
    for values in dict.fromkeys(zip(*(known[name] for name in names))):
        yield dict(zip(names, values))


def _written_nodes(run: Run, found: Found, type: str, nodes: int) -> int:
    """How many nodes somebody wrote for the step, 0 where nobody did."""
    if "nodes" in run.sizes and not found.each:
        return int(_most(run, "nodes", 1))
    return nodes if "nodes" in run.sizes or _writes_nodes(run, found, type) else 0


def _writes_nodes(run: Run, found: Found, type: str) -> bool:
    """Whether the nodes stand in flags, in brackets or in MERLIN_NODES."""
    row = next(_rows(run, found.each, type))
    if "nodes" in raw_flags(run, type, row).sizes:
        return True
    for one, env in found.each:
        tool = TOOLS.get(one.tool)
        words = [replaced(expand(word, env), row) for word in one.words]
        said = options(tool, words).sizes if tool else {}
        if "nodes" in said or "n" in one.alloc or "," in one.alloc or "MERLIN_NODES" in env:
            return True
    return False


def _says_nodes(run: Run, found: Found, type: str) -> bool:
    """Whether every launch has its nodes in a flag; see Demand."""
    row = next(_rows(run, found.each, type))
    raw = "nodes" in raw_flags(run, type, row).sizes
    flags = []
    for one, env in found.each:
        tool = TOOLS.get(one.tool) or TOOLS.get(LAUNCHER_OF.get(type, ""))
        words = [replaced(expand(word, env), row) for word in one.words]
        said = "nodes" in options(tool, words).sizes if tool else False
        flags.append(said or (one.tool not in TOOLS and (raw or _writes_flag(run, one))))
    return bool(flags) and all(flags)


def _writes_flag(run: Run, one: Launch) -> bool:
    """Whether Merlin writes the nodes of a launch that it writes."""
    if one.alloc:
        return "n" in one.alloc or "," in one.alloc
    return one.tool == "VLAUNCHER" or "nodes" in run.sizes


def _why(run: Run, size: Shape, how: tuple[bool, bool], kinds: int) -> str:
    """How the numbers came about; ``how``: by a launcher, and whether it takes whole nodes."""
    launcher, whole = how
    words = ", ".join(f"{key} {run.sizes[key]}" for key in KEYS if key in run.sizes)
    if not launcher:
        return f"no launcher: it runs inside its worker{', with ' + words if words else ''}"
    gpus = f" and {counted(size.gpus, 'GPU')}" if size.gpus else ""
    each = f"{counted(size.cores, 'core')}{gpus} a node, on {counted(size.nodes, 'node')}"
    most = ", the most over the parameters" if kinds > 1 else ""
    all_of_it = ", of which it takes the whole" if whole else ""
    return f"{words or 'as its launcher says'}: {each}{all_of_it}{most}"
