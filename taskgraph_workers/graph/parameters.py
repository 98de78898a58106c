"""Where the choice of a run comes from: the environment, parameters, ``select.default``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any, Callable, Optional, Union

from taskgraph_workers.config import read_selection
from taskgraph_workers.config.environment import VARIABLE, from_environment, inside_task
from taskgraph_workers.errors import TOP, ConfigError, Problem
from taskgraph_workers.graph.errors import refuse
from taskgraph_workers.keyed import pick
from taskgraph_workers.model import Config, Context, Selection

#: The optional parameter that holds the choice.
PARAMETER = "workers"

#: A choice as a parameters file may hold it. msgspec looks the name up here.
_Raw = Optional[Union[str, dict[str, Any]]]


def selections(
    config: Config,
    params: Mapping[str, Any],
    context: Context,
    kinds: Callable[[], Iterable[str]],
) -> Iterator[Selection]:
    """What each source says, strongest first (rule 3).

    ``kinds`` names the project's kinds; it is asked only where a choice speaks of kinds. Raises
    ConfigError for what is wrong in any of them, and PlacementError where ``select.default`` is
    asked for, and is keyed and has no branch here.
    """
    environment, parameter = from_environment(), params.get(PARAMETER)
    if environment is not None and inside_task() and environment != parameter:
        raise ConfigError(_not_recorded())
    sources = [(environment, VARIABLE), (parameter, f"parameter {PARAMETER}")]
    if config.select.parameter is not None:
        dotted = config.select.parameter
        sources.append((_at(params, dotted), f"parameter {dotted}"))
    said = [
        read_selection(raw, source, (source,), config, _asked(kinds, raw))
        for raw, source in sources
        if raw is not None
    ]
    return chain(said, _default(config, context))


def _default(config: Config, context: Context) -> Iterator[Selection]:
    """What ``select.default`` says here; looked at only where no stronger source decides."""
    default, _ = pick(config.select.default, context, (*TOP, "select", "default"))
    if default is not None:
        yield default


def _asked(kinds: Callable[[], Iterable[str]], raw: Any) -> Iterable[str] | None:
    return kinds() if isinstance(raw, Mapping) else None


def _not_recorded() -> Problem:
    return Problem(
        f"{VARIABLE} is set inside a task, and parameters.yml does not record it",
        hint=f"unset it and set the parameter {PARAMETER!r}, or use the decision hook "
        "taskgraph_workers.parameters:decision_parameters",
    )


def _at(params: Mapping[str, Any], dotted: str) -> Any:
    """The value at a dotted path of the parameters, or None; keys may hold dots themselves."""
    if dotted in params:
        return params[dotted]
    for end, char in enumerate(dotted):
        inner = params.get(dotted[:end]) if char == "." else None
        if isinstance(inner, Mapping):
            return _at(inner, dotted[end + 1 :])
    return None


def without_choice(params: Mapping[str, Any], config: Config | None) -> dict[str, Any]:
    """Parameters as they would be had nobody chosen; they share what is not changed."""
    unsaid = _without(params, PARAMETER)
    if config is None or config.select.parameter is None:
        return unsaid
    return _without(unsaid, config.select.parameter)


def _without(params: Mapping[str, Any], dotted: str) -> dict[str, Any]:
    """Without what :func:`_at` finds."""
    if dotted in params:
        return {key: value for key, value in params.items() if key != dotted}
    for end, char in enumerate(dotted):
        inner = params.get(dotted[:end]) if char == "." else None
        if isinstance(inner, Mapping):
            return {**params, dotted[:end]: _without(inner, dotted[end + 1 :])}
    return dict(params)


@contextmanager
def no_variable() -> Iterator[None]:
    """Without the environment variable, which a person may have set for a local look."""
    held = os.environ.pop(VARIABLE, None)
    try:
        yield
    finally:
        if held is not None:
            os.environ[VARIABLE] = held


def decision_parameters(graph_config: Any, parameters: dict[str, Any]) -> None:
    """A ``decision-parameters`` hook: record the environment's choice as the parameter.

    A project names it in config.yml, or calls it from a hook of its own. Ends the run where the
    variable holds no YAML.
    """
    del graph_config
    try:
        said = from_environment()
    except ConfigError as error:
        refuse(error.problems)
    if said is not None:
        parameters[PARAMETER] = said


def extend_parameters() -> None:
    """Make the optional parameter known to Taskgraph, unless the project defines one of its name.

    Its schema is a voluptuous one up to Taskgraph 22, a msgspec one from 23.0.0. No default is
    given: ``decision`` would not apply it, and an absent choice is the default profile.
    """
    from taskgraph import parameters

    if isinstance(parameters.base_schema, type):
        if not any(PARAMETER in _fields(each) for each in parameters._parameter_extensions):
            parameters.extend_parameters_schema(_msgspec_schema())
    elif PARAMETER not in {str(key) for key in parameters.base_schema.schema}:
        from voluptuous import Any as AnyOf
        from voluptuous import Optional as MayHave

        parameters.extend_parameters_schema({MayHave(PARAMETER): AnyOf(None, str, dict)})


def _fields(schema: Any) -> tuple[str, ...]:
    fields: tuple[str, ...] = schema.__struct_encode_fields__
    return fields


def _msgspec_schema() -> Any:
    from taskgraph.util.schema import Schema

    class WorkersParameters(Schema, forbid_unknown_fields=False):  # type: ignore[call-arg,misc]
        workers: _Raw = None

    return WorkersParameters
