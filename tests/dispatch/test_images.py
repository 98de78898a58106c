"""What an image may be called, and which are allowed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgraph_workers.dispatch.images import is_allowed, name_of

DIGEST = "sha256:" + "0a" * 32


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("ubuntu", "ubuntu"),
        ("cwolff/my_keras_model", "cwolff/my_keras_model"),
        ("cwolff/my_keras_model:1.2-rc_3", "cwolff/my_keras_model"),
        ("localhost:5000/a/b-c/d__e.f:LATEST", "localhost:5000/a/b-c/d__e.f"),
        ("Registry.example.com/a", "Registry.example.com/a"),
        ("10.0.0.1:5000/a", "10.0.0.1:5000/a"),
        ("[2001:db8::1]:5000/a:b", "[2001:db8::1]:5000/a"),
        (f"a/b:1@{DIGEST}", "a/b"),
        (f"a@{DIGEST}", "a"),
        ("a---b", "a---b"),
        ("a" * 255, "a" * 255),
        ("a:" + "t" * 128, "a"),
    ],
)
def test_names(image: str, name: str):
    """What Docker takes for a reference, and its name."""
    assert name_of(image) == name


@pytest.mark.parametrize(
    "image",
    [
        *("", " ", "a ", " a", "a\n", "a\0", "a b", "-a", "--privileged", "a/", "/a", "a//b", "A"),
        *(
            "a/B",
            "a:",
            ":a",
            "a:-b",
            "a:.b",
            "a@",
            "a@sha256:0a",
            "a___b",
            "a..b",
            "a.",
            "_a",
            "a/-b",
        ),
        *(
            "../a",
            "./a",
            "/etc/passwd",
            "https://a/b",
            "docker://a",
            "a;b",
            "$(a)",
            "a&b",
            "a|b",
            "a'b",
        ),
        *("ä", "a:ä", "a/b:1:2", f"a@{DIGEST}@{DIGEST}", "a:" + "t" * 129, "a" * 256, "0a" * 32),
        *("-registry/a", "registry-/a", "a:80:80/b", "[::1/a", "a" * 5000),
    ],
)
def test_what_is_no_name(image: str):
    """Options, paths, addresses, words for a shell, and what is too long."""
    assert name_of(image) is None


@given(st.text())
def test_a_name_is_one_harmless_word(image: str):
    """Whatever is a name can stand anywhere in an argv."""
    if name_of(image) is not None:
        assert image.isascii()
        assert image.isprintable()
        assert " " not in image
        assert not image.startswith(("-", "/", "."))


def test_allowed_from_beginning_to_end():
    """A pattern matches the whole name, in each of its alternatives; a plain name is one, too."""
    assert is_allowed("a/x", ("a/x|b/y",))
    assert is_allowed("b/y", ("a/x|b/y",))
    assert not is_allowed("a/x-evil", ("a/x|b/y",))
    assert not is_allowed("evil/a/x", ("a/x|b/y",))
    assert not is_allowed("a/xy", ("a/x",))
    assert is_allowed("a/x.y", ("a/x.y",))
    assert not is_allowed("a/x", ())
