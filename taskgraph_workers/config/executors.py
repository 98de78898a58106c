"""``workers-config.dispatch.executors``: a site's own commands, and what their words may hold."""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter
from typing import Any

from taskgraph_workers.config.faults import Fault, stop_at
from taskgraph_workers.config.forms import Either, Shape, about, formed, takes
from taskgraph_workers.config.shapes import NAME, a_name, duration, line, section, some_of, table
from taskgraph_workers.errors import TOP
from taskgraph_workers.model import LOCAL, Commands

#: What words of every command may hold: what names a job, and says which one it is.
_NAMES = ("key", "handle")
#: What words of ``submit`` may hold: names of the configuration, and an image that is allowed.
#: Nothing else of a message ever stands in an argv: its values come as env.
_OF_JOB = ("key", "image", "worker", "pool", "sku", "max-run-time", "env-file")
#: The placeholders of each command.
PLACEHOLDERS = {
    "submit": _OF_JOB,
    "find": ("key",),
    "poll": ("key",),
    "cancel": _NAMES,
    "release": _NAMES,
}

_ABOUT = {
    "submit": "Starts a job.",
    "find": "Prints what a key's job is called there, or nothing where there surely is none.",
    "poll": "Prints how a job is: a word, or a JSON object.",
    "cancel": "Asks for a job to end.",
    "release": "Lets go of what a job held, such as its machine, once its end is recorded.",
}


def executors() -> Shape:
    """The shape of ``executors``: :class:`Commands` by name."""
    whole = section(
        {
            **{
                name: about(_ABOUT[name], _command(allowed))
                for name, allowed in PLACEHOLDERS.items()
            },
            "timeout": about(
                "How long each command may take, such as 2m; 60 s unless said.", duration
            ),
        },
        needs=("submit", "find", "poll", "cancel"),
    )
    all_of_them = table(whole, _name)

    def read(raw: Any) -> dict[str, Commands]:
        return {name: _commands(name, value) for name, value in all_of_them(raw).items()}

    return formed(read, Either((all_of_them,)))


def _commands(name: str, value: Mapping[str, Any]) -> Commands:
    rest = {key: words for key, words in value.items() if key != "timeout"}
    path = (*TOP, "dispatch", "executors", name)
    return Commands(name, path, timeout_s=value.get("timeout", Commands.timeout_s), **rest)


@takes(type="string", pattern=NAME, **{"not": {"const": LOCAL}})
def _name(raw: Any) -> str:
    name = a_name(raw)
    if name == LOCAL:
        raise Fault(f"{LOCAL!r} is this machine, and can't be another", "choose another name")
    return name


def _command(allowed: tuple[str, ...]) -> Shape:
    """A shape: words, at least one of which names the job."""
    filled = "|".join(rf"\{{{name}\}}" for name in allowed)

    @takes(type="string", pattern=rf"^([^{{}}\n]|\{{\{{|\}}\}}|{filled})*$")
    def word(raw: Any) -> str:
        value = "" if raw == "" else line(raw)  # clients take an empty word for "none"
        placeholders(value, allowed)
        return value

    words = some_of(word, "must be a command with its arguments, not an empty list")

    def read(raw: Any) -> tuple[str, ...]:
        value: tuple[str, ...] = words(raw)
        if "{" in value[0] or not value[0]:
            stop_at([Fault("the program itself must be written out", at=[0])])
        if not any(set(placeholders(each, allowed)) & set(_NAMES) for each in value):
            hint = "two jobs must never be taken for one; put {key} into a word"
            raise Fault("no word of it says which job is meant", hint)
        return value

    return formed(read, Either((words,)))


def placeholders(word: str, allowed: tuple[str, ...]) -> list[str]:
    """The placeholders of a word. Raises a Fault where one is none of those that are allowed."""
    literally = "a brace that is meant literally is written twice: {{ and }}"
    try:
        parts = [part[1:] for part in Formatter().parse(word) if part[1] is not None]
    except ValueError:
        raise Fault(f"{word!r} has a brace that can't be filled in", literally) from None
    for name, spec, conversion in parts:
        if name not in allowed or spec or conversion:
            shown = "".join(
                [name or "", f"!{conversion}" * bool(conversion), f":{spec}" * bool(spec)]
            )
            there = ", ".join(f"{{{each}}}" for each in allowed)
            hint = f"there is: {there}; {literally}"
            raise Fault(f"nothing fills in {{{shown}}} here", hint)
    return [name or "" for name, _, _ in parts]
