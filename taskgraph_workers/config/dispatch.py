"""``workers-config.dispatch``: what a start-training message may ask for, and its task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from taskgraph_workers.config.entries import Entries, env_name, env_text
from taskgraph_workers.config.executors import executors
from taskgraph_workers.config.faults import Fault, stop_at
from taskgraph_workers.config.forms import Either, Shape, about, formed, takes
from taskgraph_workers.config.keyed import keyed
from taskgraph_workers.config.names import Known
from taskgraph_workers.config.shapes import (
    NAME,
    a_name,
    count,
    duration,
    level,
    line,
    list_of,
    pattern,
    section,
    some_of,
    table,
)
from taskgraph_workers.errors import did_you_mean
from taskgraph_workers.model import ENGINES, Dispatch, Keyed, RequestTask

#: What a value of ``dispatch.task`` may be keyed by.
TASK_KEYED_BY = ("image", "sku")

# What can run images on this machine; ``none`` leaves them all to ``commands``.
_ENGINES = (*ENGINES, "none")


def dispatch(known: Known) -> Shape:
    """The shape of ``dispatch``: a :class:`Dispatch`."""
    task = _task_shape(known)
    local = section(
        {
            "engine": about("What runs images; the first that works, unless said.", _engine),
            "options": about("More options for the engine's run, as they are.", list_of(line)),
            "commands": about("What runs, by image, where no engine does.", table(_argv, a_name)),
            "at-once": about("How many requests run here at once; 1 unless said.", count(1)),
        }
    )
    whole = section(
        {
            "level": about("The level that placement is told; 1 unless said.", level),
            "project": about("The project that placement is told.", a_name),
            "kind": about("The kind that placement is told.", a_name),
            "skus": about(
                "Machine types of messages, each with its worker name.",
                _skus(Entries(known).name),
            ),
            "images": about(
                "Images that may be asked for, as patterns of whole names.", list_of(pattern)
            ),
            "task": about(
                "What the task of a request is like.",
                formed(lambda raw: _task(task(raw)), Either((task,))),
            ),
            "executor": about("What runs requests: local, unless said.", a_name),
            "executors": about("A site's own commands for running requests, by name.", executors()),
            "local": about("How requests run on this machine.", local),
        }
    )

    def read(raw: Any) -> Dispatch | None:
        value = whole(raw)
        local = value.pop("local", {})
        if "options" in local:
            local["engine_options"] = local.pop("options")
        if "at-once" in local:
            local["at_once"] = local.pop("at-once")
        return Dispatch(**local, **value) if raw is not None else None

    return formed(read, Either((whole,)))


def _task_shape(known: Known) -> Shape:
    def by(shape: Shape) -> Shape:
        return keyed(shape, known, TASK_KEYED_BY)

    return section(
        {
            "max-run-time": about("How long it may run, such as 2h or seconds.", by(duration)),
            "retries": about("How often it begins anew after its machine was lost.", by(count())),
            "scopes": about("Taskcluster scopes that it gets.", by(list_of(line))),
            "env": about("Variables that it gets.", by(table(by(env_text), env_name))),
        }
    )


def _task(value: Mapping[str, Any]) -> RequestTask:
    said = {key.replace("-", "_"): _whole_names(each) for key, each in value.items()}
    if "env" in said:
        said["env"] = {name: _whole_names(each) for name, each in said["env"].items()}
    if "max_run_time" in said:
        said["max_run_time_s"] = said.pop("max_run_time")
    return RequestTask(**said)


def _whole_names(value: Any) -> Any:
    """The same, where no branch can match the beginning of a name.

    Everywhere else ``a|b`` matches whatever begins with ``a``, as in Taskgraph. Here names come
    from outside, and a branch may give scopes.
    """
    if not isinstance(value, Keyed):
        return value
    choices = {
        f"(?:{key})" if "|" in key else key: _whole_names(each)
        for key, each in value.choices.items()
    }
    return replace(value, choices=choices)


def _skus(name: Shape) -> Shape:
    """A shape: worker names by machine type, each type once: 6 and "6" are the same."""
    skus = table(name, _sku)

    def read(raw: Any) -> dict[str, str]:
        value: dict[str, str] = skus(raw)
        twice = [sku for sku, times in Counter(map(str, raw or ())).items() if times > 1]
        stop_at([Fault("this machine type is there twice", at=[sku]) for sku in twice])
        return value

    return formed(read, Either((skus,)))


@takes(type="string", pattern=NAME)
def _sku(raw: Any) -> str:
    return str(raw) if type(raw) is int else a_name(raw)


@takes(enum=list(_ENGINES))
def _engine(raw: Any) -> str:
    value = line(raw)
    if value not in _ENGINES:
        raise Fault(f"there is no engine {value!r}", did_you_mean(value, _ENGINES))
    return value


_argv = some_of(line, "must be a command with its arguments, not an empty list")
