"""The script: what it says, and what it does, with a stand-in for the scheduler."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from needs import needs
from scheduler_stand_in import SHELL, WORKER, StandIn, running, start, text
from taskgraph_workers.errors import WorkersError
from taskgraph_workers.launch.script import Script, is_ours, margin_of, render
from taskgraph_workers.schedulers.base import Job


def test_it_ends_with_its_workers(tmp_path: Path):
    """Workers that end by themselves end the script, with status 0."""
    with running(text(start(3, "echo done $WORKER_NAME >> log")), tmp_path) as run:
        status, said = run.end()
    assert (status, sorted(run.log)) == (0, [f"done w.j77.{i}.here" for i in range(3)])
    assert "all ended, with status 0" in said


def test_what_the_user_sets_stays(tmp_path: Path):
    """Variables and functions of the user's are none of the script's, read-only ones either."""
    setup = (
        "export job=a count=b name=c status=d index=e code=f",
        "readonly folder=/nowhere pids=1 margin=2 until=false work=w",
        "say() { exit 9; }; look() { exit 9; }; end() { exit 9; }; export -f say",
    )
    command = "echo $job $count $name $status $index $code $(type -t say) >> log"
    script = Script(Job(), (start(2, command),), setup=setup, every_s=0.2)
    with running(render(script, StandIn()), tmp_path) as run:  # type: ignore[arg-type]
        status, said = run.end()
    assert (status, run.log) == (0, ["a b c d e f function"] * 2), said


def test_a_stop_file_ends_them_warmly(tmp_path: Path):
    """Every worker finishes its task; the file is taken away again."""
    with running(text(start(3), start(1, name="x")), tmp_path) as run:
        run.wait_for("start", 4)
        stop = tmp_path / "workers-77.stop"
        stop.touch()
        status, said = run.end()
    assert (status, len([line for line in run.log if line.startswith("end")])) == (0, 4)
    assert f"there is a file {stop}" in said
    assert not stop.exists()


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "USR1", "USR2", "ALRM"])
def test_a_signal_ends_them_warmly(tmp_path: Path, name: str):
    """Whatever a scheduler sends to the script alone, workers end warmly, and just once."""
    with running(text(start(2)), tmp_path) as run:
        run.wait_for("start", 2)
        for _ in range(2):
            os.kill(run.process.pid, getattr(signal, f"SIG{name}"))
        status, said = run.end()
    assert (status, sum(line.startswith("end") for line in run.log)) == (0, 2)
    assert said.count(f"got signal {name}") == 1


def test_a_signal_to_everything_while_they_are_asked(tmp_path: Path):
    """What asks them outlives it: without that nobody would ask them again."""
    slow = SHELL.replace("{ kill -TERM", "{ (sleep 0.5; kill -TERM").replace("null; }", "null) & }")
    script = Script(Job(), (start(2, f"trap '' USR1; {WORKER}"),), every_s=0.2)
    text = render(script, StandIn(shell=slow))  # type: ignore[arg-type]
    with running(text, tmp_path) as run:
        run.wait_for("start", 2)
        os.kill(run.process.pid, signal.SIGALRM)
        run.until(lambda: "got signal ALRM" in run.said)
        os.killpg(run.process.pid, signal.SIGUSR1)
        status, _ = run.end()
    assert (status, sum(line.startswith("end") for line in run.log)) == (0, 2)


def test_the_margin_ends_them_warmly(tmp_path: Path):
    """At the deadline they are asked to end, though nobody says anything."""
    with running(text(start(2), walltime_s=3600, margin_s=3599), tmp_path) as run:
        status, said = run.end()
    assert (status, sum(line.startswith("end") for line in run.log)) == (0, 2)
    assert "the time limit is 3599 s ahead" in said
    assert not (tmp_path / "requeues").exists()


@pytest.mark.parametrize(
    ("before", "requeues", "count"), [("", 1, 1), ("1", 2, 1), ("1", 1, 0), ("", 0, 0)]
)
def test_a_job_is_requeued_at_its_margin(tmp_path: Path, before: str, requeues: int, count: int):
    """As often as it may, once its workers have ended."""
    script = text(start(1), walltime_s=3600, margin_s=3599, requeues=requeues)
    with running(script, tmp_path, RESTARTS=before) as run:
        status, said = run.end()
    assert status == 0
    assert sum(line.startswith("end") for line in run.log) == 1
    file = tmp_path / "requeues"
    assert (file.read_text().count("requeued") if file.exists() else 0) == count
    assert ("not requeued" in said) == (before == "1" and requeues == 1)


def test_no_requeue_where_somebody_ends_it(tmp_path: Path):
    """A stop is a stop."""
    with running(text(start(1), walltime_s=3600, requeues=9), tmp_path) as run:
        run.wait_for("start")
        (tmp_path / "workers-77.stop").touch()
        run.end()
    assert not (tmp_path / "requeues").exists()


def test_a_requeue_does_not_wait_for_ever(tmp_path: Path):
    """A worker that is not done at the last call is given up, so that the job does come again."""
    stuck = "echo start >> log; trap '' TERM; while :; do sleep 0.1; done"
    script = text(start(1, stuck), walltime_s=17, margin_s=16, requeues=1)
    with running(script, tmp_path) as run:
        run.until((tmp_path / "requeues").exists)
        run.process.wait(timeout=30)
        os.killpg(run.process.pid, signal.SIGKILL)
    assert (tmp_path / "requeues").read_text().count("requeued") == 1
    assert not any(line.startswith("end") for line in run.log)


def test_the_end_of_the_work_ends_them(tmp_path: Path):
    """Once the command ends well; where it fails, that is told, and the workers go on."""
    until = "while [ ! -e over ]; do sleep 0.1; done"
    with running(text(start(2), until=until), tmp_path) as run:
        run.wait_for("start", 2)
        (tmp_path / "over").touch()
        status, said = run.end()
    assert (status, sum(line.startswith("end") for line in run.log)) == (0, 2)
    assert "the work is done" in said


def test_a_command_for_the_work_that_fails(tmp_path: Path):
    """It ends nothing; what it ended with is told, and when it is tried again."""
    with running(text(start(1), until="exit 3"), tmp_path) as run:
        run.wait_for("start")
        run.until(lambda: "failed with status 3; next try in 60 s" in run.said)
        (tmp_path / "workers-77.stop").touch()
        status, said = run.end()
    assert (status, "the work is done:" in said) == (0, False)
    assert "there is a file" in said


def test_nothing_is_left_running(tmp_path: Path):
    """What would tell that the work is done goes with the workers, and so does what it starts."""
    with running(text(start(1), until="sleep 300"), tmp_path) as run:
        run.wait_for("start")
        (tmp_path / "workers-77.stop").touch()
        assert run.end()[0] == 0


def test_a_worker_that_dies(tmp_path: Path):
    """It is told with its group, the others go on, and the status says it in the end."""
    dies = start(1, "exit 7", name="fragile")
    with running(text(start(2), dies), tmp_path) as run:
        run.wait_for("start", 2)
        run.until(lambda: len(run.log) == 2)
        (tmp_path / "workers-77.stop").touch()
        status, said = run.end()
    assert (status, sum(line.startswith("end") for line in run.log)) == (7, 2)
    assert "a worker of fragile ended with status 7" in said


def test_a_worker_without_a_trap(tmp_path: Path):
    """That a TERM ends it is no failure, if it was asked to end; else it is one."""
    plain = start(1, "echo start >> log; exec sleep 60")
    with running(text(plain), tmp_path) as run:
        run.wait_for("start")
        (tmp_path / "workers-77.stop").touch()
        assert run.end()[0] == 0
    (tmp_path / "other").mkdir()
    with running(text(start(1, "kill -TERM $$")), tmp_path / "other") as run:
        assert run.end()[0] == 143


def test_setup_comes_first(tmp_path: Path):
    """The user's lines set what workers see, may leave unset variables, and may go elsewhere."""
    setup = ("export FROM_SETUP=$NOT_SET'it is'", "mkdir -p sub && cd sub")
    with running(text(start(1), start(1, "echo $FROM_SETUP >> log"), setup=setup), tmp_path) as run:
        run.until((tmp_path / "sub" / "log").exists)
        log = (tmp_path / "sub" / "log").read_text
        run.until(lambda: log("utf-8").count("\n") == 2)
        (tmp_path / "workers-77.stop").touch()
        assert run.end()[0] == 0
    assert "it is\n" in log("utf-8")


@pytest.mark.parametrize(
    "line",
    [
        "set -euo pipefail",
        "set -f -o noclobber",
        "set -a -m -k",
        "set -o posix",
        "IFS=x0",
        "shopt -s nullglob failglob nocasematch",
        "trap 'exit 9' ERR",
        "set -ET; trap 'false' DEBUG",
    ],
)
@pytest.mark.parametrize("at", ["setup", "BASH_ENV"])
def test_options_of_the_user_change_nothing_behind_his_lines(tmp_path: Path, line: str, at: str):
    """Whatever they leave switched on, the script ends well, and tells of a worker that fails."""
    (tmp_path / "options").write_text(line if at == "BASH_ENV" else "")
    script = text(
        start(2, "[ -z ${every+x} ] && echo done >> log"),
        start(1, "exit 7", name="x"),
        setup=(line,) if at == "setup" else (),
    )
    with running(script, tmp_path, BASH_ENV=str(tmp_path / "options")) as run:
        status, said = run.end()
    assert (status, run.log) == (7, ["done"] * 2)
    assert "a worker of x ended with status 7" in said
    assert said.count("all ended") == 1


def test_texts_reach_workers_as_they_are(tmp_path: Path):
    """Of several lines, with quotes and what a shell would replace."""
    odd = "a \"b\" 'c' $HOME `id`\n\n\\\n  end"
    script = text(start(1, 'printf %s "$ODD" > odd'), texts={"ODD": odd})
    with running(script, tmp_path) as run:
        assert run.end()[0] == 0
    assert (tmp_path / "odd").read_text("utf-8") == odd


@pytest.mark.parametrize(
    "name", ["a b", "it's", '"', "$(touch x)", "`touch x`", "a;touch x", "-n", "*", "\\", "é", "%h"]
)
def test_hostile_names_are_names(tmp_path: Path, name: str):
    """A group's name is told as it is, and runs nothing."""
    with running(text(start(1, 'printf %s "$WORKER_NAME" > name; exit 3', name)), tmp_path) as run:
        status, said = run.end()
    assert (status, (tmp_path / "name").read_text("utf-8")) == (3, f"{name}.j77.0.here")
    assert f"a worker of {name} ended with status 3" in said
    assert sorted(each.name for each in tmp_path.iterdir()) == ["name", "script"]


def test_about_lines_stay_comments(tmp_path: Path):
    """Whatever a title holds, it is no command and no directive."""
    about = ("x\ntouch owned", "flux: --nodes=9", "SBATCH --nodes=9", "\x1b[31m\r\n#flux: -N9")
    script = text(start(1, "true"), about=about)
    with running(script, tmp_path) as run:
        assert run.end()[0] == 0
    assert not (tmp_path / "owned").exists()
    assert re.findall(r"^[^\w\n]*(?:flux|FLUX):.*", script, re.MULTILINE) == []
    assert re.findall(r"^#SBATCH.*", script, re.MULTILINE) == []


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"setup": ("a\nb",)}, "setup: 'a\\nb' has a line break in it"),
        ({"until": "a\0b"}, "has a NUL in it"),
        ({"walltime_s": 60, "margin_s": 60}, "60 s before a time limit of 60 s"),
        ({"requeues": 1}, "hint: say --walltime"),
    ],
)
def test_what_makes_no_script(fields: dict[str, object], told: str):
    """It is refused, with what to do."""
    with pytest.raises(WorkersError) as caught:
        text(start(1), **fields)  # type: ignore[arg-type]
    assert told in str(caught.value)


def test_the_margin_grows_with_the_time():
    """A tenth of it, from half a minute to five."""
    assert [margin_of(s) for s in (60, 600, 6000, 60000)] == [30, 60, 300, 300]


def test_a_script_of_ours_is_known():
    """By its comment, so that no other file is taken for one."""
    assert is_ours(text(start(1)))
    assert not is_ours("#!/bin/bash\necho '# Made by hand'\n")


def test_it_is_clean_bash(tmp_path: Path):
    """Neither bash nor shellcheck has anything to say."""
    script = text(start(2), start(1, name="it's"), until="a 'b'", setup=("cd /tmp || exit",))
    assert_clean(script, tmp_path / "script.sh")


def assert_clean(script: str, file: Path) -> None:
    file.write_text(script, "utf-8")
    subprocess.run(["bash", "-n", str(file)], check=True)
    found = subprocess.run(
        [needs("shellcheck"), "-s", "bash", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout == ""


def test_inside_needs_a_way_to_start_flux():
    """A scheduler that we can't start Flux with is refused."""
    flux = StandIn(name="flux")
    with pytest.raises(WorkersError, match="a job of here can't start flux on its nodes"):
        render(Script(Job(), (start(1, WORKER),)), StandIn(), flux)  # type: ignore[arg-type]
