"""The page of a plan in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest

from needs import needs
from taskgraph_workers.graph.markup import visible
from taskgraph_workers.graph.plan_html import render
from tests.browser.driver import BACKSPACE, CONTROL, ENTER, RELEASE, TAB, Browser
from tests.cli.commands import command
from tests.graph.support import EXAMPLE
from tests.plans import HOSTILE, KINDS, ONPREM, SPOT, hostile, many, move, plan

pytestmark = pytest.mark.service

DESK, PHONE = (1280, 900), (390, 844)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser for all tests here."""
    profile = tmp_path_factory.mktemp("profile")
    browser = Browser(needs("chromium"), needs("chromedriver"), profile)
    yield browser
    browser.close()


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Browser]]:
    """Show a plan; in the end, nothing was asked for but the page, and nothing was logged."""
    file = tmp_path / "plan.html"

    def shown(found: dict[str, Any] | None, size: tuple[int, int] = DESK) -> Browser:
        """The browser with a plan; with None, with the page that is there already."""
        if found is not None:
            file.write_text(render(found), encoding="utf-8")
        browser.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=size[0],
            height=size[1],
            deviceScaleFactor=1,
            mobile=size == PHONE,
        )
        browser.get(file.as_uri())
        return browser

    browser.get("about:blank")  # a new tab has a page of its own
    browser.log("browser")
    browser.log("performance")
    yield shown
    assert browser.log("browser") == []
    assert file.as_uri() in (asked := browser.asked())
    assert asked <= {file.as_uri(), "data:,"}


def type_filter(browser: Browser, text: str) -> None:
    browser.click("#filter")
    browser.press(CONTROL + "a" + RELEASE + BACKSPACE + text)


def matches(browser: Browser) -> str:
    (text,) = browser.shown("#count")
    return text


def open_all(browser: Browser) -> None:
    """Open everything that can be opened; tasks come with their groups."""
    for _ in range(2):
        browser.run("document.querySelectorAll('details').forEach((each) => each.open = true)")
        browser.settle()


def test_the_numbers_are_those_of_the_json(show, tmp_path: Path):
    """The page that the command writes tells the counts that its JSON tells."""
    page = tmp_path / "plan.html"
    done = command(
        "plan", "--root", EXAMPLE, "--level", "1", "--from", "gcp-spot", "--profile", "onprem",
        "--json", "--html", page,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert f"wrote {page}" in done.stderr
    found = json.loads(done.stdout)
    browser = show(None)
    moved = sum(each["from"] != each["to"] for each in found["moves"])
    assert browser.run("return document.title") == f"gcp-spot → onprem: {moved} tasks move"
    told = {name: browser.texts(f"#total-{name}") for name in ("moved", "in-place", "unchanged")}
    assert told == {
        "moved": [str(moved)],
        "in-place": [str(len(found["moves"]) - moved)],
        "unchanged": [str(found["unchanged"])],
    }
    assert browser.texts("#new-pools code") == found["new_pools"]
    assert browser.texts("#all-scopes")[0].split("\n") == found["scopes"]
    assert browser.texts("#new-scopes")[0].split("\n") == found["new_scopes"]
    browser.click(".group > summary")
    assert sorted(browser.texts(".task bdi")) == [each["label"] for each in found["moves"]]
    assert "detected on the machine" in " ".join(browser.texts(".group td"))


def test_900_tasks_are_all_there(show):
    """Opening every group shows every label once; and each group has its own."""
    found = many(900)
    browser = show(found)
    assert matches(browser) == "900 tasks"
    assert browser.count(".group") == len(KINDS)
    assert browser.count(".task") == 0
    browser.click("#toggle")
    assert browser.texts(".task bdi") != []
    assert sorted(browser.texts(".task bdi")) == [each["label"] for each in found["moves"]]
    assert browser.texts(".pool h3 .count") == ["787 tasks", "113 tasks"]
    assert browser.shown("#toggle") == ["Close all"]
    browser.click("#toggle")
    assert browser.count(".task") == 0


def test_a_task_tells_its_before_and_after(show):
    """Opened, a task has its pool, implementation, env and each other path, before and after."""
    after = {"pool": ONPREM, "implementation": "generic-worker"}
    env = {"GPUS": ["0 1", None], "WORKSPACE": ["12000", {"detect": "gpu-memory"}]}
    other = {"payload.maxRunTime": [3600, 86400], "payload.image": [{"path": "a"}, None]}
    browser = show(plan(move("a-1", to=after, env=env, other=other)))
    browser.click(".group > summary")
    browser.click(".task > summary")
    cells = browser.shown(".task tbody :is(th, td)")
    assert [cells[at : at + 3] for at in range(0, len(cells), 3)] == [
        ["pool", SPOT, ONPREM],
        ["implementation", "docker-worker", "generic-worker"],
        ["env GPUS", "0 1", "not set"],
        ["env WORKSPACE", "12000", "detected on the machine (gpu-memory)"],
        ["payload.maxRunTime", "3600 s (1 h)", "86400 s (1 day)"],
        ["payload.image", '{"path": "a"}', "not set"],
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("en-00007", {"train-7-en-00007"}),
        ("SCORE-3", {f"score-3-en-{at:05}" for at in range(13, 400, 40)}),
        (
            "gpus align",
            {
                f"align-{at % 10}-en-{at:05}"
                for at in range(30, 400)
                if at % 40 >= 30 and at % 3 == 0
            },
        ),
        ("nothing-has-this", set()),
    ],
)
def test_the_filter(show, text: str, expected: set[str]):
    """Every word has to be in the label, kind, pool or an env name; the count is live."""
    browser = show(many(400))
    type_filter(browser, text)
    assert matches(browser) == f"{len(expected)} of 400 tasks"
    open_all(browser)
    assert set(browser.texts(".group:not([hidden]) .task > summary bdi")) == expected
    assert browser.count(".group") == len({label.rsplit("-en", 1)[0] for label in expected})


def test_the_filter_takes_pools(show):
    """A pool is found, before and after; a section without a match is gone, and comes back."""
    browser = show(many(400))
    type_filter(browser, ONPREM.split("/")[1])
    assert matches(browser) == "350 of 400 tasks"
    assert browser.count(".pool") == 1
    type_filter(browser, SPOT)
    assert matches(browser) == "400 of 400 tasks"
    assert browser.count(".pool") == 2


def test_few_matches_open_by_themselves(show):
    """A group with one of a few matches opens, and closes when the filter is emptied."""
    browser = show(many(400))
    type_filter(browser, "train-7-en-00007")
    assert browser.count(".task") == 1
    assert browser.texts(".group:not([hidden]) summary .count") == ["1 of 10 tasks"]
    type_filter(browser, "")
    assert matches(browser) == "400 tasks"
    assert browser.count(".task") == 0


def test_a_large_group_is_shown_in_steps(show):
    """Of a group of 450, some are shown at first, and the rest on demand, none twice."""
    browser = show(plan(*(move(f"a-{at:03}") for at in range(450))))
    browser.click(".group > summary")
    seen = [len(browser.texts(".task"))]
    while browser.count(".tasks button"):
        browser.click(".tasks button")
        seen.append(len(browser.texts(".task")))
    assert seen == [200, 400, 450]
    assert browser.texts(".task bdi") == [f"a-{at:03}" for at in range(450)]


def test_20000_tasks_cost_few_elements(show):
    """The page of 20,000 tasks starts with what it takes to show its groups, and filters."""
    browser = show(many(20_000))
    assert matches(browser) == "20,000 tasks"
    assert len(browser.texts("*")) < 3000
    type_filter(browser, "en-19999")
    assert matches(browser) == "1 of 20,000 tasks"
    assert browser.count(".task") == 1


def test_hostile_values_stay_text(show):
    """Opened all the way, no hostile value is an element, opens a dialog or asks for anything."""
    browser = show(hostile())
    open_all(browser)  # with a dialog open, this and all that follows would fail
    assert browser.texts("img, a, iframe, object") == []
    assert len(browser.texts("script")) == 2
    labels = [visible(HOSTILE), visible(HOSTILE) + "3", visible(HOSTILE), visible(HOSTILE)]
    assert browser.texts(".task > summary bdi, .task.plain bdi") == labels
    type_filter(browser, "<IMG")
    assert matches(browser) == "4 of 4 tasks"


def test_texts_of_either_direction_are_shown(show):
    """Arabic, Hebrew and others are labels like any, isolated from what stands beside them."""
    labels = ["train-مرحبا-1", "train-日本-👩\u200d🚀", "train-שלום"]
    browser = show(plan(*(move(label) for label in sorted(labels))))
    browser.click(".group > summary")
    assert browser.texts(".task bdi") == sorted(labels)
    isolated = "return getComputedStyle(document.querySelector('.task bdi')).unicodeBidi"
    assert browser.run(isolated) == "isolate"


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("found", [many(80), hostile()], ids=["many", "hostile"])
def test_nothing_is_wider_than_the_screen(show, found: dict[str, Any], size: tuple[int, int]):
    """With everything open, the page does not scroll sideways at a desk's or a phone's width."""
    long = {"LONG": ["x" * 500, None], "SPACED": ["a b " * 200, "c"]}
    wide = move("l" * 200, kind="k" * 120, env=long, to={"pool": "p" * 200, "implementation": None})
    browser = show({**found, "moves": [*found["moves"], wide]}, size)
    open_all(browser)
    assert "xxx" in " ".join(browser.texts(".task td"))
    assert browser.run("return document.documentElement.scrollWidth") <= size[0]


def test_a_keyboard_is_enough(show):
    """Tab goes from the filter over the button to the groups; Enter opens them and their tasks."""
    browser = show(plan(move("a-1", env={"A": ["1", "2"]}), move("a-2")))
    browser.click("#filter")

    def press(key: str) -> str:
        browser.press(key)
        return str(browser.run("return document.activeElement.innerText"))

    assert press(TAB) == "Open all"
    assert press(TAB).startswith("train")
    press(ENTER)
    assert browser.count(".task") == 2
    assert press(TAB).startswith("a-1")
    press(ENTER)
    assert browser.count(".task table") == 1


@pytest.mark.parametrize("name", ["new-scopes", "all-scopes"])
def test_scopes_are_copied(show, name: str):
    """The button puts the scopes on the clipboard, one a line, and says so."""
    found = many(10)
    browser = show(found)
    allowed = ["clipboardReadWrite", "clipboardSanitizedWrite"]
    browser.devtools("Browser.grantPermissions", permissions=allowed)
    open_all(browser)
    browser.click(f"[data-copy={name}]")
    copied = browser.run("return navigator.clipboard.readText()")
    assert copied.split("\n") == found[name.replace("all-", "").replace("-", "_")]
    assert browser.shown(f"[data-copy={name}]") == ["Copied"]


def test_it_reads_without_a_script(show):
    """With scripts off, groups open, tell what changes and name their tasks; no dead control."""
    found = plan(
        move("a-1", env={"A": ["1", "2"], "B": ["3", "4"]}),
        move("a-2", env={"A": ["1", "2"]}),
        scopes=["s"],
        new_scopes=["s"],
    )
    browser = show(found)
    browser.devtools("Emulation.setScriptExecutionDisabled", value=True)
    try:
        show(None)
        browser.click(".group > summary", settle=False)
        group = browser.shown(".group")
        controls = browser.shown("button, input")
    finally:
        browser.devtools("Emulation.setScriptExecutionDisabled", value=False)
    for text in ("env A", "a-1 B: 3 → 4", "a-2", "Differs by task"):
        assert text in " ".join(group[0].split())
    assert controls == []


def test_print_leaves_the_controls_out(show):
    """On paper there is no filter and no button."""
    browser = show(many(10))
    assert browser.count(".bar, button") > 0
    browser.devtools("Emulation.setEmulatedMedia", media="print")
    try:
        assert browser.count(".bar, button") == 0
        assert browser.count(".group") > 0
    finally:
        browser.devtools("Emulation.setEmulatedMedia", media="")
