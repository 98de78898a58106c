"""What a worker gives the tasks that run inside of it: GPUS and WORKSPACE.

A task that says ``GPUS: {detect: inherited}`` relies on its worker for them. They come, in this
order, from:

1. the group's own ``env``;
2. the placements of ``workers-config`` that lead to the group's pool, for every worker name and
   profile, at every level: where all of them agree on a value, the worker has it too;
3. for a worker with GPUs, the machine: :mod:`taskgraph_workers.detect` works them out when the
   worker starts, among the GPUs that the scheduler has bound to it.

Workers of a Merlin spec that hold GPUs get what the machine tells, too. Nobody asked for it there,
so a variable that is set already stays, and one that can't be worked out is left away, with a line
in the log: the worker starts all the same.

How a worker passes them on is its own affair. Celery's tasks inherit the worker's environment, and
so do those of generic-worker's simple engine (once called insecure). Its multiuser engine makes a
new environment for each task, also where it runs tasks as its own user, and docker-worker starts
containers: they pass nothing on.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from taskgraph_workers.errors import Problem, WorkersError
from taskgraph_workers.launch.model import LaunchError
from taskgraph_workers.schedulers import quoting

if TYPE_CHECKING:
    from taskgraph_workers.launch.model import WorkerGroup
    from taskgraph_workers.machines import Group
    from taskgraph_workers.model import Config

#: What a worker detects if it has GPUs and nobody says more. The share is what a training may fill
#: of a GPU's memory without running out of it.
DETECTED: Mapping[str, Mapping[str, object]] = {
    "GPUS": {"detect": "gpu-indices"},
    "WORKSPACE": {"detect": "gpu-memory", "share": 0.75},
}

#: The variables in which a script keeps the text that detects, by number.
TEXT = "TASKGRAPH_WORKERS_DETECT"

# A text that tries to work values out; in braces, what differs.
_TRY = """\
# The worker starts with what comes out of this, if only with nothing.
while IFS= read -r tw_line; do
  tw_name=${{tw_line%%=*}}
  [ -z "${{tw_line#*=}}" ] || [ "${{!tw_name+set}}" ] || export "${{tw_line?}}"
done < <(timeout -k 1 {seconds} sh -s <<'END_OF_TRY'
unset {unset}
trap '{shown}' EXIT
{prelude}END_OF_TRY
)
"""
_TRY_S = 60

# What makes a line more than one command with its words; such a line is left to bash as it is.
_COMPOUND = re.compile(r"[;&|<>()`\n]|\$\(|^\s*(\w+=|[.{!]\s|(if|for|while|until|case|time)\b)")
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.")
# What bash does itself: there is no program that could take its place.
_BUILT_IN = re.compile(
    r"\s*(alias|break|builtin|cd|command|continue|coproc|declare|disown|enable|eval|exec|exit|export"
    r"|hash|jobs|let|local|mapfile|popd|pushd|read|readonly|return|set|shift|shopt|source|trap|type"
    r"|typeset|ulimit|umask|unalias|unset|wait|:)(?=\s|$)"
)


# --- which values ---------------------------------------------------------------------------


def env_of(config: Config, group: Group, trust_domain: str = "") -> dict[str, Any]:
    """GPUS and WORKSPACE of a group's workers: text, or a ``Detect``. See the module."""
    from taskgraph_workers.detect import parse

    env: dict[str, Any] = {}
    said = _of_pool(config, group.pool, trust_domain) if group.pool else {}
    for name, detected in DETECTED.items():
        if name in said:
            env[name] = said[name]
        elif group.gpus:
            env[name] = parse(detected)
    return {name: value for name, value in {**env, **group.env}.items() if value is not None}


def detected() -> dict[str, Any]:
    """What is worked out for workers with GPUs, as ``Detect``."""
    from taskgraph_workers.detect import parse

    return {name: parse(raw) for name, raw in DETECTED.items()}


def _of_pool(config: Config, pool: str, trust_domain: str) -> dict[str, Any]:
    """The values on which all placements agree that lead to a pool."""
    found: dict[str, list[Any]] = {name: [] for name in DETECTED}
    for env in _envs(config, pool, trust_domain):
        for name, values in found.items():
            value = env.get(name)
            # What is inherited is what this is about; who says nothing contradicts nobody.
            if value is not None and getattr(value, "what", "") != "inherited":
                values.append(value)
    return {n: values[0] for n, values in found.items() if values and _alike(values)}


def _alike(values: list[Any]) -> bool:
    return all(value == values[0] for value in values)


def _envs(config: Config, pool: str, trust_domain: str) -> Iterator[Mapping[str, Any]]:
    """The env that a task with none of its own gets in a pool, for every way there."""
    from taskgraph_workers.config.names import LEVELS
    from taskgraph_workers.config.selection import names_of
    from taskgraph_workers.model import Choice, Context
    from taskgraph_workers.resolve import resolve, task_env

    names = names_of(config)
    for level in LEVELS:
        context = Context(level=level, trust_domain=trust_domain)
        for profile in (None, *config.profiles):
            choice = Choice(profile, "launch")
            for name in names:
                try:
                    placement = resolve(config, name, choice, context.under(choice))
                    if placement.pool == pool:
                        yield task_env(placement, {})[0]
                except WorkersError:
                    # A name that leads nowhere under this profile doesn't lead to the pool.
                    continue


# --- how a worker gets them -----------------------------------------------------------------


class Commands(NamedTuple):
    """What each group's workers run, and the texts that they share, by variable."""

    lines: Mapping[str, str]
    texts: Mapping[str, str]


def commands_of(groups: Iterable[WorkerGroup]) -> Commands:
    """The command of each group, with its env in front.

    A command starts with ``exec`` where it is a single one: so the scheduler's TERM reaches the
    worker, and no shell in front of it.

    :raises LaunchError: for values that no shell could hold.
    """
    lines: dict[str, str] = {}
    texts: dict[str, str] = {}
    problems: list[Problem] = []
    for group in groups:
        try:
            lines[group.name] = _command(group, texts)
        except ValueError as error:
            problems.append(Problem(f"group {group.name!r}: {error}", line=group.line))
    if problems:
        raise LaunchError(*problems)
    return Commands(lines, {name: text for text, name in texts.items()})


def _command(group: WorkerGroup, texts: dict[str, str]) -> str:
    parts = []
    if group.env or group.tried:
        from taskgraph_workers.detect import Detect, prelude

        values = {n: value for n, value in group.env.items() if isinstance(value, Detect)}
        constant = {n: str(value) for n, value in group.env.items() if n not in values}
        parts = [_exports(constant)] if constant else []
        for text in filter(None, (prelude(values), _try(group.tried))):
            name = texts.setdefault(text, f"{TEXT}_{len(texts) + 1}")
            parts.append(f'eval "${name}"')
    return "; ".join([*parts, alone(quoting.check(group.command))])


def _try(values: Mapping[str, Any]) -> str:
    """Text for bash that exports what can be worked out of values, and never ends the shell.

    It happens in a shell of its own, which may end with a failure, and is given up if it hangs.
    """
    if not values:
        return ""
    from taskgraph_workers.detect import prelude

    names = sorted(values)
    shown = "; ".join(f'echo "{name}=${{{name}-}}"' for name in names)
    return _TRY.format(unset=" ".join(names), shown=shown, prelude=prelude(values), seconds=_TRY_S)


def _exports(env: Mapping[str, str]) -> str:
    words = (f"{name}={quoting.inner(quoting.check(value))}" for name, value in env.items())
    return "export " + " ".join(words)


def alone(command: str) -> str:
    """A line for bash that becomes its command, if it is a single one.

    >>> alone("start-worker /etc/worker.yml"), alone("cd /scratch && exec start-worker")
    ('exec start-worker /etc/worker.yml', 'cd /scratch && exec start-worker')
    """
    return f"exec {command}" if is_single(command) else command


def is_single(command: str) -> bool:
    """Whether a line is one program with its words, and no ``exec`` yet."""
    if _BUILT_IN.match(command):
        return False
    try:
        shlex.split(command)
    except ValueError:  # a quote is open
        return False
    return _COMPOUND.search(_QUOTED.sub("", command)) is None


def ends_with_its_shell(command: str) -> bool:
    """Whether a TERM would end a shell in front of the worker, rather than the worker."""
    return not is_single(command) and re.search(r"(^|[;&|]\s*)exec\b", command) is None
