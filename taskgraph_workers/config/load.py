"""From a parsed config.yml to a :class:`Config`, or to every fault in it."""

from __future__ import annotations

import marshal
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Optional, TypeVar, Union

import voluptuous as vol

from taskgraph_workers.config import checks
from taskgraph_workers.config.document import (
    Document,
    Unreadable,
    content_of,
    document,
    parse,
    too_deep,
)
from taskgraph_workers.config.locate import Source, Trace, duplicates
from taskgraph_workers.config.schema import TOP, build, known_in, read, read_aliases
from taskgraph_workers.config.shapes import Fault, path_of, problem_of
from taskgraph_workers.errors import ConfigError, Problem, WorkersError, did_you_mean
from taskgraph_workers.model import Config

Root = Union[str, "os.PathLike[str]"]
E = TypeVar("E", Problem, WorkersError)

#: As many configurations are kept as one process may see: several checkouts, base and head.
_MOST_KEPT = 16


@dataclass(frozen=True)
class _Kept:
    """A configuration, and the files it was read from: their bytes, None where there is none."""

    files: tuple[tuple[str, bytes | None], ...]
    config: Config


#: Read configurations by content, so that no graph can see another's.
_kept: dict[tuple[bytes, str], _Kept] = {}


def load(data: Mapping[str, Any], root: Root | None = None) -> Config:
    """The configuration in a parsed config.yml; ``root`` is the folder that config.yml is in.

    Raises :class:`ConfigError` with every problem, errors first, if one is an error. Cheap when
    nothing has changed: it is kept by content, and every file is read again to compare.
    """
    folder = "" if root is None else os.path.abspath(root)
    key = (_content(data), folder)
    kept = _kept.get(key)
    if kept is not None and all(content_of(file) == was for file, was in kept.files):
        return kept.config
    config, problems, files = _check(data, folder or None, None, "config.yml")
    if config is None:
        raise ConfigError(*sorted(problems, key=lambda problem: problem.severity != "error"))
    while len(_kept) >= _MOST_KEPT:
        _kept.pop(next(iter(_kept)), None)
    _kept[key] = _Kept(tuple(files.items()), config)
    return config


def check(
    data: Mapping[str, Any],
    root: Root | None = None,
    kinds: Iterable[str] | None = None,
    file: str = "config.yml",
) -> tuple[Config | None, list[Problem]]:
    """The configuration in a parsed config.yml, None if it has errors, and all its problems.

    ``kinds`` are the project's kinds; without them no kind is looked up. ``file`` is the name of
    config.yml in ``root``.
    """
    folder = None if root is None else os.path.abspath(root)
    config, problems, _ = _check(data, folder, kinds, file)
    return config, problems


def load_file(path: Root) -> Config:
    """The configuration in a file of its own, with ``workers-config`` as a top-level key.

    ``workers.aliases`` may stand in it too. Raises :class:`ConfigError` with every problem.
    """
    name = os.path.abspath(path)
    source = Source(name, content_of(name))
    if source.content is None:
        raise ConfigError(Problem("there is no such file that can be read", file=source.shown))
    try:
        data = parse(source)
    except Unreadable as error:
        raise ConfigError(error.problem) from None
    if "workers-config" not in data:
        hint = did_you_mean("workers-config", data) if data else ""
        raise ConfigError(
            Problem("the file has no key workers-config", hint=hint).at(source.shown, 1, 1)
        )
    config, problems = check(data, os.path.dirname(name), None, os.path.basename(name))
    if config is None:
        raise ConfigError(*sorted(problems, key=lambda problem: problem.severity != "error"))
    return config


def located(raised: E, config: Config) -> E:
    """A problem, or an error with problems, that says file, line and column where it can."""
    if isinstance(raised, WorkersError):
        problems = config.trace.locate(raised.problems) if config.trace else raised.problems
        return type(raised)(*problems)
    return config.trace.locate([raised])[0] if config.trace else raised


def _content(data: Mapping[str, Any]) -> bytes:
    """All of config.yml that matters here, as bytes."""
    said = (data.get("workers-config"), _aliases(data))
    try:
        # Version 2 has no references, so that equal values give equal bytes.
        return marshal.dumps(said, 2)
    except ValueError:
        return repr(said).encode("utf-8", "backslashreplace")


def _aliases(data: Mapping[str, Any]) -> Any:
    workers = data.get("workers")
    return workers.get("aliases") if isinstance(workers, Mapping) else None


Found = tuple[Optional[Config], list[Problem], dict[str, Optional[bytes]]]


def _check(
    data: Mapping[str, Any], folder: str | None, kinds: Iterable[str] | None, file: str
) -> Found:
    source, folders = _top(folder, file)
    trace = Trace((source,))
    raw = data.get("workers-config")
    if raw is None or raw == {}:
        return Config(aliases=read_aliases(_aliases(data)), trace=trace), [], {}
    if not isinstance(raw, Mapping) or too_deep(raw):
        what = "nests too deep" if isinstance(raw, Mapping) else "must be a mapping"
        return None, trace.locate([Problem(what, TOP)]), {}
    whole = document(raw, source, folders)
    if folder is not None:
        whole.read[source.file] = source.content
    problems = _in_text(source, data) + whole.problems
    config, found = _read(whole, data, kinds)
    problems += found
    problems.sort(key=lambda each: _order(each, whole.trace))
    problems = list(dict.fromkeys(problems))
    errors = any(problem.severity == "error" for problem in problems)
    return None if errors else config, problems, whole.read


def _read(
    whole: Document, data: Mapping[str, Any], kinds: Iterable[str] | None
) -> tuple[Config, list[Problem]]:
    known = known_in(whole.value, _aliases(data), kinds)
    value, faults = read(known, whole.value)
    if whole.incomplete:
        faults = [each for each in faults if not (isinstance(each, Fault) and each.lookup)]
    config = build(value, _aliases(data), whole.trace)
    problems = _problems(faults, whole.trace)
    if not whole.incomplete:
        problems += whole.trace.locate(
            checks.problems(config, known, [(*TOP, *path_of(each)) for each in faults])
        )
    return config, problems


def _problems(faults: Iterable[vol.Invalid], trace: Trace) -> list[Problem]:
    nodes: dict[int, Any] = {}
    found = []
    for fault in faults:
        place, source = trace.place((*TOP, *path_of(fault)), nodes)
        problem = replace(problem_of(fault, TOP, place.written), path=place.path)
        found.append(problem.at(source.shown, place.line, place.column))
    return found


def _top(folder: str | None, file: str) -> tuple[Source, tuple[str, ...]]:
    """The source that config.yml is, and the folders where its includes are looked for."""
    if folder is None:
        return Source(file), (os.curdir,)
    name = os.path.join(folder, file)
    real = os.path.dirname(os.path.realpath(name))
    return Source(name, content_of(name)), tuple(dict.fromkeys((folder, real)))


def _in_text(source: Source, data: Mapping[str, Any]) -> list[Problem]:
    """Duplicate keys, which the parsed mapping can't show."""
    node = source.compose()
    found = []
    for _path, problem in duplicates(node):
        at = problem.path
        if at[:1] == TOP or at[:2] == ("workers", "aliases") or at == ("workers",):
            found.append(problem.at(source.shown, problem.line, problem.column))
    return found


def _order(problem: Problem, trace: Trace) -> tuple[int, int, int]:
    files = [source.shown for source in trace.sources]
    index = files.index(problem.file) if problem.file in files else len(files)
    return index, problem.line, problem.column
