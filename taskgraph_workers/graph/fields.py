"""Which fields of a task's ``worker`` an implementation knows (rule 5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from taskgraph_workers.errors import FOREIGN, Problem, did_you_mean
from taskgraph_workers.keyed import refused
from taskgraph_workers.model import Placement


def check_implementation(placement: Placement) -> None:
    """Raise PlacementError where ``workers-config`` names an implementation that nobody builds for.

    What an alias names is Taskgraph's to report.
    """
    from taskgraph.transforms.task import payload_builders

    said = placement.fields["implementation"]
    if said.path[:1] == ("workers-config",) and said.value not in payload_builders:
        raise refused(
            f"there is no worker implementation {said.value!r} on which to place "
            f"{placement.asked!r}",
            said.path,
            did_you_mean(str(said.value), payload_builders),
        )


def known_fields(implementation: str) -> frozenset[str] | None:
    """The fields that the installed Taskgraph's payload builder takes; None if it can't be told.

    Its schemas are msgspec ones since 19.1.0; a project's own may be voluptuous in any version.
    """
    from taskgraph.transforms.task import payload_builders

    builder = payload_builders.get(implementation)
    schema = getattr(builder, "schema", None)
    fields: Any = getattr(schema, "__struct_encode_fields__", None)
    if fields is None:
        fields = getattr(schema, "schema", None)
    if not isinstance(fields, (tuple, Mapping)):
        return None
    return frozenset(map(str, fields)) | {"implementation", "os"}


def foreign_fields(
    placement: Placement, worker: Mapping[str, Any], known: frozenset[str]
) -> list[Problem]:
    """A problem for each field that the target does not know and no profile takes away.

    A swap converts nothing, and Taskgraph drops such a field, a docker image for one, silently.
    """
    laid = {name: value.value for name, value in placement.worker.items()}
    left = {name: value for name, value in {**worker, **laid}.items() if value is not None}
    return [
        _misplaced(placement, name, known)
        if laid.get(name) is not None
        else _foreign(placement, name)
        for name in _sorted(set(left) - known)
    ]


def _sorted(names: Iterable[str]) -> list[str]:
    return sorted(map(str, names))


def _foreign(placement: Placement, field: str) -> Problem:
    profile = placement.choice.profile
    return Problem(
        f"{placement.implementation} knows no worker field {field!r}, and "
        f"{f'profile {profile!r}' if profile else placement.fields['implementation'].source} "
        f"places {placement.asked!r} on {placement.pool}",
        placement.fields["implementation"].path,
        f"take the field away and give what replaces it: worker: {{{field}: null, ...}}",
        code=FOREIGN,
        names=(field,),
    )


def _misplaced(placement: Placement, field: str, known: frozenset[str]) -> Problem:
    """A field that the configuration itself lays on: whoever wrote it there has to mend it."""
    said = placement.worker[field]
    return Problem(
        f"{placement.implementation} knows no worker field {field!r}, which {said.source} gives "
        f"{placement.asked!r} on {placement.pool}",
        said.path,
        did_you_mean(field, known - {"implementation", "os"}),
    )
