"""Which commands of a script run, and which of them at the same time.

A script is read into a tree: :class:`Call` is a command, :class:`Seq` are parts one after
another, :class:`Par` are parts at the same time (pipes, ``&`` up to ``wait``), :class:`Many` is
a part that runs at the same time as itself, nobody knows how often (``&`` in a loop).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Union

from taskgraph_workers.launch.merlin.lexer import UNKNOWN, Token, tokens

#: A variable, as a shell and celery write it.
VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})", re.ASCII)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_SEQ = re.compile(r"\s*seq\s+(?:(\d{1,6})\s+)?(\d{1,6})\s*")
_RANGE = re.compile(r"\{(\d{1,6})\.\.(\d{1,6})\}")
_STARTS = frozenset({"then", "do", "else", "elif", "if", "!"})
_LOOPS = frozenset({"for", "foreach", "select", "while", "until"})
_ESAC = frozenset({"esac"})
_BRANCH = frozenset({";;", ";&", "esac"})
_SETTERS = frozenset({"export", "declare", "local", "readonly", "set", "typeset"})
_SHELLS = frozenset({"bash", "sh", "dash", "ksh", "zsh"})
#: Scripts in scripts in scripts: deeper than anybody writes them.
_DEEPEST = 20
#: More launches at the same time than anybody writes down one by one.
_MOST_AT_ONCE = 512


class Call(NamedTuple):
    """A command: its words, and what the shell's variables hold, where a word says it."""

    words: tuple[str, ...]
    env: Mapping[str, str]


class Seq(NamedTuple):
    """One after another."""

    parts: tuple[Part, ...]


class Par(NamedTuple):
    """At the same time."""

    parts: tuple[Part, ...]


class Many(NamedTuple):
    """At the same time as itself, nobody knows how often."""

    part: Part


Part = Union[Call, Seq, Par, Many]
#: Whether a command is of interest; the tree holds no others.
Keep = Callable[[tuple[str, ...]], bool]
NOTHING = Seq(())


def _seq(parts: Iterable[Part]) -> Part:
    kept = tuple(part for part in parts if part != NOTHING)
    return kept[0] if len(kept) == 1 else Seq(kept)


def _par(parts: Iterable[Part]) -> Part:
    kept = tuple(part for part in parts if part != NOTHING)
    if len(kept) > _MOST_AT_ONCE:
        return Many(kept[0])
    return Par(kept) if len(kept) > 1 else _seq(kept)


class _Parser:
    def __init__(self, script: list[Token], keep: Keep, env: dict[str, str], depth: int) -> None:
        self.tokens = script
        self.keep = keep
        self.at = 0
        self.env = env
        self.depth = depth
        #: How many ``if`` are open, and whether ``&&`` or ``||`` stands before what comes next.
        self.conditions = 0
        self.joined = False

    def peek(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def sequence(self, ends: frozenset[str]) -> tuple[Part, list[Part]]:
        """Up to one of the ends: what runs, and what still runs in the background then."""
        stages: list[Part] = []
        running: list[Part] = []
        while (token := self.peek()) is not None and not _is(token, ends):
            if token.operator and token.text != "(":
                self.joined = token.text in ("&&", "||")
                self.at += 1
                continue
            part, background = self.pipeline(ends)
            if isinstance(part, Call) and _is_wait(part):
                if self._waits(part, len(running)):
                    stages.append(_par(running))
                    running = []
            elif background:
                running.extend(() if part == NOTHING else (part,))
            elif part != NOTHING:
                stages.append(_par((*running[: _MOST_AT_ONCE + 1], part)))
        return _seq(stages), running

    def _waits(self, wait: Call, running: int) -> bool:
        """Whether this ``wait`` surely waits for all that runs in the background."""
        named = [word for word in wait.words[1:] if not word.startswith("-")]
        whole = len(named) >= running if named else "-n" not in wait.words
        return whole and not self.conditions and not self.joined

    def pipeline(self, ends: frozenset[str]) -> tuple[Part, bool]:
        """Commands with ``|`` between them, and whether they run in the background."""
        parts = [self.command(ends)]
        while self._operator("|", "|&"):
            while self._operator("\n"):
                pass
            parts.append(self.command(ends))
        background = self._operator("&")
        if len(parts) == 1 and not background:
            return parts[0], False
        # There, `wait` is that of a shell of its own.
        return _par(part for part in parts if not _is_wait(part)), background

    def _operator(self, *texts: str) -> bool:
        """Take an operator, if it is one of these that is next."""
        token = self.peek()
        taken = token is not None and token.operator and token.text in texts
        self.at += taken
        return taken

    def command(self, ends: frozenset[str]) -> Part:
        while (token := self.peek()) is not None and not _is(token, ends):
            if (token.operator and token.text == "(") or _is(token, frozenset({"{"})):
                self.at += 1
                return self.block(frozenset({")" if token.operator else "}"}))
            if _is(token, _LOOPS):
                return self.loop()
            if _is(token, frozenset({"case"})):
                return self.case()
            if not _is(token, _STARTS):
                return self.simple()
            self.conditions += token.text == "if"
            self.at += 1
        return NOTHING

    def block(self, ends: frozenset[str]) -> Part:
        """All up to one of the ends, and what that leaves in the background."""
        if self.depth >= _DEEPEST:
            return NOTHING
        self.depth += 1
        part, running = self.sequence(ends)
        self.depth -= 1
        self.at += self.peek() is not None
        return _seq((part, _par(running)))

    def loop(self) -> Part:
        """``for x in words; do ...; done``: what it leaves in the background adds up."""
        each = self.tokens[self.at].text in ("for", "foreach", "select")
        self.at += 1
        words: list[str] = []
        while each and (token := self.peek()) is not None and not token.operator:
            numbers = _SEQ.fullmatch(token.text) if token.script else None
            words.append(f"{{{numbers[1] or 1}..{numbers[2]}}}" if numbers else token.text)
            self.at += 2 if numbers else 1
        if words:
            self.env.pop(words[0], None)
        if self.depth >= _DEEPEST:
            return NOTHING
        self.depth += 1
        part, running = self.sequence(frozenset({"done", "end"}))
        self.depth -= 1
        self.at += self.peek() is not None
        again, times = _par(running), _times(words)
        if again == NOTHING:
            return part
        return _seq((part, Many(again) if times is None else _par((again,) * times)))

    def case(self) -> Part:
        """``case x in a) ...;; esac``: one of several."""
        parts: list[Part] = []
        while (token := self.peek()) is not None and not _is(token, _ESAC):
            self.at += 1
            if token.operator and token.text == ")":
                part, running = self.sequence(_BRANCH)
                parts.append(_seq((part, _par(running))))
        self.at += self.peek() is not None
        return _seq(parts)

    def simple(self) -> Part:
        """A command of words; scripts within its words run before it."""
        words: list[str] = []
        inside: list[Part] = []
        while (token := self.peek()) is not None and not token.operator:
            self.at += 1
            if token.script:
                inside.append(self._nested(token.text))
            else:
                words.append(token.text)
        call = self._call(words)
        return _seq((*inside, NOTHING if _is_wait(call) else call)) if inside else call

    def _call(self, words: list[str]) -> Part:
        env = dict(self.env)
        while words and (found := _ASSIGNMENT.fullmatch(words[0])):
            env[found[1]] = found[2]
            words = words[1:]
        if not words:
            self.env = env
            return NOTHING
        name = words[0].rpartition("/")[2]
        if name == "wait":
            return Call(tuple(words), {})
        if name in _SHELLS and "-c" in words[:-1]:
            return self._nested(words[words.index("-c") + 1])
        self._built_in(name, words[1:])
        return Call(tuple(words), env) if self.keep(tuple(words)) else NOTHING

    def _built_in(self, name: str, words: list[str]) -> None:
        """What a command changes for those behind it."""
        if name in _SETTERS:
            found = (_ASSIGNMENT.fullmatch(word) for word in words)
            self.env.update((each[1], each[2]) for each in found if each)
        elif name == "setenv" and len(words) == 2:
            self.env[words[0]] = words[1]
        elif name in ("read", "unset"):
            for word in words:
                self.env.pop(word, None)
        elif name == "fi":
            self.conditions -= self.conditions > 0

    def _nested(self, script: str) -> Part:
        return _Parser(tokens(script), self.keep, dict(self.env), self.depth + 1).block(frozenset())


def _is_wait(part: Part) -> bool:
    return isinstance(part, Call) and part.words[0] == "wait"


def _is(token: Token, words: frozenset[str]) -> bool:
    return token.text in words and not token.quoted


def _times(words: list[str]) -> int | None:
    """How often ``for x in words`` runs; None where only the shell can tell."""
    if "in" not in words[1:2]:
        return None
    total = 0
    for word in words[2:]:
        numbers = _RANGE.fullmatch(word)
        if numbers:
            total += abs(int(numbers[2]) - int(numbers[1])) + 1
        elif any(mark in word for mark in (UNKNOWN, "$", "*", "?", "{", "[")):
            return None
        else:
            total += 1
    return total if total <= _MOST_AT_ONCE else None


def parse(script: str, keep: Keep, env: Mapping[str, str]) -> Part:
    """What a script runs, of what is to be kept. ``env`` is what variables hold before it."""
    return _Parser(tokens(script), keep, dict(env), 0).block(frozenset())


def expand(text: str, env: Mapping[str, str]) -> str:
    """``$NAME`` and ``${NAME}`` as an environment has them; what it lacks stays.

    >>> expand("--concurrency ${N} $X", {"N": "4"})
    '--concurrency 4 $X'
    """
    return VARIABLE.sub(lambda found: env.get(found[1] or found[2], found[0]), text)
