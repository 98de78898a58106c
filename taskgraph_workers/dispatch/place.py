"""Where a request runs, and what its trainer is told: by the same rules as the tasks of a graph."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from taskgraph_workers.config.environment import (
    VARIABLE,
    choice_in,
    from_environment,
    inside_task,
)
from taskgraph_workers.config.selection import read_selection
from taskgraph_workers.detect import Detect, render
from taskgraph_workers.dispatch.images import fault_of, is_allowed, name_of, start_of
from taskgraph_workers.dispatch.message import shown_of
from taskgraph_workers.dispatch.model import Message, Placed, Refused
from taskgraph_workers.errors import (
    TOP,
    ConfigError,
    PlacementError,
    Problem,
    WorkersError,
    did_you_mean,
)
from taskgraph_workers.keyed import pick
from taskgraph_workers.model import Choice, Config, Context, Dispatch, Placement, Selection
from taskgraph_workers.resolve import choose, level_problem, resolve, task_env, unmet

UNKNOWN_SKU, NOT_ALLOWED, NO_PLACEMENT = "unknown-sku", "image-not-allowed", "no-placement"

_AT = (*TOP, "dispatch")


@dataclass(frozen=True)
class _Asked(Context):
    """A context that also knows what a message asks for, so that values can be keyed by it."""

    image: str = ""
    sku: str = ""


def choice_of(
    config: Config,
    profile: str | None = None,
    trust_domain: str = "",
    environ: Mapping[str, str] = os.environ,
) -> Choice:
    """What is chosen for every request: as for a graph without parameters (rule 3).

    ``profile`` is what ``--profile`` says (a profile, or YAML in braces) and beats
    ``TASKGRAPH_WORKERS_PROFILE``, which beats ``select.default``. Raises a WorkersError for what is
    wrong in any of these, for the variable inside a task, and for a profile that is not meant for
    the level of ``dispatch``: requests are acted upon, so that is never a mere look.
    """
    context = _context(_dispatch(config), trust_domain)
    choice = choose(_selections(config, profile, context, environ), context.kind)
    problem = level_problem(config, choice, context.level)
    if problem is not None:
        raise PlacementError(problem)
    return choice


def place(
    config: Config, message: Message, choice: Choice | None = None, trust_domain: str = ""
) -> Placed | Refused:
    """What runs for a request, and where, or why nothing can.

    ``choice`` is what :func:`choice_of` gave; it is asked if there is none. Raises a WorkersError
    only where that does. A message is never given anything else than what it asks for.
    """
    if choice is None:
        choice = choice_of(config, trust_domain=trust_domain)
    dispatch = _dispatch(config)
    unknown = _unknown(dispatch, message)
    if unknown is not None:
        return unknown
    context = _context(dispatch, trust_domain, message.image, message.sku)
    try:
        placement = resolve(config, dispatch.skus[message.sku], choice, context)
        return _placed(dispatch, message, placement, context)
    except WorkersError as error:
        reason = "; ".join(problem.text for problem in error.problems)
        return _refused(message, NO_PLACEMENT, reason)


def problems(config: Config, choice: Choice, trust_domain: str = "") -> list[Problem]:
    """What is wrong with placing any request at all: to be told before the first is taken.

    A mistake of the configuration must not turn down requests, one after the other.
    """
    try:
        dispatch = _dispatch(config)
    except ConfigError as error:
        return list(error.problems)
    found = list(nothing_allowed(dispatch))
    context = _context(dispatch, trust_domain)
    for worker in dict.fromkeys(dispatch.skus.values()):
        try:
            placement = resolve(config, worker, choice, context)
            found += unmet(placement, [*task_env(placement, {})[0], *dispatch.task.env])
        except WorkersError as error:
            found += error.problems
    return list(dict.fromkeys(found))


def nothing_allowed(dispatch: Dispatch) -> Iterator[Problem]:
    """A problem where no message at all could be accepted."""
    for name, kind in (("skus", "machine type"), ("images", "image")):
        if not getattr(dispatch, name):
            what = f"no {kind} is allowed, so every request is refused"
            yield Problem(what, dispatch.path, f"name some in {name}")


def _dispatch(config: Config) -> Dispatch:
    if config.dispatch is None:
        hint = "the least is skus and images; --config FILE, if they are in another file"
        raise ConfigError(Problem("workers-config says nothing of dispatch", TOP, hint))
    return config.dispatch


def _context(dispatch: Dispatch, trust_domain: str, image: str = "", sku: str = "") -> _Asked:
    return _Asked(
        level=dispatch.level,
        project=dispatch.project,
        kind=dispatch.kind,
        trust_domain=trust_domain,
        image=image,
        sku=sku,
    )


def _selections(
    config: Config, profile: str | None, context: Context, environ: Mapping[str, str]
) -> Iterator[Selection]:
    """What each source says, strongest first; a weaker one is looked at only if it decides."""
    if profile is not None:
        source = "--profile"
        yield read_selection(choice_in(profile, source), source, (source,), config)
    said = from_environment(environ)
    if said is not None:
        if inside_task(environ):
            what = f"{VARIABLE} is set inside a task, and is for local looks"
            raise ConfigError(Problem(what, hint="unset it, and give --profile"))
        yield read_selection(said, VARIABLE, (VARIABLE,), config)
    default, _ = pick(config.select.default, context, (*TOP, "select", "default"))
    if default is not None:
        yield default


def _unknown(dispatch: Dispatch, message: Message) -> Refused | None:
    """Why what a message asks for is not to be had here; None where it is."""
    image, skus = message.image, dispatch.skus
    if message.sku not in skus:
        hint = did_you_mean(message.sku, skus) or "none is"
        return _refused(message, UNKNOWN_SKU, f"this trainingVmSku is not known here; {hint}")
    name = name_of(image)
    if name is None:
        return _refused(
            message, NOT_ALLOWED, f"trainingImage is no name of an image{fault_of(image)}"
        )
    if is_allowed(image, dispatch.images):
        return None
    if is_allowed(name, dispatch.images):
        more = " with this tag or digest"
    else:
        # Of patterns no name follows, so only what is one is near.
        meant = did_you_mean(image, filter(name_of, dispatch.images), "")
        more = f"; {meant}" if meant else ""
    return _refused(message, NOT_ALLOWED, f"this trainingImage is not allowed here{more}")


def _refused(message: Message, code: str, reason: str) -> Refused:
    asked = shown_of(message.sku, message.image)
    return Refused(code, reason, message.digest, message.request_id, **asked)


def _placed(dispatch: Dispatch, message: Message, placement: Placement, context: _Asked) -> Placed:
    task = dispatch.task
    own = {name: _picked(value, context, "env", name) for name, value in task.env.items()}
    env, _ = task_env(placement, own)
    missing = unmet(placement, env)
    if missing:
        raise PlacementError(*missing)
    detected = {name: render(value) for name, value in env.items() if isinstance(value, Detect)}
    said = {name: str(value) for name, value in env.items() if name not in detected}
    told = _contract(message)
    return Placed(
        request_id=message.request_id,
        image=message.image,
        sku=message.sku,
        worker=placement.asked,
        pool=placement.pool,
        env={**said, **told},
        detect={name: value for name, value in detected.items() if name not in told},
        resources={name: value.value for name, value in placement.resources.items() if value.value},
        max_run_time_s=_max_run_time(dispatch, placement, context),
        retries=_picked(task.retries, context, "retries") or 0,
        scopes=tuple(_picked(task.scopes, context, "scopes") or ()),
        profile=placement.choice.profile,
        start=start_of(dispatch, message.image),
    )


def _contract(message: Message) -> dict[str, str]:
    """What every trainer is told; nothing of the configuration can say otherwise."""
    return {
        "TRAINING_REQUEST_ID": message.request_id,
        "TRAINING_IMAGE": message.image,
        "TRAINING_IMAGES_CONTAINER": message.images_container,
        "TRAINING_BASE_MODEL_BLOB_ID": message.base_model or "",
    }


def _max_run_time(dispatch: Dispatch, placement: Placement, context: _Asked) -> int | None:
    """The task's, and over it what placement says of ``worker``, as for tasks of a graph."""
    laid = placement.worker.get("max-run-time")
    if laid is None:
        seconds: int | None = _picked(dispatch.task.max_run_time_s, context, "max-run-time")
        return seconds
    if laid.value is None:
        return None
    if isinstance(laid.value, int) and laid.value > 0:
        return laid.value
    raise PlacementError(Problem("max-run-time must be a number of seconds", laid.path))


def _picked(value: Any, context: _Asked, *key: str) -> Any:
    """The branch of a value of ``dispatch.task`` that this image and this SKU get."""
    return pick(value, context, (*_AT, "task", *key))[0]
