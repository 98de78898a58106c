"""The page of a plan in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest
from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.keys import Keys

from needs import needs
from taskgraph_workers.graph.markup import visible
from taskgraph_workers.graph.plan_html import render
from tests.graph.support import EXAMPLE
from tests.plans import HOSTILE, KINDS, ONPREM, SPOT, hostile, many, move, plan

pytestmark = pytest.mark.service

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
DESK, PHONE = (1280, 900), (390, 844)

#: The texts of all elements that a selector finds, seen or not.
TEXTS = "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)"
#: How many elements a selector finds that are shown.
SHOWN = """
return [...document.querySelectorAll(arguments[0])].filter((each) => each.checkVisibility()).length
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """A browser for all tests here, that remembers what it wrote on its console and asked for."""
    options = ChromeOptions()
    options.binary_location = needs("chromium")
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = Chrome(options=options, service=ChromeService(needs("chromedriver")))
    browser.set_script_timeout(60)
    yield browser
    browser.quit()


@pytest.fixture
def show(browser: Chrome, tmp_path: Path) -> Iterator[Callable[..., Chrome]]:
    """Show a plan; in the end, nothing was asked for but the page, and no error was logged."""
    file = tmp_path / "plan.html"

    def shown(found: dict[str, Any] | None, size: tuple[int, int] = DESK) -> Chrome:
        """The browser with a plan; with None, with the page that is there already."""
        if found is not None:
            file.write_text(render(found), encoding="utf-8")
        metrics = {"deviceScaleFactor": 1, "mobile": size == PHONE}
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride", {"width": size[0], "height": size[1], **metrics}
        )
        browser.get(file.as_uri())
        return browser

    browser.get("about:blank")  # a new tab has a page of its own
    for log in ("browser", "performance"):
        browser.get_log(log)
    yield shown
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    }
    assert asked <= {file.as_uri(), "data:,"}


def texts(browser: Chrome, selector: str) -> list[str]:
    found: list[str] = browser.execute_script(TEXTS, selector)
    return found


def count(browser: Chrome, selector: str) -> int:
    found: int = browser.execute_script(SHOWN, selector)
    return found


def type_filter(browser: Chrome, text: str) -> None:
    box = browser.find_element("id", "filter")
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys(Keys.BACKSPACE)
    box.send_keys(text)


def matches(browser: Chrome) -> str:
    return browser.find_element("id", "count").text


def opened(browser: Chrome, selector: str) -> None:
    """Open what a selector finds, with a click as a person would, and wait for its content."""
    for element in browser.find_elements("css selector", selector):
        element.find_element("css selector", "summary").click()
    settle(browser)


def settle(browser: Chrome) -> None:
    """Wait for what elements do when they have been opened."""
    browser.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0]))")


def open_all(browser: Chrome) -> None:
    """Open everything that can be opened; tasks come with their groups."""
    for _ in range(2):
        browser.execute_script(
            "document.querySelectorAll('details').forEach((each) => each.open = true)"
        )
        settle(browser)


def test_the_numbers_are_those_of_the_json(show, tmp_path: Path):
    """The page that the command writes tells the counts that its JSON tells."""
    from tests.cli.commands import command

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
    assert browser.title == f"gcp-spot → onprem: {moved} tasks move"
    told = {name: texts(browser, f"#total-{name}") for name in ("moved", "in-place", "unchanged")}
    assert told == {
        "moved": [str(moved)],
        "in-place": [str(len(found["moves"]) - moved)],
        "unchanged": [str(found["unchanged"])],
    }
    assert texts(browser, "#new-pools code") == found["new_pools"]
    assert texts(browser, "#all-scopes")[0].split("\n") == found["scopes"]
    assert texts(browser, "#new-scopes")[0].split("\n") == found["new_scopes"]
    opened(browser, ".group")
    assert sorted(texts(browser, ".task bdi")) == [each["label"] for each in found["moves"]]
    assert "detected on the machine" in " ".join(texts(browser, ".group td"))


def test_900_tasks_are_all_there(show):
    """Opening every group shows every label once; and each group has its own."""
    found = many(900)
    browser = show(found)
    assert matches(browser) == "900 tasks"
    assert count(browser, ".group") == len(KINDS)
    assert count(browser, ".task") == 0
    browser.find_element("id", "toggle").click()
    assert texts(browser, ".task bdi") != []
    assert sorted(texts(browser, ".task bdi")) == [each["label"] for each in found["moves"]]
    assert texts(browser, ".pool h3 .count") == ["787 tasks", "113 tasks"]
    assert browser.find_element("id", "toggle").text == "Close all"
    browser.find_element("id", "toggle").click()
    assert count(browser, ".task") == 0


def test_a_task_tells_its_before_and_after(show):
    """Opened, a task has its pool, implementation, env and each other path, before and after."""
    after = {"pool": ONPREM, "implementation": "generic-worker"}
    env = {"GPUS": ["0 1", None], "WORKSPACE": ["12000", {"detect": "gpu-memory"}]}
    other = {"payload.maxRunTime": [3600, 86400], "payload.image": [{"path": "a"}, None]}
    browser = show(plan(move("a-1", to=after, env=env, other=other)))
    opened(browser, ".group")
    opened(browser, ".task")
    rows = browser.find_elements("css selector", ".task tbody tr")
    assert [
        [each.text for each in row.find_elements("css selector", "th, td")] for row in rows
    ] == [
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
    assert set(texts(browser, ".group:not([hidden]) .task > summary bdi")) == expected
    assert count(browser, ".group") == len({label.rsplit("-en", 1)[0] for label in expected})


def test_the_filter_takes_pools(show):
    """A pool is found, before and after; a section without a match is gone, and comes back."""
    browser = show(many(400))
    type_filter(browser, ONPREM.split("/")[1])
    assert matches(browser) == "350 of 400 tasks"
    assert count(browser, ".pool") == 1
    type_filter(browser, SPOT)
    assert matches(browser) == "400 of 400 tasks"
    assert count(browser, ".pool") == 2


def test_few_matches_open_by_themselves(show):
    """A group with one of a few matches opens, and closes when the filter is emptied."""
    browser = show(many(400))
    type_filter(browser, "train-7-en-00007")
    assert count(browser, ".task") == 1
    assert texts(browser, ".group:not([hidden]) summary .count") == ["1 of 10 tasks"]
    type_filter(browser, "")
    assert matches(browser) == "400 tasks"
    assert count(browser, ".task") == 0


def test_a_large_group_is_shown_in_steps(show):
    """Of a group of 450, some are shown at first, and the rest on demand, none twice."""
    browser = show(plan(*(move(f"a-{at:03}") for at in range(450))))
    opened(browser, ".group")
    seen = [len(texts(browser, ".task"))]
    while browser.find_elements("css selector", ".tasks button"):
        browser.find_element("css selector", ".tasks button").click()
        seen.append(len(texts(browser, ".task")))
    assert seen == [200, 400, 450]
    assert texts(browser, ".task bdi") == [f"a-{at:03}" for at in range(450)]


def test_20000_tasks_cost_few_elements(show):
    """The page of 20,000 tasks starts with what it takes to show its groups, and filters."""
    browser = show(many(20_000))
    assert matches(browser) == "20,000 tasks"
    assert len(texts(browser, "*")) < 3000
    type_filter(browser, "en-19999")
    assert matches(browser) == "1 of 20,000 tasks"
    assert count(browser, ".task") == 1


def test_hostile_values_stay_text(show):
    """Opened all the way, no hostile value is an element, opens a dialog or asks for anything."""
    browser = show(hostile())
    open_all(browser)
    with pytest.raises(NoAlertPresentException):
        _ = browser.switch_to.alert
    assert texts(browser, "img, a, iframe, object") == []
    assert len(texts(browser, "script")) == 2
    labels = [visible(HOSTILE), visible(HOSTILE) + "3", visible(HOSTILE), visible(HOSTILE)]
    assert texts(browser, ".task > summary bdi, .task.plain bdi") == labels
    type_filter(browser, "<IMG")
    assert matches(browser) == "4 of 4 tasks"


def test_texts_of_either_direction_are_shown(show):
    """Arabic, Hebrew and others are labels like any, isolated from what stands beside them."""
    labels = ["train-مرحبا-1", "train-日本-👩\u200d🚀", "train-שלום"]
    browser = show(plan(*(move(label) for label in sorted(labels))))
    opened(browser, ".group")
    assert texts(browser, ".task bdi") == sorted(labels)
    isolated = "return getComputedStyle(document.querySelector('.task bdi')).unicodeBidi"
    assert browser.execute_script(isolated) == "isolate"


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("found", [many(80), hostile()], ids=["many", "hostile"])
def test_nothing_is_wider_than_the_screen(show, found: dict[str, Any], size: tuple[int, int]):
    """With everything open, the page does not scroll sideways at a desk's or a phone's width."""
    long = {"LONG": ["x" * 500, None], "SPACED": ["a b " * 200, "c"]}
    wide = move("l" * 200, kind="k" * 120, env=long, to={"pool": "p" * 200, "implementation": None})
    browser = show({**found, "moves": [*found["moves"], wide]}, size)
    open_all(browser)
    assert "xxx" in " ".join(texts(browser, ".task td"))
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]


def test_a_keyboard_is_enough(show):
    """Tab goes from the filter over the button to the groups; Enter opens them and their tasks."""
    browser = show(plan(move("a-1", env={"A": ["1", "2"]}), move("a-2")))
    browser.find_element("id", "filter").click()

    def press(key: str) -> str:
        browser.switch_to.active_element.send_keys(key)
        settle(browser)
        return str(browser.switch_to.active_element.text)

    assert press(Keys.TAB) == "Open all"
    assert press(Keys.TAB).startswith("train")
    press(Keys.ENTER)
    assert count(browser, ".task") == 2
    assert press(Keys.TAB).startswith("a-1")
    press(Keys.ENTER)
    assert count(browser, ".task table") == 1


@pytest.mark.parametrize("name", ["new-scopes", "all-scopes"])
def test_scopes_are_copied(show, name: str):
    """The button puts the scopes on the clipboard, one a line, and says so."""
    found = many(10)
    browser = show(found)
    browser.execute_cdp_cmd(
        "Browser.grantPermissions",
        {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]},
    )
    open_all(browser)
    button = browser.find_element("css selector", f"[data-copy={name}]")
    button.click()
    copied = browser.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert copied.split("\n") == found[name.replace("all-", "").replace("-", "_")]
    assert button.text == "Copied"


def test_it_reads_without_a_script(show):
    """With scripts off, groups open, tell what changes and name their tasks; no dead control."""
    found = plan(
        move("a-1", env={"A": ["1", "2"], "B": ["3", "4"]}),
        move("a-2", env={"A": ["1", "2"]}),
        scopes=["s"],
        new_scopes=["s"],
    )
    browser = show(found)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser = show(None)
        browser.find_element("css selector", ".group summary").click()
        group = browser.find_element("css selector", ".group").text
        shown = [
            each.is_displayed() for each in browser.find_elements("css selector", "button, input")
        ]
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    for text in ("env A", "a-1 B: 3 → 4", "a-2", "Differs by task"):
        assert text in " ".join(group.split())
    assert not any(shown)


def test_print_leaves_the_controls_out(show):
    """On paper there is no filter and no button."""
    browser = show(many(10))
    assert count(browser, ".bar, button") > 0
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert count(browser, ".bar, button") == 0
        assert count(browser, ".group") > 0
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
