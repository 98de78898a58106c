"""Jobs by apptainer, which are plain processes: with stand-ins for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from engine_jobs import KEY
from local_jobs import Bench, job

from taskgraph_workers.dispatch.executors.local import LocalExecutor
from taskgraph_workers.model import Dispatch

#: As little of apptainer as there can be: its pull fails as often as a file says.
APPTAINER = """#!/bin/sh
case $1 in
version) echo 1.4.0 ;;
pull)
    echo "$*" >>{0}/pulls
    if [ -e {0}/slow ]; then sleep 60; fi
    if [ "$(wc -l <{0}/pulls)" -le "$(cat {0}/fails)" ]; then
        echo "FATAL:   While making image from oci registry: no route to host" >&2
        exit 255
    fi
    echo image >"$3"
    ;;
run)
    echo "$APPTAINERENV_TRAINING_RUN" >>{0}/runs
    until [ -e {0}/go ]; do sleep 0.02; done
    cat {0}/state/jobs/*/image.sif
    exit 255
    ;;
esac
"""


def apptainer(bench: Bench, fails: int, waits: bool = False) -> LocalExecutor:
    if not waits:
        bench.go.touch()
    programs = bench.folder / "bin"
    programs.mkdir()
    script = programs / "apptainer"
    script.write_text(APPTAINER.format(bench.folder))
    script.chmod(0o755)
    bench.folder.joinpath("fails").write_text(str(fails))
    environ = {"PATH": f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin"}
    made = LocalExecutor(bench.state, Dispatch(engine="apptainer"), environ, grace_s=5)
    made.rest_s = 0.01
    return made


def test_an_image_that_apptainer_can_not_have_now(bench: Bench):
    """It is pulled apart from the run, and again; what the trainer ends with is its own."""
    executor = apptainer(bench, fails=3)
    executor.submit(job())
    ended = bench.ended(executor)
    assert (ended.phase, ended.exit_code) == ("failed", 255)
    assert ended.reason == "it ended with exit code 255"
    assert len((bench.folder / "pulls").read_text().splitlines()) == 4
    assert Path(bench.at().at("output.log")).read_text().endswith("image\n")
    assert not bench.at().has("image.sif")


def test_an_image_that_apptainer_can_never_have(bench: Bench):
    """No training has failed: there was none, and apptainer's own words say why."""
    executor = apptainer(bench, fails=99)
    executor.submit(job(retries=2))
    ended = bench.ended(executor)
    assert (ended.phase, ended.run, ended.exit_code) == ("failed", 0, None)
    assert ended.reason == (
        "apptainer could not start it: FATAL:   While making image from oci registry: "
        "no route to host"
    )
    assert len((bench.folder / "pulls").read_text().splitlines()) == 10
    assert bench.at().runs() == []


@pytest.mark.parametrize("how", ["canceled", "killed"])
def test_apptainer_is_ended_while_it_pulls(bench: Bench, how: str):
    """It never ran: canceled it ends at once, and without its supervisor it begins once more."""
    executor = apptainer(bench, fails=0)
    (bench.folder / "slow").touch()
    executor.submit(job())
    bench.until((bench.folder / "pulls").exists)
    assert executor.poll([KEY])[KEY].phase == "queued"
    (bench.folder / "slow").unlink()
    if how == "canceled":
        executor.cancel(KEY)
        ended = bench.ended(executor)
        assert (ended.phase, ended.exit_code, ended.reason) == ("canceled", None, "it never ran")
    else:
        bench.kill_supervisor()
        ended = bench.ended(executor)
        assert (ended.phase, ended.run, ended.exit_code) == ("failed", 0, 255)
    assert bench.trainers() == []


def test_it_is_killed_while_it_pulls_for_another_run(bench: Bench):
    """What is left of that is ended, too, and does not hold up the run."""
    executor = apptainer(bench, fails=0, waits=True)
    executor.answer_s = 1.0
    executor.submit(job(retries=1))
    bench.until((bench.folder / "runs").exists)
    (bench.folder / "slow").touch()
    bench.kill_supervisor()
    executor.poll([KEY])
    bench.until(lambda: len((bench.folder / "pulls").read_text().splitlines()) == 2)
    (bench.folder / "slow").unlink()
    bench.kill_supervisor()
    bench.go.touch()
    ended = bench.ended(executor)
    assert (ended.phase, ended.run, ended.exit_code) == ("failed", 1, 255)
    assert (bench.folder / "runs").read_text() == "0\n1\n"


def test_apptainer_goes_by(bench: Bench):
    """As a process: its variables come by the prefix."""
    programs = bench.folder / "bin"
    programs.mkdir()
    script = programs / "apptainer"
    script.write_text(
        '#!/bin/sh\n[ "$1" = version ] && echo 1.4.0 && exit\n'
        '[ "$1" = pull ] && exit\n'
        'echo "$* $APPTAINERENV_A $APPTAINERENV_TRAINING_RUN $APPTAINERENV_GPUS"\n'
        "exit 4\n"
    )
    script.chmod(0o755)
    path = f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin"
    environ = {"PATH": path, "CUDA_VISIBLE_DEVICES": "5"}
    executor = LocalExecutor(bench.state, Dispatch(engine="apptainer"), environ)
    executor.submit(job(env={"A": "a  b"}, detect={"GPUS": {"detect": "gpu-indices"}}))
    assert bench.ended(executor).exit_code == 4
    said = Path(bench.at().at("output.log")).read_text()
    assert said.endswith(f"--nv {bench.at().at('image.sif')} a  b 0 0\n"), said
    told = bench.at().read("job.json")
    assert told is not None
    assert told["env"]["CUDA_VISIBLE_DEVICES"] == "5"
