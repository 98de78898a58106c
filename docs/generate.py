"""Writes those parts of the reference that the code itself can tell.

``python docs/generate.py`` brings them up to date, in docs/reference; a test says when they are
not. They stand between ``<!-- generated: WHAT -->`` and ``<!-- end -->``: the keys of
``workers-config`` from the shapes that read it, commands and options from the parser.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Callable

from taskgraph_workers.cli import make_parser
from taskgraph_workers.cli.options import QUIET
from taskgraph_workers.config import forms, shapes
from taskgraph_workers.config.names import Known
from taskgraph_workers.config.schema import shape
from taskgraph_workers.model import ENV_NAME, KEYED_BY

FOLDER = Path(__file__).resolve().parent / "reference"
_PART = re.compile(r"(<!-- generated: (\w+)(?: (\S+))? -->\n).*?(?=<!-- end -->)", re.DOTALL)

#: How a value is called whose JSON Schema has such a pattern.
_PATTERNS = {
    shapes._SIZE: "size (`16GiB`)",
    shapes._DURATION: "duration (`90m`)",
    f"^{ENV_NAME.pattern}$": "name of a variable",
}
_TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "`true` or `false`",
    "null": "`null`",
}
#: Stands after a value that may be keyed by whatever there is.
KEYED = "\N{NO-BREAK SPACE}†"


def generated(page: str) -> str:
    """A page with its generated parts as they ought to be."""
    return _PART.sub(lambda part: f"{part[1]}\n{_MAKERS[part[2]](part[3] or '')}\n", page)


# --- keys -----------------------------------------------------------------------------------


def keys(path: str) -> str:
    """The keys of a part of ``workers-config``; in the path, a word in capitals is any name."""
    form = forms.form_of(shape(Known()))
    for step in filter(None, path.split(".")):
        form = _below(form, step)
    section = _first(form, forms.Section)
    assert isinstance(section, forms.Section), f"{path} has no keys"
    rows = [
        (f"`{key}`" + (", needed" if key in section.needs else ""), _value(each), _about(each))
        for key, each in section.shapes.items()
    ]
    return table(("key", "value", "what it is for"), rows)


def _below(form: Any, step: str) -> Any:
    if step.isupper():
        return forms.form_of(_first(form, forms.Table).shape)
    return forms.form_of(_first(form, forms.Section).shapes[step])


def _first(form: Any, kind: type) -> Any:
    """The first form of a kind among what a form is made of, on the same level."""
    if isinstance(form, kind):
        return form
    for each in _inside(form):
        found = _first(each, kind)
        if found is not None:
            return found
    return None


def _inside(form: Any) -> Iterator[Any]:
    if isinstance(form, (forms.About, forms.Keyed, forms.Items)):
        yield forms.form_of(form.shape)
    elif isinstance(form, forms.Either):
        for each in form.shapes:
            yield each if isinstance(each, forms.Table) else forms.form_of(each)


def _about(each: forms.Shape) -> str:
    form = forms.form_of(each)
    return form.text if isinstance(form, forms.About) else ""


def _value(each: forms.Shape) -> str:
    return _told(forms.form_of(each))


def _told(form: Any) -> str:
    """What a value looks like, in words."""
    if isinstance(form, forms.About):
        return _value(form.shape)
    if isinstance(form, forms.Keyed):
        mark = KEYED if set(form.by) == set(KEYED_BY) else f"; keyed by {', '.join(form.by)}"
        inner = _value(form.shape)
        return inner if inner.endswith(mark) else inner + mark
    if isinstance(form, forms.Items):
        return f"list of {_value(form.shape)}"
    if isinstance(form, forms.Table):
        return _mapping(_value(form.key), _value(form.shape))
    if isinstance(form, forms.Section):
        return "mapping"
    if isinstance(form, forms.Whatever):
        return "any value" + KEYED
    if isinstance(form, forms.Either):
        return _or(_told(each) for each in _inside(form))
    return _json(form.schema)


def _mapping(key: str, value: str) -> str:
    by = f"mapping by {'name' if key == 'text' else key}"
    return (
        by + value[len("mapping") :]
        if value in ("mapping", "mapping" + KEYED)
        else f"{by}: {value}"
    )


def _json(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return _or(f"`{value}`" for value in dict.fromkeys(map(str, schema["enum"])))
    if "properties" in schema:
        return "`{detect: ...}`"
    if "anyOf" in schema and all("type" in each or "enum" in each for each in schema["anyOf"]):
        return _or(map(_json, schema["anyOf"]))
    if schema.get("format") == "regex":
        return "name or pattern"
    types = schema.get("type", "string")
    known = _PATTERNS.get(schema.get("pattern", ""))
    return known or _or(_TYPES[each] for each in ([types] if isinstance(types, str) else types))


def _or(parts: Iterable[str]) -> str:
    return " or ".join(sorted(dict.fromkeys(parts), key="`null`".__eq__))


# --- commands -------------------------------------------------------------------------------


def command(name: str) -> str:
    """The arguments and options of a command, its examples, and the commands inside of it."""
    parser = _commands()[name]
    verbs = getattr(parser, "verbs", {})
    inside = [f"### `{name} {verb}`\n\n{_page(each)}" for verb, each in verbs.items()]
    return "\n".join([_page(parser), *inside])


def _page(parser: argparse.ArgumentParser) -> str:
    _, _, example = (parser.epilog or "").partition("example:\n")
    lines = "\n".join(line.strip() for line in example.splitlines())
    notes = [f"{group.description}\n" for group in parser._action_groups if group.description]
    parts = [f"{parser.description}\n", _options(parser, _is_its_own), *notes]
    return "\n".join([*parts, f"```text\n{lines}\n```\n"])


def output(_: str) -> str:
    """The options that every command takes."""
    each = _commands().values()
    return _options(next(iter(each)), lambda action: not _is_its_own(action))


def _is_its_own(action: argparse.Action) -> bool:
    if action.help == argparse.SUPPRESS:
        return False
    if "--quiet" in action.option_strings:
        return action.help != QUIET
    return not {"--verbose", "--color", "--help"} & set(action.option_strings)


def _options(parser: argparse.ArgumentParser, wanted: Callable[[argparse.Action], bool]) -> str:
    helper = parser._get_formatter()
    actions = [action for action in parser._actions if wanted(action)]
    rows = [(_spelled(each), helper._expand_help(each) if each.help else "") for each in actions]
    return table(("option", "what it does"), rows) if rows else ""


def commands(_: str) -> str:
    """All commands, in the order of the help."""
    return "\n".join(f"## `{name}`\n\n{command(name)}" for name in _commands())


def _commands() -> Mapping[str, argparse.ArgumentParser]:
    for action in make_parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    raise AssertionError("the command has no commands")


def _spelled(action: argparse.Action) -> str:
    words = list(action.option_strings) or [str(action.metavar)]
    if action.option_strings and action.nargs != 0:
        value = action.metavar or "|".join(map(str, action.choices or ()))
        words = [f"{word} {value}" for word in words]
    return ", ".join(f"`{word}`" for word in words)


# --- tables ---------------------------------------------------------------------------------


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    whole = [tuple(head), *map(tuple, rows)]
    whole.insert(1, ("---",) * len(whole[0]))
    return "".join(f"| {' | '.join(map(_cell, row))} |\n" for row in whole)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


_MAKERS = {"keys": keys, "commands": commands, "output": output}


def main() -> int:
    """Bring every page up to date."""
    for page in sorted(FOLDER.glob("*.md")):
        page.write_text(generated(page.read_text("utf-8")), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
