"""A real browser, driven as W3C WebDriver says (w3.org/TR/webdriver2): JSON over HTTP, no more.

The packages that wrap this ask for much, and old Pythons can't resolve what they ask for.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

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
#: Keys that are no characters, as WebDriver writes them.
BACKSPACE, TAB, ENTER, CONTROL, RELEASE = "\ue003", "\ue004", "\ue007", "\ue009", "\ue000"

_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
# A proxy for the world has no business here.
_OPEN = build_opener(ProxyHandler({})).open


class Browser:
    """Chromium with one tab, which remembers what its pages log and ask the network for."""

    def __init__(self, chromium: str, chromedriver: str, profile: Path) -> None:
        self._driver = subprocess.Popen(
            [chromedriver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._base = f"http://127.0.0.1:{self._port()}/session"
        options = {"binary": chromium, "args": [*FLAGS, f"--user-data-dir={profile}"]}
        wanted = {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "timeouts": {"script": 60_000},
        }
        session = self._send("POST", "", {"capabilities": {"alwaysMatch": wanted}})
        self._base += f"/{session['sessionId']}"

    def _port(self) -> int:
        assert self._driver.stdout is not None
        for line in self._driver.stdout:
            found = re.search(r"started successfully on port (\d+)", line)
            if found:
                return int(found[1])
        raise AssertionError(f"chromedriver ended with {self._driver.wait()}")

    def close(self) -> None:
        """End the browser, and what drives it."""
        try:
            self._send("DELETE", "")
        finally:
            self._driver.terminate()
            self._driver.communicate()

    def _send(self, method: str, path: str, body: Any = None) -> Any:
        data = json.dumps(body or {}).encode() if method == "POST" else None
        request = Request(self._base + path, data, {"Content-Type": "application/json"})
        request.method = method
        with _OPEN(request, timeout=120) as answer:
            return json.load(answer)["value"]

    # --- what the tests say ---

    def get(self, url: str) -> None:
        """Go to a page, and wait until it is loaded."""
        self._send("POST", "/url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        """What the body of a JavaScript function returns; of a promise, what it comes to."""
        body = {"script": script, "args": list(arguments)}
        return self._send("POST", "/execute/sync", body)

    def settle(self) -> None:
        """Wait for what elements do when they have been opened: the event comes later."""
        self.run("return new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")

    def click(self, selector: str, settle: bool = True) -> None:
        """Click on each element that is found, as a person would."""
        for element in self._find(selector):
            self._send("POST", f"/element/{element}/click")
        if settle:  # which takes a page that runs scripts
            self.settle()

    def press(self, keys: str) -> None:
        """Press keys where the focus is."""
        focused = self._send("GET", "/element/active")[_ELEMENT]
        self._send("POST", f"/element/{focused}/value", {"text": keys})
        self.settle()

    def shown(self, selector: str) -> list[str]:
        """The texts of the elements that are seen, as they are seen."""
        found = [
            self._send("GET", f"/element/{element}/text")
            for element in self._find(selector)
            if self._send("GET", f"/element/{element}/displayed")
        ]
        return [str(text) for text in found]

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements that are found, seen or not."""
        script = "return [...document.querySelectorAll(arguments[0])].map((x) => x.textContent)"
        return [str(text) for text in self.run(script, selector)]

    def count(self, selector: str) -> int:
        """How many elements that are found are shown."""
        script = (
            "return [...document.querySelectorAll(arguments[0])]"
            ".filter((each) => each.checkVisibility()).length"
        )
        return int(self.run(script, selector))

    def devtools(self, command: str, **parameters: Any) -> Any:
        """A command of Chromium's own protocol."""
        return self._send("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def log(self, kind: str) -> list[Any]:
        """What was logged since the last time: ``browser`` or ``performance``."""
        return list(self._send("POST", "/se/log", {"type": kind}))

    def asked(self) -> set[str]:
        """The addresses that pages asked for since the log was read."""
        events = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return {
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        }

    def _find(self, selector: str) -> list[str]:
        body = {"using": "css selector", "value": selector}
        return [each[_ELEMENT] for each in self._send("POST", "/elements", body)]
