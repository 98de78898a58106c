"""What a person who starts the action says, and the choice that it makes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from taskgraph_workers.config.selection import is_whole
from taskgraph_workers.errors import Problem, WorkersError, did_you_mean
from taskgraph_workers.graph.parameters import PARAMETER


@dataclass(frozen=True)
class Request:
    """A profile, for some kinds or (none) for all; overrides; tasks that depend on these, too."""

    profile: str
    kinds: tuple[str, ...] = ()
    workers: Mapping[str, Any] = field(default_factory=dict)
    downstream: bool = False

    @classmethod
    def read(cls, said: Any) -> Request:
        """Out of an action's input, which nobody has validated. Raises WorkersError."""
        problems = list(_problems(said))
        if problems:
            raise WorkersError(*problems)
        return cls(
            said["profile"],
            tuple(said.get("kinds") or ()),
            said.get("workers") or {},
            said.get("downstream") or False,
        )

    def choice(self, parameters: Mapping[str, Any]) -> Any:
        """The parameter ``workers`` for it.

        For some kinds only it builds on what the parameter says, and all else that says something
        goes on saying it for the other kinds.
        """
        profile, workers = _parts(parameters.get(PARAMETER) if self.kinds else None)
        if self.kinds:
            by_kind = profile if isinstance(profile, Mapping) else {"default": profile}
            said = {kind: each for kind, each in by_kind.items() if each is not None}
            profile = {**said, **dict.fromkeys(self.kinds, self.profile)}
        else:
            profile = self.profile
        workers = {**workers, **self.workers}
        return {"profile": profile, "workers": workers} if workers else profile


def _parts(choice: Any) -> tuple[Any, Mapping[str, Any]]:
    """The profiles of a choice, and its overrides."""
    if is_whole(choice):
        return choice.get("profile"), choice.get("workers") or {}
    return choice, {}


_SHAPES: Mapping[str, tuple[str, Any]] = {
    "profile": ("must be the name of a profile", lambda raw: isinstance(raw, str)),
    "kinds": (
        "must be a list of kinds",
        lambda raw: isinstance(raw, list) and all(isinstance(each, str) for each in raw),
    ),
    "workers": ("must be a mapping by worker name", lambda raw: isinstance(raw, Mapping)),
    "downstream": ("must be true or false", lambda raw: isinstance(raw, bool)),
}


def _problems(said: Any) -> Iterator[Problem]:
    if not isinstance(said, Mapping):
        yield Problem("the action's input must be a mapping", hint="for instance {profile: onprem}")
        return
    for key, value in said.items():
        if key not in _SHAPES:
            yield Problem("unknown key in the action's input", (key,), did_you_mean(key, _SHAPES))
        elif value is not None and not _SHAPES[key][1](value):
            yield Problem(_SHAPES[key][0], (key,))
    if said.get("profile") is None:
        yield Problem("the action's input names no profile")
