"""The page of a plan as text: what is in it, and that nothing in it is more than text."""

from __future__ import annotations

import base64
import doctest
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from taskgraph_workers.graph import markup, plan_groups
from taskgraph_workers.graph.markup import Html, embed, join, tag, visible
from taskgraph_workers.graph.plan_groups import LONGEST, env_value, exceptions, groups, profile_of
from taskgraph_workers.graph.plan_html import render
from tests.plans import HOSTILE, hostile, move, plan

VOID = {"meta", "link", "input", "br"}


class Page(HTMLParser):
    """The elements of a page, and its text outside of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[str] = []
        self.words = ""
        self.scripts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.inside.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.inside[-1:] == ["script"]:
            self.scripts.append(data)
        elif self.inside[-1:] != ["style"]:
            self.words += data

    def data(self) -> Any:
        return json.loads(self.scripts[0])


@pytest.mark.parametrize("module", [markup, plan_groups])
def test_the_examples_in_its_parts_are_true(module):
    """What the docstrings show is what comes out."""
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


def test_whatever_goes_in_comes_out_as_text():
    """A text and an attribute are escaped; what is HTML already is not escaped again."""
    assert tag("b", "<i>", title="\"'") == '<b title="&quot;&#x27;">&lt;i&gt;</b>'
    assert tag("p", tag("b", "&")) == "<p><b>&amp;</b></p>"
    assert join("<", Html("<br>")) == "&lt;<br>"
    assert tag("p", hidden=False, id=None, class_="x") == '<p class="x"></p>'


def test_json_ends_no_script_and_reads_back():
    """Data in a script holds no `<`, `>`, `&` or non-ASCII, and is the same data."""
    value = {"</script>": ["<!--", "&", "\u2028", "é", 1, None]}
    text = embed(value)
    assert not re.search("[<>&]", text)
    assert text.isascii()
    assert json.loads(text) == value


def test_what_can_not_be_seen_is_spelled_out():
    """Controls, marks of direction and halves of characters show; ordinary text is as it is."""
    assert visible("a\x00\x1b\u202e\ud800") == "a\\x00\\x1b\\u202e\\ud800"
    assert visible("مرحبا שלום 日本 👩\u200d🚀\n\t") == "مرحبا שלום 日本 👩\u200d🚀\n\t"
    assert visible("a\nb", line=True) == "a\\nb"


def test_hostile_values_make_no_element():
    """With every value hostile, the page has the elements and attributes of a harmless one."""

    def shape(hostile_text: str) -> list[tuple[str, list[str]]]:
        text = json.dumps(hostile()).replace(json.dumps(HOSTILE)[1:-1], hostile_text)
        return [(name, sorted(attrs)) for name, attrs in Page(render(json.loads(text))).elements]

    assert shape(json.dumps(HOSTILE)[1:-1]) == shape("harmless")


def test_hostile_values_are_read_as_they_are():
    """Labels, kinds and scopes with markup and placeholders in them are there as text."""
    page = Page(render(hostile()))
    assert page.words.count(visible(HOSTILE)) > 10
    assert page.data()[0]["tasks"][0][0] == visible(HOSTILE)
    assert len(page.scripts) == 2


def test_the_page_may_do_nothing_but_what_it_holds():
    """The policy allows this style and this script alone, by their hashes, and no request."""
    text = render(plan(move("a")))
    policy = next(
        attrs["content"] or ""
        for name, attrs in Page(text).elements
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    for kind, inside in (
        ("style", text.split("<style>")[1].split("</style>")[0]),
        ("script", text.split("<script>")[1].split("</script>")[0]),
    ):
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


def test_nothing_comes_from_elsewhere():
    """No element names a file or an address, and no style is outside of the hashed one."""
    page = Page(render(plan(move("a"), scopes=["x"], new_scopes=["x"])))
    for name, attrs in page.elements:
        assert not attrs.keys() & {"src", "srcset", "style", "action", "onclick"}, name
        assert attrs.get("href", "data:,") == "data:,"


def test_the_same_plan_gives_the_same_page():
    """Nothing but the plan decides."""
    assert render(hostile()) == render(hostile())


def test_every_task_is_in_its_group_once():
    """Groups go by pools and kind; those that stay in their pool come last; no task is lost."""
    stay = {"pool": "a/stays", "implementation": "docker-worker"}
    moves = [
        move("here", **{"from": stay, "to": stay}, env={"A": ["1", "2"]}),
        move("b", kind="score"),
        move("c"),
        move("a"),
    ]
    found = groups(moves)
    assert [(group.kind, [label for label, _ in group.tasks]) for group in found] == [
        ("score", ["b"]),
        ("train", ["a", "c"]),
        ("train", ["here"]),
    ]


def test_what_all_tasks_share_is_told_once():
    """A row that each task of a group has is shared; the others belong to their tasks."""
    moves = [
        move("a", env={"SAME": ["1", "2"], "OWN": ["1", "3"]}),
        move("b", env={"SAME": ["1", "2"], "OWN": ["1", "4"]}),
        move("c", env={"SAME": ["1", "2"]}),
    ]
    (group,) = groups(moves)
    assert {group.rows[at].name for at in group.shared} == {"pool", "implementation", "SAME"}
    own = [{group.rows[at].name for at in rows} for _, rows in group.tasks]
    assert [names - {"pool", "implementation"} for names in own] == [{"SAME", "OWN"}] * 2 + [
        {"SAME"}
    ]
    page = render(plan(*moves))
    assert "differs by task" in page
    assert "1 → 3 (1 task); 1 → 4 (1 task)" in page


def test_what_differs_is_told_by_how_many():
    """The most frequent ways are told first; where each task has its own, only that."""
    values = ["5", "3", "4", "4", "6", "4"]
    moves = [move(f"a-{at}", env={"A": ["1", value]}) for at, value in enumerate(values)]
    words = Page(render(plan(*moves))).words
    assert "A: 1 → 4 (3 tasks); 1 → 5 (1 task); 1 → 3 (1 task); and 1 more way" in words
    each = [move(f"a-{at}", env={"A": ["1", f"{at}"]}) for at in range(2, 7)]
    assert "A: in another way in each of 5 tasks" in Page(render(plan(*each))).words


def test_numbers_in_labels_count():
    """Tasks come in the order in which people count."""
    long = "a-" + "9" * 5000
    labels = ["9²", "10", "a", "a-9", "a-9-10", "a-10-b", long]
    (group,) = groups([move(label) for label in sorted(labels)])
    assert [label for label, _ in group.tasks] == labels


@pytest.mark.parametrize(
    ("value", "text", "note"),
    [
        ("12000", "12000", False),
        ("not set", "not set", False),
        (None, "not set", True),
        ("", "empty", True),
        ({"task-reference": "<a>"}, "<a>", False),
        ({"detect": "gpu-indices"}, "detected on the machine (gpu-indices)", True),
        ({"detect": "inherited"}, "inherited from the worker", True),
        (7, "7", False),
    ],
)
def test_values_in_words(value: Any, text: str, note: bool):
    """The task's own text is as it is; words of ours are told apart from it."""
    found = env_value(value)
    assert (found.text, found.note) == (text, note)


def test_a_long_value_is_shown_where_it_differs():
    """Of two long values, what is shown begins shortly before the first difference."""
    same = "x" * 5000
    (group,) = groups([move("a", other={"payload.command": [same + "old" + same, same + "new"]})])
    row = next(row for row in group.rows if row.name == "payload.command")
    assert "xold" in row.before.text
    assert row.before.text.startswith("…x")
    assert row.before.text.endswith("x…")
    assert row.after.text.endswith("xnew")
    assert len(row.before.text) <= LONGEST + 2


def test_profiles_by_kind():
    """The profile of most kinds stands for all; the others are told, with both sides."""
    after = {"a": "onprem", "b": "onprem", "c": None}
    assert profile_of(after) == "onprem"
    assert profile_of(None) == profile_of({}) == "no profile"
    assert list(exceptions("spot", after)) == [("c", "spot", "no profile")]
    words = Page(render(plan(move("a"), to=after))).words
    assert "Otherwise for 1 kind" in words
    assert "c: spot → no profile" in words


def luminance(color: str) -> float:
    """The relative luminance of `#rrggbb` (WCAG 2.1)."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_the_contrast_is_good(scheme: int):
    """Text has a contrast of 4.5 or more (WCAG 2.1, AA) to whatever it stands on."""
    blocks = re.findall(r":root \{(.*?)\}", render(plan()), re.DOTALL)
    colors = dict(re.findall(r"--(\w+): (#\w{6})", blocks[scheme]))
    grounds = ("page", "soft", "gone", "come")
    pairs = [(text, ground) for text in ("ink", "muted") for ground in grounds]
    for text, ground in [*pairs, ("new", "page"), ("accent", "page")]:
        light, dark = sorted((luminance(colors[text]), luminance(colors[ground])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, ground)


def test_nothing_changes():
    """A plan without a difference says so, and offers no filter."""
    page = Page(render(plan(unchanged=12)))
    assert "Nothing changes." in page.words
    assert any(attrs.get("id") == "moves" and "hidden" in attrs for _, attrs in page.elements)


def test_without_a_script_each_label_is_there():
    """A browser that runs no script reads each task's label, and its own env."""
    text = render(plan(move("a", env={"W": ["1", "2"]}), move("b"), added=["new-one"]))
    inside = re.findall("<noscript><pre>(.*?)</pre></noscript>", text, re.DOTALL)
    assert inside == ["a  W: 1 → 2\nb", "new-one"]
