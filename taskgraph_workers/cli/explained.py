"""How a placement is explained: where each of its values comes from, and what it overrode."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from taskgraph_workers import match
from taskgraph_workers.cli.layout import Cell, Line, Styled
from taskgraph_workers.cli.output import Output
from taskgraph_workers.cli.show import env_text, plain, resource
from taskgraph_workers.config import located
from taskgraph_workers.errors import ALIASES, Path, Problem, WorkersError, did_you_mean, dotted
from taskgraph_workers.keyed import pick
from taskgraph_workers.model import (
    ALIAS_FIELDS,
    BUILT_IN,
    Choice,
    Config,
    Context,
    Placement,
    Selection,
    Value,
)
from taskgraph_workers.resolve import changes_for, layers_of, level_problem, task_env

#: The source of what a task says itself.
TASK = "task"


@dataclass(frozen=True)
class Source:
    """One place that the choice may come from. ``said`` is None where it is silent."""

    name: str
    said: Selection | None


@dataclass(frozen=True)
class Step:
    """One name of the chain: who sent the task there, and where that stands."""

    name: str
    source: str
    path: Path


@dataclass(frozen=True)
class Story:
    """All that is told of one name, or of one task.

    ``own`` is the task's own ``worker``. ``find`` finds the place of what the task says itself.
    """

    config: Config
    context: Context
    choice: Choice
    sources: Sequence[Source]
    placement: Placement
    label: str = ""
    own: Mapping[str, Any] = field(default_factory=dict)
    find: Callable[[Problem, Path, Any], Problem] | None = None

    def values(self) -> dict[str, Value]:
        """Each value by its key, as KEY names it; ``pool`` is told by its two fields."""
        placement = self.placement
        _, env = task_env(placement, self.own.get("env") or {})
        found: dict[str, Value] = {name: placement.fields[name] for name in ALIAS_FIELDS}
        ours = {*placement.env, *placement.env_override}
        found.update((f"env.{name}", env[name]) for name in sorted(env) if name in ours)
        found.update((f"env.{name}", env[name]) for name in sorted(env) if name not in ours)
        for name, value in sorted(placement.resources.items()):
            found[f"resources.{name}"] = value
        for name, value in sorted(placement.worker.items()):
            found[f"worker.{name}"] = self._over_own(name, value)
        return found

    def _over_own(self, name: str, value: Value) -> Value:
        """A value that is laid over the task's ``worker``, with what the task says."""
        if name not in self.own:
            return value
        if value.overrode is not None:
            return replace(value, overrode=self._over_own(name, value.overrode))
        return replace(value, overrode=Value(self.own[name], TASK, ("worker", name)))

    def chosen(self, key: str | None) -> dict[str, Value]:
        """The values that KEY asks for. Raises WorkersError where there is none."""
        values = self.values()
        if key is None:
            return {k: v for k, v in values.items() if not _is_of_task_alone(v)}
        if key == "pool":
            return {name: values[name] for name in ("provisioner", "worker-type")}
        for spelled in (key, f"env.{key}"):
            if spelled in values:
                return {spelled: values[spelled]}
        known = [*values, "pool", *(k[4:] for k in values if k.startswith("env."))]
        what = f"nothing sets {key!r} for {self.label or self.placement.asked!r}"
        raise WorkersError(Problem(what, hint=did_you_mean(key, known)))

    def steps(self) -> Iterator[Step]:
        """The chain, from the name that was asked for to the alias."""
        context = self.context.under(self.choice)
        layers = layers_of(self.config, self.choice)
        source, path = "asked for", ()  # type: tuple[str, Path]
        for name in self.placement.chain:
            yield Step(name, source, path)
            for layer, change in changes_for(self.config, name, layers, context):
                to, _ = pick(change.to, context, ())
                if to is not None:
                    key = match.find(layer.entries, name)[0]
                    source = layer.source if key == name else f"{layer.source}, {key!r}"
                    path = change.path
                    break

    def ends(self) -> str:
        """What the last name of the chain is."""
        name = self.placement.alias
        if name in BUILT_IN:
            return "built into Taskgraph"
        found = match.find(self.config.aliases, name)
        if not found:
            return "no alias: its entries say everything"
        key = found[0]
        place = self.place((*ALIASES, key))
        told = "an alias" if key == name else f"an alias, by the pattern {key!r}"
        return f"{told} ({self.where(place)})" if place.line else told

    def guards(self) -> Iterator[str]:
        """What keeps the name where it is, or the profile from being used."""
        name, kind = self.placement.asked, self.context.kind
        if match.any_matches(self.config.protected_workers, name):
            yield f"protect.workers keeps {name!r} where it is, under every profile"
        if kind and match.any_matches(self.config.protected_kinds, kind):
            yield f"protect.kinds keeps kind {kind!r} where it is, under every profile"
        problem = level_problem(self.config, self.choice, self.context.level)
        if problem is not None:
            yield problem.text

    def place(self, path: Path, value: Any = None, source: str = "") -> Problem:
        """Where a value stands, as a problem's place."""
        problem = Problem("", path)
        if source == TASK and self.find is not None:
            return self.find(problem, path, value)
        return located(problem, self.config)

    def where(self, place: Problem) -> str:
        """File and line of a place, in the folder of config.yml; empty where they are unknown."""
        return where(place, self.config)


def _is_of_task_alone(value: Value) -> bool:
    return value.source == TASK and value.overrode is None


def where(place: Problem, config: Config) -> str:
    """File and line of a place, in the folder of config.yml; empty where they are not known."""
    folder = folder_of(config)
    file = place.file[len(folder) :] if place.file.startswith(folder) else place.file
    return ":".join(str(part) for part in (file, place.line) if part)


def folder_of(config: Config) -> str:
    """The folder of config.yml, as people are shown it, with a slash."""
    folder = os.path.dirname(config.trace.sources[0].shown) if config.trace is not None else ""
    return f"{folder}/" if folder else ""


# --- JSON -----------------------------------------------------------------------------------


def as_json(story: Story, key: str | None) -> dict[str, Any]:
    """The explanation as other programs read it."""
    placement = story.placement
    return {
        "name": placement.asked,
        "task": story.label or None,
        "pool": placement.pool,
        "chain": [
            {"name": step.name, "source": step.source, **_place_json(story.place(step.path))}
            for step in story.steps()
        ],
        "choice": choice_json(story),
        "values": [
            {"key": name, **_value_json(story, name, value), "overrode": _under(story, name, value)}
            for name, value in story.chosen(key).items()
        ],
    }


def choice_json(story: Story) -> dict[str, Any]:
    """The choice, and what each source said; None where it was silent."""
    return {
        "profile": story.choice.profile,
        "source": story.choice.source or None,
        "sources": [
            {
                "source": source.name,
                "said": None if source.said is None else said_of(source.said),
                **_place_json(story.place(source.said.path if source.said else ())),
            }
            for source in story.sources
        ],
    }


def _value_json(story: Story, key: str, value: Value) -> dict[str, Any]:
    place = story.place(value.path, value.value, value.source)
    said = (
        resource(key.rpartition(".")[2], plain(value.value)) if _is_resource(key) else value.value
    )
    return {"value": plain(said), "source": value.source, **_place_json(place)}


def _under(story: Story, key: str, value: Value) -> list[dict[str, Any]]:
    return [_value_json(story, key, each) for each in _overrode(value)]


def _overrode(value: Value) -> Iterator[Value]:
    while value.overrode is not None:
        value = value.overrode
        yield value


def _is_resource(key: str) -> bool:
    return key.startswith("resources.")


def _place_json(place: Problem) -> dict[str, Any]:
    return {
        "file": place.file or None,
        "line": place.line or None,
        "column": place.column or None,
        "path": dotted(place.path) if place.file else "",
    }


# --- text -----------------------------------------------------------------------------------


def show(story: Story, key: str | None, output: Output) -> None:
    """The explanation as people read it."""
    values = story.chosen(key)
    _head(story, output)
    output.line()
    output.line(Styled("Chain", "bold"))
    output.table([_step(story, index, step) for index, step in enumerate(story.steps())], indent=2)
    output.line("  ", Styled(f"{story.placement.alias} is {story.ends()}", "dim"))
    for guard in story.guards():
        output.line("  ", Styled(guard, "yellow"))
    output.line()
    show_choice(story.config, story.choice, story.sources, output)
    output.line()
    folder = folder_of(story.config)
    below = f"; files are in {folder}" if folder else ""
    output.line(Styled("Values", "bold"), Styled(f", each over what it overrides{below}", "dim"))
    rows = [row for name, value in values.items() for row in _rows(story, name, value)]
    output.table(rows, indent=2)


def _head(story: Story, output: Output) -> None:
    asked = story.placement.asked
    parts = [Styled(story.label or asked, "bold")]
    parts += [Styled(f", which asks for {asked}", "")] if story.label else []
    context = [f"kind {story.context.kind}"] if story.context.kind and not story.label else []
    context += [f"level {story.context.level}"]
    output.line(*parts, Styled(f" ({', '.join(context)})", "dim"))
    output.line("runs on ", Styled(story.placement.pool, "cyan"))


def _step(story: Story, index: int, step: Step) -> list[Cell]:
    name = ("→ " if index else "") + step.name
    return [name, Styled(step.source, "dim"), Styled(story.where(story.place(step.path)), "dim")]


def show_choice(config: Config, choice: Choice, sources: Sequence[Source], output: Output) -> None:
    """Where the choice came from: each source, strongest first."""
    profile = f"profile {choice.profile}" if choice.profile else "no profile"
    output.line(Styled("Choice", "bold"), f": {profile}")
    rows: list[list[Cell]] = []
    for source in sources:
        if source.said is None:
            rows.append([source.name, Styled("silent", "dim"), ""])
            continue
        decided = source.said.source == choice.source
        place = located(Problem("", source.said.path), config)
        text = Styled(said_of(source.said), "green" if decided else "")
        told: Line = [text, Styled("  decides", "dim")] if decided else text
        rows.append([source.name, [told], Styled(where(place, config), "dim")])
    output.table(rows, indent=2)


def said_of(said: Selection) -> str:
    """What a source says of the choice, on one line."""
    profiles = dict(said.profiles)
    parts = []
    if set(profiles) == {"default"}:
        parts.append(profiles["default"])
    elif profiles:
        parts.append(", ".join(f"{kind}: {profile}" for kind, profile in profiles.items()))
    if said.overrides is not None:
        parts.append(f"overrides for {', '.join(said.overrides.entries)}")
    return "; ".join(parts) or "nothing"


def _rows(story: Story, key: str, value: Value) -> Iterator[list[Cell]]:
    """A value, and below it what it overrode."""
    name = key[4:] if key.startswith("env.") else key
    yield [Styled(name, "bold"), *_cells(story, key, value)]
    for each in _overrode(value):
        text, source, place = _cells(story, key, each)
        yield ["", [[Styled("over ", "dim"), *_flat(text)]], source, place]


def _cells(story: Story, key: str, value: Value) -> list[Any]:
    place = story.place(value.path, value.value, value.source)
    return [_text(key, value.value), Styled(value.source, "dim"), Styled(story.where(place), "dim")]


def _flat(text: Styled) -> list[Styled]:
    return [Styled(text.text, "dim")]


def _text(key: str, value: Any) -> Styled:
    """A value as people say it."""
    if value is None:
        return Styled("removed", "yellow")
    if key.startswith("env."):
        told = env_text(value)
        return Styled(
            told if not isinstance(value, Mapping) else " ".join(map(str, value.values()))
        )
    return Styled(str(resource(key.rpartition(".")[2], value) if _is_resource(key) else value))
