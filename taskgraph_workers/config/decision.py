"""``workers-config.decision``: what decision tasks write down, and the action they offer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taskgraph_workers.config.faults import Fault
from taskgraph_workers.config.forms import Either, Shape, about, formed, takes
from taskgraph_workers.config.shapes import a_name, count, section, some_levels
from taskgraph_workers.errors import said
from taskgraph_workers.model import Action, Decision


def decision() -> Shape:
    """The shape of ``decision``."""
    read = section(
        {
            "plan": about("Whether the plan against the default is written down.", _yes_or_no),
            "action": about(
                "The action that runs tasks on other workers; false for none.",
                formed(_action, lambda: Either((_on_or_off, _offered()))),
            ),
        }
    )
    return formed(lambda raw: Decision(**read(raw)), Either((read,)))


@takes(type="boolean")
def _yes_or_no(raw: Any) -> bool:
    if not isinstance(raw, bool):
        raise Fault(f"must be true or false, not {said(raw)}")
    return raw


def _action(raw: Any) -> Action | None:
    if raw is None or raw is True:
        return Action()
    if raw is False:
        return None
    if not isinstance(raw, Mapping):
        raise Fault(f"must be false, or a mapping, not {said(raw)}")
    return Action(**_offered()(raw))


@takes(type=["boolean", "null"])
def _on_or_off(raw: Any) -> Any:
    return raw


def _offered() -> Shape:
    return section(
        {
            "permission": about("What Taskcluster's scope for the action is called.", _permission),
            "levels": about("The levels at which it is offered.", _levels),
            "order": about("Where it stands among other actions.", count(0)),
        }
    )


@takes(type="string", pattern=r"^[^/\s]([^/\n]*[^/\s])?$")
def _permission(raw: Any) -> str:
    value = a_name(raw)
    if "/" in value:  # Taskgraph refuses it later, without a place (taskgraph.actions.registry)
        raise Fault(f"{value!r} holds a slash, which no permission may", "use a dash")
    return value


_levels = some_levels("names no level", "write `action: false` for no action")
