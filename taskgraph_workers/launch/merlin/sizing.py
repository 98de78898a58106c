"""A step's :class:`~taskgraph_workers.launch.model.Demand`, and what has to be said about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from taskgraph_workers.config.faults import said
from taskgraph_workers.errors import Path
from taskgraph_workers.launch.merlin.demands import Asked, Row, Unread, calls, peak, replaced
from taskgraph_workers.launch.merlin.flags import TOOLS, Options, options
from taskgraph_workers.launch.merlin.launchers import (
    LAUNCHER_OF,
    RAW_KEY,
    launch,
    launches,
    mentions,
)
from taskgraph_workers.launch.merlin.lexer import tokens
from taskgraph_workers.launch.merlin.shape import Shape, cover
from taskgraph_workers.launch.merlin.shell import Part, Seq
from taskgraph_workers.launch.merlin.values import Reader
from taskgraph_workers.launch.merlin.variables import REFERENCE
from taskgraph_workers.launch.model import Demand


class _Key(NamedTuple):
    size: str
    least: int
    variable: bool


#: The keys of a step that say a size: by what name, from where on, and whether Merlin lets
#: a variable stand for it.
KEYS = {
    "nodes": _Key("nodes", 1, True),
    "procs": _Key("tasks", 1, True),
    "cores per task": _Key("cores_per_task", 1, True),
    "gpus per task": _Key("gpus_per_task", 0, False),
    "cores": _Key("cores", 1, True),
    "gpus": _Key("gpus", 0, True),
}
_BOTH = (("cores", "cores per task"), ("gpus", "gpus per task"))


class _Run:
    """The run of one step, while its demand is read."""

    def __init__(self, reader: Reader, name: str, run: dict[str, Any], path: Path) -> None:
        self.reader = reader
        self.document = reader.document
        self.name = name
        self.run = run
        self.path = path
        #: Each key that says a size, as text in which only global parameters are left.
        self.sizes: dict[str, str] = {}
        self.failed = False

    def at(self, key: str) -> Path:
        return (*self.path, key)

    def script(self, key: str) -> str:
        value = self.run.get(key)
        return self.reader.variables.replace(value) if isinstance(value, str) else ""

    def warn(self, what: str, key: str = "cmd", hint: str = "") -> None:
        self.document.warn(what, self.at(key), hint)

    def fail(self, what: str, key: str = "cmd") -> None:
        """Name the step as one whose size can't be read."""
        self.failed = True
        hint = "it is not sized: say it in numbers, or size the allocation yourself, by --nodes"
        self.document.warn(f"step {self.name!r} {what}", self.at(key), hint)


def demand(
    reader: Reader, name: str, run: dict[str, Any], path: Path, type: str, line: int
) -> Demand | None:
    """What a task of a step takes; None, and a note of why, where that can't be read."""
    step = _Run(reader, name, run, path)
    _keys(step)
    walltime = reader.walltime(run.get("walltime"), step.at("walltime"), fatal=False)
    scheduler = _type(step, type)
    part = _launches(step)
    raw = _raw(step, scheduler)
    found = list(calls(part))
    shapes: list[Shape] = []
    asked = Asked({}, raw, scheduler)
    for row in _rows(step, found, raw):
        keys = {KEYS[key].size: int(replaced(text, row)) for key, text in step.sizes.items()}
        asked = Asked(keys, _raw(step, scheduler, row), scheduler, asked.notes)
        shapes.append(_one(step, part, asked, row))
    if step.failed or not shapes:
        return None
    size = cover(shapes)
    if len(set(shapes)) > 1 and size not in shapes:
        step.warn(
            "no row of the parameters takes the most of everything: the most of each is taken"
        )
    for what, hint in asked.notes.items():
        step.warn(f"step {name!r} {what}", hint=hint)
    if found:
        _about_launcher(step, scheduler, part, size)
    else:
        _about_none(step)
    return Demand(
        step=name,
        nodes=size.nodes,
        cores=size.cores,
        gpus=size.gpus,
        memory_mib=size.memory_mib,
        launcher=bool(found),
        walltime_s=walltime,
        written_nodes="nodes" in step.sizes or "nodes" in raw.sizes or _wrote_nodes(found),
        why=_why(step, size, bool(found), len(set(shapes))),
        line=line,
    )


def _keys(step: _Run) -> None:
    """Read every key that says a size, and refuse those that say it twice."""
    for key, (_, least, variable) in KEYS.items():
        value = step.run.get(key)
        if value is None:
            continue
        if not isinstance(value, str):
            number = step.reader.number(value, step.at(key), least)
            text = None if number is None else str(number)
        else:
            text = _key_text(step, key, value, least, variable)
        if text is not None:
            step.sizes[key] = text


def _key_text(step: _Run, key: str, value: str, least: int, variable: bool) -> str | None:
    """A size written as text, with all but global parameters replaced."""
    text = step.reader.variables.replace(value).strip()
    names = REFERENCE.findall(text)
    if names and set(names) <= step.reader.parameters.keys():
        for at, _ in enumerate(next(iter(step.reader.parameters.values()))):
            row = {name: step.reader.parameters[name][at : at + 1] for name in names}
            one = replaced(text, {name: each[0] if each else "" for name, each in row.items()})
            if step.reader.counted(one, step.at(key), least, written=value) is None:
                return None
    elif names and set(names) <= {*step.reader.columns, *step.reader.parameters}:
        step.fail(f"has {key}: {value}, which is different for each sample", key)
        return None
    else:
        number = step.reader.number(value, step.at(key), least)
        text = "" if number is None else str(number)
    if not variable and text:
        step.warn(f"Merlin refuses a variable for {key!r}", key, "write a number")
    return text or None


def _type(step: _Run, type: str) -> str:
    """The type of batch block that this step's launcher is of: its own counts first."""
    raw = step.run.get("batch")
    if raw is None:
        return type
    if not isinstance(raw, dict):
        step.document.error(f"must be a mapping, not {said(raw)}", step.at("batch"))
        return type
    return step.reader.fixed(raw.get("type"), (*step.at("batch"), "type")) or type


def _launches(step: _Run) -> Part:
    """The launches of cmd, and those of restart, which come one after another."""
    parts: list[Part] = []
    for key in ("cmd", "restart"):
        script = step.script(key)
        if mentions(script):
            parts.append(launches(script, {}))
    return Seq(tuple(parts))


def _raw(step: _Run, type: str, row: Row | None = None) -> Options:
    """What the raw flags say that Merlin hands to this step's launcher."""
    tool = LAUNCHER_OF.get(type, "")
    key = RAW_KEY.get(tool, "")
    text = step.script(key) if key else ""
    words = [token.text for token in tokens(text) if not token.operator and not token.script]
    return (
        options(TOOLS[tool], [replaced(word, row or {}) for word in words]) if words else Options()
    )


def _rows(step: _Run, found: list[Any], raw: Options) -> Iterator[Row]:
    """The rows of the global parameters, each once, as far as sizes depend on them."""
    names = _used(step, found)
    if not names:
        yield {}
        return
    columns = [step.reader.parameters[name] for name in names]
    for values in dict.fromkeys(zip(*columns)):
        yield dict(zip(names, values))


def _used(step: _Run, found: list[Any]) -> list[str]:
    texts = [*step.sizes.values(), *(step.script(key) for key in RAW_KEY.values())]
    for call in found:
        one = launch(call.words)
        if one is not None:
            tool = TOOLS.get(one.tool)
            words = options(tool, one.words) if tool else None
            behind = len(words.program) if words else 0
            texts += one.words[: len(one.words) - behind] if behind else one.words[:12]
            texts += [one.alloc, *call.env.values()]
    known = step.reader.parameters
    return sorted({name for text in texts for name in REFERENCE.findall(text) if name in known})


def _one(step: _Run, part: Part, asked: Asked, row: Row) -> Shape:
    """The shape for one row of the parameters."""
    if not list(calls(part)):
        keys = asked.keys
        return Shape(1, keys.get("cores", 1), keys.get("gpus", 0))
    for one, two in _BOTH:
        if one in step.run and two in step.run and not step.failed:
            step.failed = True
            what = f"{one!r} is that of the whole step, {two!r} that of each task: say one of them"
            step.document.error(what, step.at(one))
    if asked.raw.unread or asked.raw.program:
        rest = " ".join([*asked.raw.unread, *asked.raw.program])
        step.fail(f"has raw flags that can't be read: {rest}", RAW_KEY[LAUNCHER_OF[asked.type]])
        return Shape()
    try:
        return peak(part, asked, row)
    except Unread as error:
        step.fail(str(error))
    return Shape()


def _wrote_nodes(found: list[Any]) -> bool:
    for call in found:
        one = launch(call.words)
        if one is not None and one.tool in TOOLS:
            return "nodes" in options(TOOLS[one.tool], one.words).sizes
        if one is not None and (one.tool == "VLAUNCHER" or "n" in one.alloc):
            return True
    return False


def _about_launcher(step: _Run, type: str, part: Part, size: Shape) -> None:
    """What Merlin makes of a step with $(LAUNCHER)."""
    tools = {one.tool for call in calls(part) if (one := launch(call.words))}
    if size.uneven:
        step.warn(f"step {step.name!r}: its tasks do not divide by its nodes; rounded up")
    if not tools & {"LAUNCHER", "VLAUNCHER"}:
        return
    tool = LAUNCHER_OF.get(type)
    if tool is None:
        what = f"Merlin puts nothing in place of $(LAUNCHER) where the batch type is {type}"
        step.warn(what, hint="type: slurm, flux or lsf")
        return
    if "VLAUNCHER" not in tools:
        if not step.sizes.keys() & {"nodes", "procs"}:
            step.warn(
                "Merlin leaves $(LAUNCHER) as it is: it needs nodes and procs", "cmd", "add procs"
            )
        elif "procs" not in step.sizes:
            hint = f"add procs: {step.sizes['nodes']}"
            step.warn(
                "Merlin starts no task without procs: its launcher gets no number", "nodes", hint
            )
    _dropped(step, tool)


def _dropped(step: _Run, tool: str) -> None:
    """Name the sizes that Merlin drops; here they count."""
    flag = {
        "srun": "slurm: --gpus-per-task=K",
        "flux": "gpus per task: K",
        "jsrun": "gpus per task: K",
    }
    hints = {
        "cores": "write procs, and cores per task where that is more than 1",
        "gpus": f"write {flag[tool]}",
        "gpus per task": f"write {flag[tool]}",
    }
    for key in ("cores", "gpus", *(("gpus per task",) if tool == "srun" else ())):
        if step.sizes.get(key, "0") != "0":
            step.warn(
                f"Merlin drops {key!r}: its {tool} asks for none; here it counts", key, hints[key]
            )


def _about_none(step: _Run) -> None:
    """A step without a launcher runs inside its worker, whatever its keys say."""
    for key in ("nodes", "procs", "cores per task", "gpus per task"):
        text = step.sizes.get(key, "1")
        if text not in ("0", "1"):
            what = (
                f"{key} has no effect: step {step.name!r} has no launcher, and runs in its worker"
            )
            step.warn(what, key, "put $(LAUNCHER) in front of its program")


def _why(step: _Run, size: Shape, launcher: bool, kinds: int) -> str:
    """How the numbers came about."""
    words = ", ".join(f"{key} {step.run[key]}" for key in KEYS if key in step.sizes)
    if not launcher:
        return f"no launcher: it runs inside its worker{', with ' + words if words else ''}"
    most = ", the most over the parameters" if kinds > 1 else ""
    where = f"on {size.nodes} node" + "s" * (size.nodes != 1)
    gpus = f" and {size.gpus} GPUs" if size.gpus else ""
    return f"{words or 'its launcher'}: {size.cores} cores{gpus} a node, {where}{most}"
