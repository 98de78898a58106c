"""From a parsed config.yml to a :class:`Config`, or to every fault in it."""

from __future__ import annotations

import difflib
import marshal
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Optional, TypeVar, Union

from taskgraph_workers.config import checks
from taskgraph_workers.config.document import Document, Unreadable, document, parse, parse_file
from taskgraph_workers.config.faults import Fault, path_of, problem_of
from taskgraph_workers.config.locate import Source, Trace, find, oddities
from taskgraph_workers.config.schema import alias_faults, build, known_in, read, read_aliases
from taskgraph_workers.config.tables import translated
from taskgraph_workers.config.unread import TOO_DEEP, content_of, too_deep
from taskgraph_workers.errors import (
    ALIASES,
    LEFT_OUT,
    MISSPELLED,
    TOP,
    UNSET,
    ConfigError,
    Path,
    Problem,
    WorkersError,
    listed,
    said,
)
from taskgraph_workers.model import Config

Root = Union[str, "os.PathLike[str]"]
E = TypeVar("E", bound=Union[Problem, WorkersError])

#: What warnings miss, by their code: a name that matches, an entry, a value of env.
_MISSED = ("", LEFT_OUT, UNSET)

#: From here on a top key is taken for ours, misspelled. Below are keys of others: ``workers`` of
#: Taskgraph, ``worker-configuration`` of the tables that ``adopt`` reads.
_NEAR = 0.78

#: As many configurations are kept as one process may see: several checkouts, base and head.
_MOST_KEPT = 16


@dataclass(frozen=True)
class _Kept:
    """A configuration, and the files it was read from: their bytes, None where there is none."""

    files: tuple[tuple[str, bytes | None], ...]
    config: Config


#: Read configurations by content, so that no graph can see another's.
_kept: dict[tuple[bytes, str, frozenset[str] | None], _Kept] = {}


def load(
    data: Mapping[str, Any], root: Root | None = None, kinds: Iterable[str] | None = None
) -> Config:
    """The configuration in a parsed config.yml; ``root`` is the folder that config.yml is in.

    ``kinds`` are the project's kinds; without them no kind is looked up. Raises
    :class:`ConfigError` with every problem, errors first, if one is an error. Cheap when
    nothing has changed: it is kept by content, and every file is read again to compare.
    """
    folder = "" if root is None else os.path.abspath(root)
    key = (_content(data), folder, None if kinds is None else frozenset(kinds))
    kept = _kept.get(key)
    if kept is not None and all(content_of(file) == was for file, was in kept.files):
        return kept.config
    config, problems, files = _check(data, folder or None, key[2], "config.yml")
    if config is None:
        raise _all(problems)
    for old in list(_kept)[: max(0, len(_kept) - _MOST_KEPT + 1)]:
        _kept.pop(old, None)
    # What is right with the kinds looked up is right without.
    _kept[key] = _kept[key[0], folder, None] = _Kept(tuple(files.items()), config)
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
    read = read_file(path)
    if not read.found:
        raise ConfigError(without_key(read))
    if read.config is None or any(problem.severity == "error" for problem in read.problems):
        raise _all(read.problems)
    return read.config


@dataclass(frozen=True)
class Read:
    """A file that may hold ``workers-config``: the configuration, None if it has errors.

    ``file`` is its name as people are shown it, ``data`` all that it says; ``found`` says whether
    ``workers-config`` is there.
    """

    file: str
    data: Mapping[Any, Any]
    config: Config | None
    problems: tuple[Problem, ...]

    @property
    def found(self) -> bool:
        """Whether the key is there."""
        return "workers-config" in self.data


def read_file(path: Root, kinds: Iterable[str] | None = None) -> Read:
    """Read a file, config.yml or one of its own, without Taskgraph.

    So the table of aliases is looked at, too. Raises :class:`ConfigError` where there is no such
    file, or no YAML in it that is a mapping.
    """
    name = os.path.abspath(path)
    source = Source(name, content_of(name))
    data = parse_file(source)
    missed = misspelled(data, source)
    if missed is not None:
        return Read(source.shown, data, None, (missed,))
    config, problems = check(data, os.path.dirname(name), kinds, os.path.basename(name))
    found = _problems(alias_faults(_aliases(data)), Trace((source,)), ALIASES)
    return Read(source.shown, data, None if found else config, (*found, *problems))


def without_key(read: Read) -> Problem:
    """The problem that a file without ``workers-config`` is: an error where it is misspelled."""
    for problem in read.problems:
        if problem.code == MISSPELLED:
            return problem
    hint = f"there is: {listed(map(str, read.data))}" if read.data else ""
    return Problem("the file has no key workers-config", hint=hint).at(read.file, 1, 1)


def misspelled(data: Mapping[Any, Any], source: Source) -> Problem | None:
    """What is wrong with a file that has only something like the key ``workers-config``."""
    ours = "workers-config"
    if ours in data:
        return None
    by_fold = {str(key).casefold(): key for key in data}
    near = difflib.get_close_matches(ours, by_fold, n=1, cutoff=_NEAR)
    if not near:
        return None
    key = by_fold[near[0]]
    place = find(source.compose(), (key,))
    what = f"{key!r} is no key that is read: placement is configured by {ours!r}"
    hint = f"write it as: {ours}"
    problem = Problem(what, place.path, hint, code=MISSPELLED, names=(str(key),))
    return problem.at(source.shown, place.line, place.column)


def located(raised: E, config: Config) -> E:
    """A problem, or an error with problems, that says file, line and column where it can."""
    if not isinstance(raised, Problem):
        return type(raised)(*(located(problem, config) for problem in raised.problems))
    if config.trace is None:
        return raised
    found: list[E] = config.trace.locate([translated(raised, config)])
    return found[0]


def _all(problems: Iterable[Problem]) -> ConfigError:
    """An error with all problems, errors first."""
    return ConfigError(*sorted(problems, key=lambda problem: problem.severity != "error"))


def _content(data: Mapping[str, Any]) -> bytes:
    """All of config.yml that matters here, as bytes."""
    matters = (data.get("workers-config"), _aliases(data))
    try:
        # Version 2 has no references, so that equal values give equal bytes.
        return marshal.dumps(matters, 2)
    except ValueError:
        return repr(matters).encode("utf-8", "backslashreplace")


def _aliases(data: Mapping[str, Any]) -> Any:
    workers = data.get("workers")
    return workers.get("aliases") if isinstance(workers, Mapping) else None


Found = tuple[Optional[Config], list[Problem], dict[str, Optional[bytes]]]


def _check(
    data: Mapping[str, Any], folder: str | None, kinds: Iterable[str] | None, file: str
) -> Found:
    """The configuration if there is no error, all problems, and the files that were read."""
    raw, aliases = data.get("workers-config"), _aliases(data)
    source, folders = _top(folder, file)
    files = {} if folder is None else {source.file: source.content}
    if raw is None or raw == {}:
        return Config(aliases=read_aliases(aliases), trace=Trace((source,))), [], files
    if not isinstance(raw, Mapping) or too_deep(raw):
        what = TOO_DEEP if isinstance(raw, Mapping) else f"must be a mapping, not {said(raw)}"
        return None, Trace((source,)).locate([Problem(what, TOP)]), files
    source = _if_it_says(source, raw)
    whole = document(raw, source, folders)
    config, problems = _read(whole, aliases, kinds)
    problems = _in_order([*_odd(source), *whole.problems, *problems], whole.trace)
    errors = any(problem.severity == "error" for problem in problems)
    return None if errors else config, problems, {**whole.read, **files}


def _read(
    whole: Document, aliases: Any, kinds: Iterable[str] | None
) -> tuple[Config, list[Problem]]:
    known = known_in(whole.value, aliases, kinds)
    value, faults = read(known, whole.value)
    left_out = [(*TOP, *path_of(fault)) for fault in faults]
    config = build(value, aliases, whole.trace)
    found = checks.problems(config, known, left_out)
    if whole.incomplete:
        # A file that could not be read may be the one that says what is missed here.
        faults = [fault for fault in faults if not fault.lookup]
        found = [each for each in found if each.severity == "error" or each.code not in _MISSED]
    return config, [*_problems(faults, whole.trace), *whole.trace.locate(found)]


def _problems(faults: Iterable[Fault], trace: Trace, top: Path = TOP) -> list[Problem]:
    nodes: dict[int, Any] = {}
    found = []
    for fault in faults:
        place, source = trace.place((*top, *path_of(fault)), nodes)
        found.append(problem_of(fault, place).at(source.shown, place.line, place.column))
    return found


def _top(folder: str | None, file: str) -> tuple[Source, tuple[str, ...]]:
    """The source that config.yml is, and the folders where its includes are looked for."""
    if folder is None:
        return Source(file), (os.curdir,)
    name = os.path.join(folder, file)
    real = os.path.dirname(os.path.realpath(name))
    return Source(name, content_of(name)), tuple(dict.fromkeys((folder, real)))


def _if_it_says(source: Source, raw: Mapping[Any, Any]) -> Source:
    """The source, without its text if that says something else than what is to be read."""
    try:
        same = source.content is not None and parse(source).get("workers-config") == raw
    except Unreadable:
        same = False
    return source if same else source._replace(content=None)


def _odd(source: Source) -> Iterator[Problem]:
    """What is odd about the text of config.yml, as far as it concerns placement."""
    for problem in oddities(source.compose()):
        path = problem.path
        if path[:1] == TOP or path[:2] == ALIASES or path == ("workers",):
            yield problem.at(source.shown, problem.line, problem.column)


def _in_order(problems: Iterable[Problem], trace: Trace) -> list[Problem]:
    """The problems as the files and lines go, each once; no warning of what is an error too."""
    files = [source.shown for source in trace.sources]

    def place(problem: Problem) -> tuple[int, int, int]:
        index = files.index(problem.file) if problem.file in files else len(files)
        return index, problem.line, problem.column

    found = sorted(dict.fromkeys(problems), key=place)
    errors = {place(each) for each in found if each.severity == "error" and each.line}
    return [each for each in found if each.severity == "error" or place(each) not in errors]
