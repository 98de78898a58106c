"""The one place for quoting: words for a shell, and values of directives for each scheduler.

Everything here raises ValueError, with a sentence, for a text that can't be said there. A line
break, a NUL or another control character can be said nowhere: a value with one could end its line
and begin a directive, or a command, of its own.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable

from taskgraph_workers.errors import Problem
from taskgraph_workers.schedulers.base import SchedulerError

#: A directive's value has to fit into the buffers of schedulers: Slurm's BUFSIZ is 8192 bytes.
MOST_BYTES = 4096

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_CONTROL_NAMES = {"\n": "a line break", "\r": "a line break", "\0": "a NUL", "\t": "a tab"}
_PLAIN_WORD = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
_PLAIN_VALUE = re.compile(r"[\w%+:,./@-]+", re.ASCII)
# What LSF's and PBS's own parsers make of these inside of quotes differs from version to version.
_UNSURE = re.compile(r"[\"'\\$`#]")


def check(text: str) -> str:
    """The text itself, if it may stand in a script at all; else ValueError."""
    found = _CONTROL.search(text)
    if found:
        name = _CONTROL_NAMES.get(found[0], "a control character")
        raise ValueError(f"{text!r} has {name} in it")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{text!r} is no text that UTF-8 can hold") from None
    return text


def word(text: str) -> str:
    """One word for a POSIX shell.

    >>> word("plain"), word("two words")
    ('plain', "'two words'")
    """
    return shlex.quote(check(text))


def words(texts: Iterable[str]) -> str:
    """Several words for a POSIX shell, with blanks between them."""
    return " ".join(map(word, texts))


def inner(text: str) -> str:
    r"""One word for bash that stays readable where :func:`word` quotes the line around it.

    Not for a terminal, where ``!`` means something inside double quotes.

    >>> word("celery -Q " + inner("[merlin]_a,[merlin]_b"))
    '\'celery -Q "[merlin]_a,[merlin]_b"\''
    """
    if _PLAIN_WORD.fullmatch(check(text)):
        return text
    return _doubled(text, r"[\\\"$`]")


def _doubled(text: str, special: str) -> str:
    """In double quotes, with a backslash before each special character."""
    escaped = re.sub(f"({special})", r"\\\1", text)
    return f'"{escaped}"'


def _checked(text: str) -> str:
    if len(check(text).encode()) > MOST_BYTES:
        raise ValueError(f"{text[:40]!r}... is too long for a directive: {len(text)} characters")
    return text


def slurm_value(text: str) -> str:
    r"""The value of an ``#SBATCH`` option.

    In quotes sbatch takes everything as it is, and a backslash for an escape (sbatch's
    ``_get_argument``; a test asks the real one).

    >>> print(slurm_value("pdebug"), slurm_value('a#b "c"'))
    pdebug "a#b \"c\""
    """
    return text if _PLAIN_VALUE.fullmatch(_checked(text)) else _doubled(text, r"[\\\"]")


def flux_value(text: str) -> str:
    r"""The value of a ``#flux:`` option, which Python's ``shlex`` reads (RFC 36).

    Escaped quotes never stand three in a row, which would begin a text of several lines.

    >>> print(flux_value("pdebug"), flux_value('a#b "c"'))
    pdebug "a#b \"c\""
    """
    return text if _PLAIN_VALUE.fullmatch(_checked(text)) else _doubled(text, r"[\\\"]")


def lsf_value(text: str) -> str:
    """The value of a ``#BSUB`` option. Quotes, ``$``, backslashes and ``#`` are refused.

    >>> print(lsf_value("pdebug"), lsf_value("my workers"))
    pdebug "my workers"
    """
    return _cautious(text)


def pbs_value(text: str) -> str:
    """The value of a ``#PBS`` option. Quotes, ``$``, backslashes and ``#`` are refused.

    >>> print(pbs_value("pdebug"), pbs_value("/my folder/x.out"))
    pdebug "/my folder/x.out"
    """
    return _cautious(text)


def _cautious(text: str) -> str:
    if _PLAIN_VALUE.fullmatch(_checked(text)):
        return text
    found = _UNSURE.search(text)
    if found:
        raise ValueError(f"{text!r} has {found[0]} in it, which this scheduler may read otherwise")
    return f'"{text}"'


def verbatim(line: str, prefix: str) -> str:
    """A directive of the user's own: as it is, if it is a comment line.

    ``prefix`` is how the scheduler's own begin: ``#SBATCH``. What only looks like one, and what
    would be a command, is refused: a scheduler takes both for the end of a header, or for nothing.

    >>> verbatim("#SBATCH --comment=x", "#SBATCH")
    '#SBATCH --comment=x'
    """
    check(line)
    if not line.startswith("#"):
        raise ValueError(f"{line!r} is no directive: write {prefix} in front of it")
    alike = re.match(rf"#\s*{re.escape(prefix.lstrip('# '))}", line, re.IGNORECASE)
    if alike and not line.startswith(prefix):
        raise ValueError(f"{line!r} would be a comment: write {prefix} at its start")
    return line


class Directives:
    """The lines of a header in the making, which collects every fault before it raises.

    ``quote`` is one of the functions above: a value for this scheduler.

    >>> header = Directives("#SBATCH", slurm_value)
    >>> header.add("job name", "--job-name=", "my workers")
    >>> header.add("queue", "--partition=", None)
    >>> header.lines()
    ['#SBATCH --job-name="my workers"']
    """

    def __init__(self, prefix: str, quote: Callable[[str], str]) -> None:
        self._prefix = prefix
        self._quote = quote
        self._lines: list[str] = []
        self._problems: list[Problem] = []

    def add(self, what: str, option: str, value: str | int | None) -> None:
        """One option with its value, which comes right behind it. None leaves it out.

        ``what`` names the value to people.
        """
        if value is None:
            return
        text = str(value)
        try:
            self._lines.append(f"{self._prefix} {option}{self._quote(text)}")
        except ValueError as error:
            self.refuse(what, str(error))
        if option.endswith(" ") and text.startswith("-"):
            self.refuse(what, f"{text!r} would be taken for an option")

    def plain(self, options: str) -> None:
        """Options in which nothing comes from a user."""
        self._lines.append(f"{self._prefix} {options}")

    def extra(self, lines: Iterable[str]) -> None:
        """The user's own directives, as they are. They come last."""
        for line in lines:
            try:
                self._lines.append(verbatim(line, self._prefix))
            except ValueError as error:
                self.refuse("directive", str(error))

    def refuse(self, what: str, why: str, hint: str = "") -> None:
        """A fault of this scheduler's own."""
        self._problems.append(Problem(f"{what}: {why}", hint=hint))

    def lines(self) -> list[str]:
        """All of them. Raises SchedulerError with every fault there was."""
        if self._problems:
            raise SchedulerError(*self._problems)
        return self._lines
