"""``show``: where each worker name leads under each profile, and what tasks are told there."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from taskgraph_workers.cli import options, reading
from taskgraph_workers.cli.layout import Cell, Line, Part, Styled
from taskgraph_workers.cli.output import Output
from taskgraph_workers.errors import DEAD_END, PlacementError, Problem, WorkersError, did_you_mean

if TYPE_CHECKING:
    from taskgraph_workers.model import Config, Context, Placement

#: A placement, or why there is none.
Outcome = Union["Placement", Problem]

#: What is shown for no profile, where there are no profiles.
NO_PROFILE = ""


def add_parser(subparsers: Any) -> None:
    """Add ``show`` to the command."""
    parser = options.add_command(
        subparsers,
        run,
        "Where each worker name leads under each profile: pool, env, resources.",
        "taskgraph-workers show b-largegpu --level 3",
    )
    add = parser.add_argument
    add("name", metavar="NAME", nargs="?", help="this worker name alone")
    add("--profile", metavar="PROFILE", action="append", default=[], help="this profile alone")
    add("--kind", metavar="KIND", default="", help="as for tasks of this kind")
    options.add_level(parser, "as at this level (default: 1)", "1")
    options.add_config(parser)
    options.add_root(parser)
    options.add_output(parser)


def run(args: argparse.Namespace, output: Output) -> int:
    """Print the table."""
    from taskgraph_workers.model import Context

    project = reading.project(args)
    config = project.config
    check_kind(args.kind, project.kinds)
    profiles = profiles_of(config, args.profile)
    names = _names(config, args.name)
    context = Context(level=args.level, kind=args.kind, trust_domain=project.trust_domain)
    table = {
        name: {profile: _outcome(config, name, profile, context) for profile in profiles}
        for name in names
    }
    if args.json:
        output.json({"profiles": _as_json(table, profiles)})
    else:
        _show(config, table, context, output)
    return 0


def check_kind(kind: str, known: Iterable[str] | None) -> None:
    """Raises WorkersError for a kind that there is not."""
    if kind and known is not None and kind not in known:
        raise WorkersError(Problem(f"there is no kind {kind!r}", hint=did_you_mean(kind, known)))


def profiles_of(config: Config, asked: Sequence[str]) -> list[str]:
    """The profiles to look at. Raises WorkersError for one that there is not."""
    wrong = [
        Problem(f"there is no profile {each!r}", hint=did_you_mean(each, config.profiles))
        for each in asked
        if each not in config.profiles
    ]
    if wrong:
        raise WorkersError(*wrong)
    return list(asked or config.profiles or [NO_PROFILE])


def check_name(config: Config, name: str) -> None:
    """Raises WorkersError for a name that nothing speaks of."""
    from taskgraph_workers.config.selection import names_of
    from taskgraph_workers.refusals import worker_hint
    from taskgraph_workers.resolve import is_known

    if not is_known(config, name):
        hint = worker_hint(name, names_of(config), config.profiles)
        raise WorkersError(Problem(f"there is no worker name {name!r}", hint=hint))


def _names(config: Config, name: str | None) -> list[str]:
    from taskgraph_workers.config.selection import names_of

    if name is None:
        return names_of(config)
    check_name(config, name)
    return [name]


def _outcome(config: Config, name: str, profile: str, context: Context) -> Outcome:
    from taskgraph_workers.model import Choice
    from taskgraph_workers.resolve import resolve

    try:
        return resolve(config, name, Choice(profile or None, "--profile"), context)
    except PlacementError as error:
        return error.problems[0]


# --- JSON -----------------------------------------------------------------------------------


def _as_json(
    table: Mapping[str, Mapping[str, Outcome]], profiles: Iterable[str]
) -> dict[str, dict[str, Any]]:
    return {
        profile: {name: _told(of[profile]) for name, of in table.items()} for profile in profiles
    }


def placement_json(placement: Any) -> dict[str, Any]:
    """A placement as other programs read it."""
    return {
        "pool": placement.pool,
        "implementation": placement.implementation,
        "os": placement.os,
        "env": {name: plain(value) for name, value in _env(placement)},
        "resources": dict(_resources(placement)),
    }


def plain(value: Any) -> Any:
    """A value as a configuration says it."""
    from taskgraph_workers.detect import Detect, render

    return render(value) if isinstance(value, Detect) else value


def _env(placement: Placement) -> Iterator[tuple[str, Any]]:
    said = {**placement.env, **placement.env_override}
    return ((n, said[n].value) for n in sorted(said) if said[n].value is not None)


def _resources(placement: Placement) -> Iterator[tuple[str, Any]]:
    for name, said in sorted(placement.resources.items()):
        if said.value is not None:
            yield name, resource(name, said.value)


def resource(name: str, value: Any) -> Any:
    """A value of ``resources`` as a configuration says it: memory is kept in MiB."""
    from taskgraph_workers.units import mib_text

    size = name in ("memory", "gpu-memory", "disk") and isinstance(value, int)
    return mib_text(value) if size else value


# --- text -----------------------------------------------------------------------------------


def _show(
    config: Config,
    table: Mapping[str, Mapping[str, Outcome]],
    context: Context,
    output: Output,
) -> None:
    rows: list[list[Cell]] = []
    for name, of in table.items():
        rows += [[""]] if rows else []
        rows.append([[_heading(name, config)]])
        for profiles, outcome in _alike(of):
            if isinstance(outcome, Problem):
                rows.append([[_nowhere(profiles, outcome)]])
            else:
                rows.append(_row(_profiles(config, profiles, len(of), context), outcome))
    output.table(rows, indent=2)


def _heading(name: str, config: Config) -> list[Styled]:
    alias = name in config.aliases
    return [Styled(name, "bold"), Styled("  an alias" if alias else "", "dim")]


def _alike(of: Mapping[str, Outcome]) -> list[tuple[list[str], Outcome]]:
    """Profiles that come to the same are shown together."""
    found: list[tuple[list[str], Outcome]] = []
    for profile, outcome in of.items():
        for profiles, other in found:
            if _told(other) == _told(outcome):
                profiles.append(profile)
                break
        else:
            found.append(([profile], outcome))
    return found


def _told(outcome: Outcome) -> dict[str, Any] | None:
    """A placement as other programs read it; null for a name that leads nowhere."""
    return None if isinstance(outcome, Problem) else placement_json(outcome)


def _profiles(config: Config, profiles: Sequence[str], count: int, context: Context) -> list[Line]:
    """The profiles of a row; one that is not for this level says so."""
    from taskgraph_workers.config.review import levels_of

    if len(profiles) == count > 1:
        return [Styled("every profile", "dim")]
    lines: list[Line] = []
    for profile in profiles:
        lines.append(profile)
        if context.level not in levels_of(config, profile or None):
            lines.append(Styled(f"  not at level {context.level}", "yellow"))
    return lines


def _nowhere(profiles: Sequence[str], why: Problem) -> list[Part]:
    """A line across the table, for a name that leads nowhere."""
    reason = why.text
    if why.code == DEAD_END:
        it = "it" if len(why.names) == 1 else f"{' -> '.join(why.names)}, which"
        reason = f"{it} is no alias in workers.aliases"
    where = ", ".join(filter(None, profiles))
    return [f"  {where}  " if where else "  ", Styled("nowhere", "red"), f": {reason}"]


def _row(profiles: Sequence[Line], outcome: Placement) -> list[Cell]:
    env: list[Line] = [
        [Styled(name, "bold"), ": ", env_text(value)] for name, value in _env(outcome)
    ]
    resources: list[Line] = [f"{name}: {value}" for name, value in _resources(outcome)]
    where = [Styled(outcome.pool, "cyan"), Styled(outcome.implementation, "dim")]
    return [profiles, where, env, resources]


def env_text(value: Any) -> str:
    """A value of env as people say it."""
    from taskgraph_workers.detect import Detect

    if isinstance(value, Detect):
        rest = [f"{key} {said}" for key, said in plain(value).items() if key != "detect"]
        if value.what == "inherited":
            return "inherited from the worker"
        return ", ".join([f"detected ({value.what}", *rest]) + ")"
    return str(value) if value != "" else "''"
