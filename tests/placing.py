"""Configurations for tests of placement, written as in config.yml and made without YAML."""

from __future__ import annotations

from typing import Any

from taskgraph_workers.model import ALIAS_FIELDS, Change, Config, Keyed, Layer, Profile, Value


def change(said: Any, *path: str) -> Any:
    """Make of an entry what `config/` makes of it: a name, a pool, changes, or nothing."""
    if isinstance(said, Keyed):
        return Keyed(said.by, {key: change(value, *path) for key, value in said.choices.items()})
    if isinstance(said, str) and "/" in said:
        said = dict(zip(("provisioner", "worker-type"), said.split("/")))
    elif isinstance(said, str):
        said = {"to": said}
    if said is None:
        return None
    fields = {name: said[name] for name in ALIAS_FIELDS if name in said}
    parts = {name: said[name] for name in ("to", "env", "resources", "worker") if name in said}
    return Change(path, fields=fields, **parts)


def layer(source: str, said: dict[str, Any] | None, *path: str) -> Layer:
    return Layer(source, {name: change(each, *path, name) for name, each in (said or {}).items()})


def profile(name: str, said: dict[str, Any] | None, **more: Any) -> Profile:
    path = ("profiles", name)
    return Profile(name, path, layer(f"profile {name}", said, *path, "workers"), **more)


def config(aliases, workers=None, child=None, parent=None, **more: Any) -> Config:
    """Make a configuration of entries by name; its profile `child` extends `parent`."""
    return Config(
        aliases={name: change(said, "workers", "aliases", name) for name, said in aliases.items()},
        workers=layer("workers", workers, "workers-config", "workers"),
        profiles={
            "child": profile("child", child, extends="parent"),
            "parent": profile("parent", parent),
        },
        **more,
    )


def plain(values: dict[str, Value]) -> dict[str, Any]:
    return {name: value.value for name, value in values.items()}


def story(value: Value | None) -> list[Any]:
    """A value and all that it overrode, strongest first."""
    told = []
    while value is not None:
        told.append(value.value)
        value = value.overrode
    return told
