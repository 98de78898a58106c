"""Hostile texts for schedulers, and how schedulers read the lines that hold them."""

from __future__ import annotations

import shlex

from hypothesis import strategies as st

#: Any text of one line, with much of what shells and schedulers have a meaning for.
TEXTS = st.text(
    st.one_of(
        st.sampled_from("\"'\\$`#!*?[]{}()<>|&;~=%, -"),
        st.characters(min_codepoint=32, exclude_characters="\x7f", exclude_categories=["Cs"]),
    ),
    max_size=40,
)


def sbatch_reads(text: str) -> list[str]:
    """Words of an #SBATCH line, by the rules of sbatch's own reader.

    A backslash takes any next character as it is, except that a blank still ends a word outside
    of quotes; a bare ``#`` begins a comment.
    """
    words, word, quote, escaped = [], "", "", False
    for char in [*text, " "]:
        if not quote and char.isspace():
            words += [word] if word else []
            word, escaped = "", False
        elif escaped:
            word, escaped = word + char, False
        elif char == "\\":
            escaped = True
        elif quote:
            word, quote = (word, "") if char == quote else (word + char, quote)
        elif char in "\"'":
            quote = char
        elif char == "#":
            break
        else:
            word += char
    assert not quote, f"Unmatched {quote} in [{text}]"
    return words


def flux_reads(text: str) -> list[str]:
    """Words of a ``#flux:`` line, by the lexer that flux-python 0.88 sets up."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.escapedquotes = "\"'"
    return list(lexer)
