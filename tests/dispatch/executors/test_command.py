"""A site's own commands: what they are told, and what is made of their answers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from local_jobs import job

from taskgraph_workers.dispatch.executors.base import AskedToGo, Impossible, NotNow, Unreachable
from taskgraph_workers.dispatch.executors.command import (
    CommandExecutor,
    env_file,
    filled,
    read_status,
)
from taskgraph_workers.dispatch.message import key_of
from taskgraph_workers.dispatch.model import Progress, Status
from taskgraph_workers.model import Commands

KEY = key_of("r", 1)

#: Writes down how it was called, and answers as the file named after its first argument says.
SITE = """
import json, os, sys
act, *words = sys.argv[1:]
with open("calls", "a") as opened:
    print(json.dumps([act, *words]), file=opened)
if act == "submit":
    open("env", "w").write(json.dumps(dict(os.environ)))
    open("file", "w").write(open(words[-1]).read())
said = json.loads(open("answers").read()).get(act, "")
said = said.pop(0) if isinstance(said, list) else said
code, _, text = said.partition(" ") if said[:1].isdigit() else ("0", "", said)
print(text, file=sys.stderr if int(code) else sys.stdout)
sys.exit(int(code))
"""


class Site:
    """A site whose commands answer as a test says: output, or a code and standard error."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "site.py").write_text(SITE)
        self.answers()

    def answers(self, **said: Any) -> None:
        (self.folder / "answers").write_text(json.dumps(said))

    def executor(self, **given_: Any) -> CommandExecutor:
        run = (sys.executable, "site.py")
        words = {
            "submit": (*run, "submit", "{key}", "{image}", "{sku}", "{worker}", "{pool}",
                       "{max-run-time}", "{env-file}"),
            "find": (*run, "find", "{key}"),
            "poll": (*run, "poll", "{key}"),
            "cancel": (*run, "cancel", "{handle}"),
            "release": (*run, "release", "{handle}"),
        }  # fmt: skip
        commands = Commands("site", **{"timeout_s": 20, **words, **given_})
        return CommandExecutor(commands, self.folder / "state")

    @property
    def calls(self) -> list[list[str]]:
        file = self.folder / "calls"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TASKGRAPH_WORKERS_DATABASE", "postgresql://me:secret@host")
    return Site(tmp_path)


def test_submit(site: Site):
    """It is looked for first; then the site's command gets names as words, and values as env."""
    hostile = {"TRAINING_IMAGES_CONTAINER": "-x 'a' $(c)\n", "GPUS": "0 1"}
    wanted = {"WORKSPACE": {"detect": "inherited"}}
    of = job(env=hostile, detect=wanted, max_run_time_s=60)
    assert site.executor().submit(of) == KEY
    find, (act, *words) = site.calls
    assert (find, act) == (["find", KEY], "submit")
    assert words[:-1] == [KEY, "a/b", "ND6", "b-gpu", "p/b-gpu", "60"]
    env = json.loads((site.folder / "env").read_text())
    assert {name: env[name] for name in hostile} == hostile
    names = "GPUS TRAINING_ATTEMPT TRAINING_IMAGES_CONTAINER WORKSPACE"
    assert (env["TASKGRAPH_WORKERS_ENV"], env["TASKGRAPH_WORKERS_MAX_RUN_TIME"]) == (names, "60")
    assert "secret" not in str(env)
    assert not Path(words[-1]).exists()
    script = (
        f'{(site.folder / "file").read_text()}\nprintf %s "$TRAINING_IMAGES_CONTAINER$WORKSPACE"'
    )
    run = ["sh", "-c", script]
    shell = subprocess.run(run, env={"WORKSPACE": "7"}, capture_output=True, text=True, check=False)
    assert shell.stdout == hostile["TRAINING_IMAGES_CONTAINER"] + "7"


def test_submit_of_what_is_there(site: Site):
    """Nothing is started."""
    site.answers(find="i-123")
    assert site.executor().submit(job()) == KEY
    assert site.calls == [["find", KEY]]


@pytest.mark.parametrize("code", ["1", "2", "75", "127"])
def test_submit_that_fails(site: Site, code: str):
    """Nobody knows then: it is looked for again, and adopted or tried later. Values stay hidden."""
    of = job(env={"TRAINING_IMAGES_CONTAINER": "images-3"})
    site.answers(submit=f"{code} no quota for images-3")
    with pytest.raises(Unreachable, match=f"submit failed: exit code {code}: no quota for ..."):
        site.executor().submit(of)
    site.answers(submit=f"{code} exists", find=["", "i-1"])
    site.answers(submit=f"{code} exists", find="i-1")
    assert site.executor().submit(of) == KEY


def test_submit_that_conflicts(site: Site):
    """Find did not see it at first: the second look does."""
    counter = "import os, sys\nif os.path.exists('seen'): print('i-1')\nopen('seen', 'w')"
    site.answers(submit="1 already exists")
    executor = site.executor(find=(sys.executable, "-c", counter))
    assert executor.submit(job()) == KEY


def test_submit_that_says_never(site: Site):
    """By EX_DATAERR, with its reason."""
    site.answers(submit="65 no such size")
    with pytest.raises(Impossible, match="exit code 65: no such size"):
        site.executor().submit(job())


def test_what_would_be_an_option(site: Site):
    """A name of the configuration that begins with a hyphen, too, is never one."""
    with pytest.raises(Impossible, match="'-x' would be taken for an option"):
        site.executor().submit(job(sku="-x"))
    assert filled(("--size={sku}", "a"), {"sku": "-x"}) == ("--size=-x", "a")


@pytest.mark.parametrize(
    ("answer", "found"),
    [("", None), ("i-1", KEY), ("  i-1\n", KEY), ("1 login", None), ("i-1\ni-2", None)],
)
def test_find(site: Site, answer: str, found: str | None):
    """Only silence with exit code 0 says that there is none; two are a reason to stop."""
    site.answers(find=answer)
    if answer in ("1 login", "i-1\ni-2"):
        with pytest.raises(Unreachable):
            site.executor().find(KEY)
    else:
        assert site.executor().find(KEY) == found


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("running", Status("running")),
        (' "queued"\n', Status("queued")),
        ('{"phase": "failed", "exit_code": "3"}', Status("failed", exit_code=3)),
        (
            '{"phase": "succeeded", "machine": "m", "run": 2, "reason": "r", "exit_code": 0}',
            Status("succeeded", 2, "m", "r", 0),
        ),
        ('{"phase": "lost", "machine": null, "exit_code": ""}', Status("lost")),
    ],
)
def test_answers_of_poll(answer: str, status: Status):
    """A word, or an object."""
    assert read_status(answer, 1.0) == (status, ())


@pytest.mark.parametrize(
    "answer",
    [
        *("", "null", "VM running", "unknown", "[]", "{", '{"phase": "done"}', '{"phase": []}'),
        *('{"phase": "running", "run": -1}', '{"phase": "running", "run": true}'),
        *('{"phase": "running", "machine": 5}', '{"phase": "failed", "exit_code": "x"}'),
        *("[" * 100_000, "\ufeffrunning", "running\0"),
        *(f'{{"phase": "running", "machine": "{x}"}}' for x in ("\\ud800", "a\\u0000", "a\\nb")),
        *(f'{{"phase": "failed", "exit_code": {x}}}' for x in (2**31, '"99999999999"', '"²"')),
        f'{{"phase": "running", "run": {2**31}}}',
        *('{"phase": "failed", "exit_code": 1.5}', '{"phase": "running", "progress": 5}'),
    ],
)
def test_what_is_no_answer_of_poll(site: Site, answer: str):
    """It is unknown, never failed; nor is what a failing command says."""
    site.answers(poll=answer)
    assert site.executor().poll([KEY])[KEY].phase == "unknown"
    site.answers(poll="Deallocated")
    assert site.executor().poll([KEY])[KEY].reason.endswith("lost: 'Deallocated'")
    site.answers(poll="1 running")
    assert site.executor().poll([KEY])[KEY] == Status(
        "unknown", reason="poll failed: exit code 1: running"
    )


@given(st.text())
def test_no_answer_breaks_poll(answer: str):
    """Whatever it says is read, or said to be no answer."""
    try:
        status, _ = read_status(answer, 0.0)
    except ValueError:
        return
    assert status.phase in {"queued", "running", "succeeded", "failed", "canceled", "lost"}


def test_progress(site: Site):
    """The command may tell of machines, which are its site's; not of the end."""
    told = [{"name": "trainingVmCreated", "at": 5}, {"name": "trainingFailed"}, {"name": "x"}, 5]
    site.answers(poll=json.dumps({"phase": "running", "run": 1, "progress": told}))
    executor = site.executor()
    (first, second) = executor.progress(KEY)
    assert (first, second.name, second.run) == (Progress("trainingVmCreated", 5.0, 1), "x", 1)
    executor.poll([KEY])
    assert [fact.name for fact in executor.progress(KEY)] == ["trainingVmCreated", "x"]
    assert len(site.calls) == 2
    site.answers(poll="1 no")
    with pytest.raises(Unreachable):
        list(site.executor().progress(KEY))


def test_many_at_once(site: Site):
    """A slow client is asked about several jobs at the same time."""
    executor = site.executor(
        poll=("sh", "-c", "echo asks >> log; sleep 0.5; echo ends >> log; echo running", "{key}")
    )
    found = executor.poll(key_of("r", n) for n in range(8))
    assert {status.phase for status in found.values()} == {"running"}
    log = (site.folder / "log").read_text().split()
    assert (log[:2], len(log)) == (["asks", "asks"], 16)
    assert executor.poll([]) == {}


def test_cancel_and_release(site: Site):
    """Each is asked only where there is something, by what find calls it."""
    executor = site.executor()
    executor.cancel(KEY)
    executor.release(KEY)
    assert {act for act, *_ in site.calls} == {"find"}
    site.answers(find="i-1")
    executor.cancel(KEY)
    assert site.calls[-1] == ["cancel", "i-1"]
    with pytest.raises(AskedToGo, match="still there"):
        executor.release(KEY)
    assert ["release", "i-1"] in site.calls
    site.answers(find="-rf")
    with pytest.raises(Unreachable, match="taken for an option"):
        executor.cancel(KEY)
    site.answers(find="1 down")
    for act in (executor.cancel, executor.release):
        with pytest.raises(Unreachable):
            act(KEY)


def test_without_release(site: Site):
    """Then nothing is let go of, and no machine is said to be gone."""
    executor = site.executor(release=())
    executor.release(KEY)
    assert site.calls == []


def test_limits(site: Site):
    """A command that hangs, or never stops talking, is ended, with all that it started."""
    hangs = site.executor(find=("sh", "-c", "sleep 60 & wait", "{key}"), timeout_s=1)
    with pytest.raises(Unreachable, match="no answer within 1 s"):
        hangs.find(KEY)
    talks = site.executor(find=("sh", "-c", "yes", "{key}"))
    with pytest.raises(Unreachable, match="it said more than 1048576 bytes"):
        talks.find(KEY)
    missing = site.executor(find=("no-such-client", "{key}"))
    with pytest.raises(Unreachable, match="no-such-client can't be run"):
        missing.find(KEY)


def test_a_submit_that_hangs(site: Site):
    """One that had started the job is found; one that had not is nobody's to know."""
    hangs = ("sh", "-c", 'echo "$1" >> started; sleep 60', "sh", "{key}")
    finds = ("sh", "-c", "test ! -e started || cat started", "sh", "{key}")
    executor = site.executor(submit=hangs, find=finds, timeout_s=1)
    assert executor.submit(job()) == KEY
    assert executor.submit(job()) == KEY
    assert (site.folder / "started").read_text() == f"{KEY}\n"
    with pytest.raises(NotNow, match="submit failed: no answer within 1 s"):
        site.executor(submit=hangs, find=("true", "{key}"), timeout_s=1).submit(job(key="k2"))


@pytest.mark.parametrize(
    ("prints", "why"),
    [
        ("head -c 10000000 /dev/zero", "poll failed: it said more than 1048576 bytes"),
        ("head -c 1000 /dev/urandom", "poll's answer can't be read: its phase is none of"),
        ("head -c 10000000 /dev/zero >&2", "poll failed: it said more than 1048576 bytes"),
        ("exec >&- 2>&-; sleep 60", "poll failed: no answer within 1 s"),
        ("kill -9 $$", "poll failed: signal 9"),
    ],
)
def test_a_poll_that_prints_anything(site: Site, prints: str, why: str):
    """It is unknown, and takes neither memory nor time."""
    executor = site.executor(poll=("sh", "-c", prints, "{key}"), timeout_s=1)
    status = executor.poll([KEY])[KEY]
    assert status.phase == "unknown"
    assert status.reason.startswith(why)


@given(st.dictionaries(st.from_regex(r"[A-Z]{1,8}", fullmatch=True), st.text()))
def test_every_value_comes_through_the_file(env: dict[str, str]):
    """As it is, whatever it is; nothing of it is run."""
    env = {f"V_{n}": v.replace("\0", "") for n, v in env.items()}
    env = {n: v for n, v in env.items() if v.encode("utf-8", "replace").decode() == v}
    shown = "".join(f'printf "%s\\0" "${name}"\n' for name in env)
    script = env_file(job(env=env)) + shown
    run = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    assert run.stdout.decode().split("\0")[:-1] == list(env.values())
