"""What can go wrong, said so that its reader can mend it.

One exception family, which carries a list of problems: a loader collects every fault of a file
before it raises, so that nobody mends a configuration one run at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Union

#: Where a value stands: the keys (and list indices) that lead to it.
Path = tuple[Union[str, int], ...]

#: Where the configuration, and Taskgraph's table of aliases, stand in config.yml.
TOP: Path = ("workers-config",)
ALIASES: Path = ("workers", "aliases")

# --- What kind of fault it is: what code decides by, where a message is for people --------------

#: A name leads to no alias, and no entry places it. ``names``: the chain.
DEAD_END = "dead-end"
#: A name is no alias, and its entry gives some alias fields only. ``names``: the chain.
INCOMPLETE = "incomplete"
#: Worker names lead to each other. ``names``: those that do.
LOOP = "loop"
#: Profiles extend each other. ``names``: those that do.
EXTENDS_LOOP = "extends-loop"
#: A keyed value has no branch for the context. ``names``: what it is keyed by.
NO_BRANCH = "no-branch"
#: Several patterns match one name. ``names``: the patterns.
AMBIGUOUS = "ambiguous"
#: Env that is required is not set on a task. ``names``: the variable.
UNMET = "unmet"
#: The configuration alone sets no such env: a task may have it. ``names``: the variable.
UNSET = "unset"
#: A profile leaves out names that a task may ask for. ``names``: these.
LEFT_OUT = "left-out"
#: There is only something like the key ``workers-config``. ``names``: what is written.
MISSPELLED = "misspelled"
#: An implementation knows no such field of ``worker``. ``names``: the field.
FOREIGN = "foreign-field"
#: A key stands twice in one mapping.
TWICE = "twice"

#: How many names a message lists when it says what exists.
MOST_NAMES = 10


def dotted(path: Path) -> str:
    """A key path as people write it.

    >>> dotted(("workers-config", "require", 0, "env"))
    'workers-config.require[0].env'
    """
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else str(key)
    return text


class _Fields(NamedTuple):
    message: str
    path: Path = ()
    hint: str = ""
    severity: str = "error"
    file: str = ""
    line: int = 0
    column: int = 0
    profiles: tuple[str, ...] = ()
    code: str = ""
    names: tuple[str, ...] = ()


class Problem(_Fields):
    """One fault: what is wrong, where it stands, and what to do.

    ``path`` is the key path; ``file``, ``line`` and ``column`` (both from 1; 0 where unknown) are
    looked up only when a problem is about to be shown. ``severity`` is ``error`` or ``warning``.
    ``profiles`` are those that it comes up under, told behind the message. ``code`` is what kind
    of fault it is, one of those above if anything hangs on it, and ``names`` what it is about;
    what tells people the same is one problem all the same.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and self._told == other._told

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._told)

    @property
    def _told(self) -> tuple[object, ...]:
        """What tells one problem from another: all but ``code`` and ``names``."""
        return self[:-2]

    @property
    def text(self) -> str:
        """The message, with the profiles that it comes up under."""
        under = " and ".join(map(repr, self.profiles))
        return f"{self.message} under profile {under}" if under else self.message

    def at(self, file: str, line: int, column: int) -> Problem:
        """The same problem, with the place in a file where it stands."""
        return self._replace(file=file, line=line, column=column)

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        parts = [place, dotted(self.path), self.text]
        if self.severity != "error":
            parts[2] = f"{self.severity}: {self.text}"
        text = ": ".join(part for part in parts if part)
        return f"{text}\n    hint: {self.hint}" if self.hint else text


class WorkersError(Exception):
    """The family: every error that this package raises for a user's mistake.

    ``problems`` holds one or more :class:`Problem`; ``str()`` is what a user is shown.
    """

    def __init__(self, *problems: Problem) -> None:
        super().__init__(*problems)
        self.problems: tuple[Problem, ...] = problems

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class ConfigError(WorkersError):
    """The configuration itself is wrong."""


class PlacementError(WorkersError):
    """The configuration is well-formed, but this worker name can't be placed by it."""


def said(value: object) -> str:
    """A value as a message names it: by what YAML made of it."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the string {value[:40]!r}"
    if isinstance(value, bytes):
        return "binary data"
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, (list, tuple)) else f"a {type(value).__name__}"


def listed(names: Iterable[str]) -> str:
    """Names for a message, sorted, ten at the most.

    >>> listed(["b", "a"])
    'a, b'
    """
    known = sorted(set(names))
    more = f" and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else ""
    return ", ".join(known[:MOST_NAMES]) + more


def all_of(names: Iterable[str]) -> str:
    """Names as a sentence has them, in their order, some of them where they are many.

    >>> all_of(["a"]), all_of(["a", "b"]), all_of(["a", "b", "c", "d", "e"])
    ('a', 'a and b', 'a, b, c and 2 more')
    """
    known = list(names)
    if len(known) > 4:
        known = [*known[:3], f"{len(known) - 3} more"]
    return " and ".join([", ".join(known[:-1]), *known[-1:]] if known[1:] else known)


def counted(number: int, thing: str) -> str:
    """A number of things for a message.

    >>> counted(1, "node"), counted(2, "node")
    ('1 node', '2 nodes')
    """
    return f"{number} {thing}" + ("" if number == 1 else "s")


def unglued(key: object, value: object) -> str:
    """A hint for a key of YAML that took its value with it, since no blank is behind its colon.

    >>> unglued("train:onprem", None)
    'put a space after the colon: train: onprem'
    >>> unglued("train", None), unglued("train:onprem", "lab")
    ('', '')
    """
    glued = re.fullmatch(r"([\w.-]+):([\w./-]+)", str(key))
    return f"put a space after the colon: {glued[1]}: {glued[2]}" if glued and not value else ""


def did_you_mean(word: str, names: Iterable[str], instead: str | None = None) -> str:
    """A hint for a name that nobody knows: the nearest one, whatever its case, else what there is.

    ``instead`` is said in place of what there is.

    >>> did_you_mean("gcp-sopt", ["gcp-spot", "onprem"])
    "did you mean 'gcp-spot'?"
    >>> did_you_mean("PROFILES", ["profiles", "select"])
    "did you mean 'profiles'?"
    >>> did_you_mean("zebra", ["gcp-spot", "onprem"])
    'there is: gcp-spot, onprem'
    >>> did_you_mean("zebra", ["gcp-spot", "onprem"], "leave it out")
    'leave it out'
    """
    import difflib  # takes longer to load than everything else here

    known = sorted({str(name) for name in names})
    # As it is written first: names may differ in their case alone.
    for fold in (str, str.casefold):
        folded = {fold(name): name for name in reversed(known)}
        near = difflib.get_close_matches(fold(word), folded, n=1, cutoff=0.6)
        if near:
            return f"did you mean {folded[near[0]]!r}?"
    if instead is not None:
        return instead
    return f"there is: {listed(known)}" if known else ""
