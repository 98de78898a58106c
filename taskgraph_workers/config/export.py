"""The JSON Schema of ``workers-config``, made from the shapes that read it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from taskgraph_workers.config.forms import (
    About,
    Either,
    Form,
    Items,
    Json,
    Keyed,
    Section,
    Shape,
    Table,
    Whatever,
    form_of,
)
from taskgraph_workers.config.names import Known
from taskgraph_workers.config.schema import shape
from taskgraph_workers.config.shapes import NAME


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft-07) of a config.yml: strict below ``workers-config``, open elsewhere.

    It is made from the shapes that read the configuration. Names (aliases, profiles, kinds) are
    whatever is written, since which there are no schema knows.
    """
    maker = _Schema()
    below = maker.of(shape(Known()), ("workers-config",))
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "config.yml with workers-config",
        "description": "The key of taskgraph-workers in a Taskgraph project's config.yml.",
        "type": "object",
        "properties": {
            "workers-config": {"description": "Where tasks run, said once.", **below},
        },
        "definitions": dict(sorted(maker.definitions.items())),
    }


class _Schema:
    """One JSON Schema in the making. What is keyed is a definition, since its branches are, too."""

    def __init__(self) -> None:
        self.definitions: dict[str, Any] = {}
        self.known: dict[str, str] = {}

    def of(self, each: Shape, path: tuple[str, ...]) -> dict[str, Any]:
        """The schema of a shape; ``path`` names where it stands."""
        return self._of(form_of(each), path)

    def _of(self, form: Form, path: tuple[str, ...]) -> dict[str, Any]:
        if isinstance(form, Json):
            return dict(form.schema)
        if isinstance(form, About):
            return {"description": form.text, **_beside(self.of(form.shape, path))}
        if isinstance(form, Items):
            items = {"type": "array", "items": self.of(form.shape, path)}
            return {**items, "minItems": form.least} if form.least else items
        if isinstance(form, Either):
            return self._either(form, path)
        if isinstance(form, Section):
            return self._section(form, path)
        if isinstance(form, Table):
            return self._table(form, path)
        return self._keyed(form, path)

    def _either(self, form: Either, path: tuple[str, ...]) -> dict[str, Any]:
        every = [
            self._of(each if isinstance(each, Table) else form_of(each), path)
            for each in form.shapes
        ]
        if len(every) == 1:
            return every[0]
        others = [each for each in every if each != {"type": "null"}]
        if len(others) == 1 < len(every) and "type" in others[0]:
            types = others[0]["type"]
            types = [types] if isinstance(types, str) else types
            return {**others[0], "type": [*(each for each in types if each != "null"), "null"]}
        return {"anyOf": every}

    def _section(self, form: Section, path: tuple[str, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {
            "type": "object" if form.needs else ["object", "null"],
            "properties": {key: self.of(each, (*path, key)) for key, each in form.shapes.items()},
            "additionalProperties": False,
        }
        return {**found, "required": list(form.needs)} if form.needs else found

    def _table(self, form: Table, path: tuple[str, ...]) -> dict[str, Any]:
        names = self.of(form.key, (*path, "NAME"))
        names.pop("type", None)
        if form.never:
            names["not"] = {"enum": list(form.never)}
        return {
            "type": ["object", "null"],
            "propertyNames": names,
            "additionalProperties": self.of(form.shape, (*path, "NAME")),
        }

    def _keyed(self, form: Keyed | Whatever, path: tuple[str, ...]) -> dict[str, Any]:
        """A reference to the definition of a keyed value: its plain form, or its branches."""
        name = ".".join(path[1:])
        me = {"$ref": f"#/definitions/{name}"}
        if isinstance(form, Keyed):
            plain = [_not_keyed(self.of(form.shape, path))]
        else:
            plain = [
                {"type": ["string", "number", "boolean", "null"]},
                {"type": "array", "items": me},
                _not_keyed(
                    {"type": "object", "propertyNames": {}, "additionalProperties": me},
                ),
            ]
        schema = {"anyOf": [*plain, _branches(form.by, me)]}
        # What is said alike in two places is one definition.
        key = json.dumps(schema).replace(f'"{me["$ref"]}"', '""')
        first = self.known.setdefault(key, name)
        self.definitions.setdefault(first, schema)
        return {"$ref": f"#/definitions/{first}"}


def _not_keyed(schema: dict[str, Any]) -> dict[str, Any]:
    """The plain form of a keyed value: no key of its own may begin with ``by-``."""
    if "anyOf" in schema:
        return {**schema, "anyOf": [_not_keyed(each) for each in schema["anyOf"]]}
    if "propertyNames" not in schema:
        return schema
    names = {**schema["propertyNames"]}
    never = [key for key in names.pop("not", {}).get("enum", ()) if not key.startswith("by-")]
    by = {"pattern": "^by-"}
    names["not"] = {"anyOf": [by, {"enum": never}]} if never else by
    return {**schema, "propertyNames": names}


def _branches(by: Sequence[str], each: Mapping[str, Any]) -> dict[str, Any]:
    """A value that differs: by one thing only, and in more than its default."""
    branches = {
        "type": "object",
        "minProperties": 1,
        "propertyNames": {"pattern": NAME, "format": "regex"},
        "additionalProperties": each,
        "not": {"required": ["default"], "maxProperties": 1},
    }
    return {
        "type": "object",
        "properties": {f"by-{name}": branches for name in by},
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }


def _beside(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that other keys can stand beside: in draft-07 nothing beside a $ref counts."""
    return {"allOf": [schema]} if "$ref" in schema else schema
