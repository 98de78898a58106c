"""The words and operators of a shell script, as far as finding its commands needs them.

No shell is run and nothing is expanded. Whatever stands in a script, this comes to an end:
an unbalanced quote or bracket ends with the text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

#: In a word: stands for what only the shell can work out.
UNKNOWN = "\x01"

_REFERENCE = re.compile(r"\$\([\w.-]+\)")
_HEREDOC = re.compile(r"<<(-?)[ \t]*(['\"]?)([\w.!-]+)\2")
_OPERATOR = re.compile(r"&&|\|\||;;|;&|\|&|\n|[;&|()]")
_REDIRECT = re.compile(r"\d*(?:&>>?|>>?&?|<<<|<>|<&?)|&>>?")
_PLAIN = re.compile(r"[^\s'\"\\$`;&|()<>]+")


class Token(NamedTuple):
    """A word, an operator (``operator``), or a command substitution (``script``) in a word."""

    text: str
    operator: bool = False
    script: bool = False
    quoted: bool = False


class _Lexer:
    def __init__(self, text: str) -> None:
        self.text = text.replace("\\\n", " ").replace("\r\n", "\n")
        self.at = 0
        self.word: list[str] | None = None
        self.quoted = False
        self.tokens: list[Token] = []
        self.heredocs: list[tuple[str, bool]] = []

    def run(self) -> list[Token]:
        while self.at < len(self.text):
            self._step(self.text[self.at])
        self._end_word()
        return self.tokens

    def _step(self, char: str) -> None:
        if char in " \t":
            self._end_word()
            self.at += 1
        elif char == "#" and self.word is None:
            self.at = self._upto("\n", self.at)
        elif char in "'\"\\`$":
            self._special(char)
        elif not self._redirect() and not self._operator():
            plain = _PLAIN.match(self.text, self.at)
            self._add(plain[0] if plain else char)
            self.at += len(plain[0]) if plain else 1

    def _add(self, text: str) -> None:
        if self.word is None:
            self.word = []
        self.word.append(text)

    def _end_word(self) -> None:
        if self.word is not None:
            self.tokens.append(Token("".join(self.word), quoted=self.quoted))
        self.word, self.quoted = None, False

    def _upto(self, end: str, start: int) -> int:
        found = self.text.find(end, start)
        return len(self.text) if found < 0 else found

    def _special(self, char: str) -> None:
        if char == "'":
            end = self._upto("'", self.at + 1)
            self._quote(self.text[self.at + 1 : end])
            self.at = end + 1
        elif char == '"':
            self._double()
        elif char == "\\":
            self._add(self.text[self.at + 1 : self.at + 2])
            self.at += 2
        elif char == "`":
            end = self._upto("`", self.at + 1)
            self._substitution(self.text[self.at + 1 : end])
            self.at = end + 1
        else:
            self._dollar()

    def _quote(self, text: str) -> None:
        self.quoted = True
        self._add(text)

    def _double(self) -> None:
        self._quote("")
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] != '"':
            char = self.text[self.at]
            if char in "\\`$":
                self._special(char)
            else:
                self._add(char)
                self.at += 1
        self.at += 1

    def _dollar(self) -> None:
        """``$(NAME)`` is Merlin's, and stays; ``$(a command)`` is the shell's."""
        reference = _REFERENCE.match(self.text, self.at)
        if reference:
            self._add(reference[0])
            self.at += len(reference[0])
        elif self.text.startswith("$((", self.at):
            self._add(UNKNOWN)
            self.at = self._upto("))", self.at) + 2
        elif self.text.startswith("$(", self.at):
            end = self._closing(self.at + 2)
            self._substitution(self.text[self.at + 2 : end])
            self.at = end + 1
        else:
            self._add("$")
            self.at += 1

    def _substitution(self, script: str) -> None:
        self.tokens.append(Token(script, script=True))
        self._add(UNKNOWN)

    def _closing(self, start: int) -> int:
        """Where the bracket closes that was opened before ``start``."""
        depth, quote = 1, ""
        for place in range(start, len(self.text)):
            char = self.text[place]
            if quote:
                quote = "" if char == quote else quote
            elif char in "'\"":
                quote = char
            else:
                depth += (char == "(") - (char == ")")
                if not depth:
                    return place
        return len(self.text)

    def _redirect(self) -> bool:
        """Pass over ``> file``, ``2>&1`` and the text of a here-document."""
        heredoc = _HEREDOC.match(self.text, self.at)
        if heredoc and not self.text.startswith("<<<", self.at):
            self.heredocs.append((heredoc[3], bool(heredoc[1])))
            self._end_word()
            self.at = heredoc.end()
            return True
        found = _REDIRECT.match(self.text, self.at)
        if found is None or (self.word is not None and found[0][0].isdigit()):
            return False
        self._end_word()
        target = re.compile(r"[ \t]*").match(self.text, found.end())
        self.at = target.end() if target else found.end()
        self._skip_word()
        return True

    def _skip_word(self) -> None:
        """Pass over the word behind a redirection; what is substituted in it counts."""
        known = len(self.tokens)
        while self.at < len(self.text):
            char = self.text[self.at]
            if char.isspace() or char in ";|()<>" or (char == "&" and self.word is not None):
                break
            if char in "'\"\\`$":
                self._special(char)
            else:
                self._add(char)
                self.at += 1
        self.word, self.quoted = None, False
        self.tokens[known:] = [token for token in self.tokens[known:] if token.script]

    def _operator(self) -> bool:
        found = _OPERATOR.match(self.text, self.at)
        if found is None:
            return False
        self._end_word()
        self.tokens.append(Token(found[0], operator=True))
        self.at = found.end()
        if found[0] == "\n" and self.heredocs:
            self._skip_heredocs()
        return True

    def _skip_heredocs(self) -> None:
        for end, tabs in self.heredocs:
            while self.at < len(self.text):
                stop = self._upto("\n", self.at)
                line = self.text[self.at : stop]
                self.at = stop + 1
                if (line.lstrip("\t") if tabs else line) == end:
                    break
        self.heredocs = []


def tokens(script: str) -> list[Token]:
    """The tokens of a script."""
    return _Lexer(script).run()
