"""Comments, and what they are about."""

from __future__ import annotations

from taskgraph_workers.adopt.notes import Note, Notes


def test_what_is_a_comment():
    """A sign in quotes, in a word, or in a block of text is none."""
    text = (
        "a: 'x # y'  # one\nb: x#y\nc: |\n    # text\n# two\nd: [1, # three\n  2]\ne: '\n  # no'\n"
    )
    assert list(Notes(text).by_line.values()) == [
        Note(1, 13, "# one", False),
        Note(5, 1, "# two", True),
        Note(6, 8, "# three", False),
    ]


def test_a_comment_belongs_to_the_key_below_it():
    """Blank lines between do not matter; what is indented deeper is about what went before."""
    notes = Notes(
        "t:\n    # for a\n\n    a: 1  # beside a\n        # of a too\n  # for b\n"
        "    # for b\n    b: 2\n        # of b\n    # behind\n# not here\nu: 1\n"
    )
    about, behind = notes.of_table({"a": 4, "b": 8}, 5, 12)
    assert [note.text for note in about["a"]] == ["# for a", "# beside a", "# of a too"]
    assert [note.text for note in about["b"]] == ["# for b", "# for b", "# of b"]
    assert [note.text for note in behind] == ["# behind"]


def test_what_was_taken_along_is_known():
    """So that the rest can be told."""
    notes = Notes("# a\nb: 1  # c\n")
    assert notes.take(notes.header(2)) == ["# a"]
    assert notes.taken == {1}
