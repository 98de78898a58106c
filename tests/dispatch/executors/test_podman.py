"""Jobs in containers of a real podman, where there is one that can run a container."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_jobs import Bench, job

from needs import lacking, needs
from taskgraph_workers.dispatch.executors.local import LocalExecutor
from taskgraph_workers.dispatch.message import key_of
from taskgraph_workers.model import Dispatch

KEY = key_of("r", 1)
IMAGE = "localhost/tw-test/trainer:1"

# As little as can be asked of the machine: no network, no limits, files copied and not laid over.
ENGINE = """
[containers]
default_ulimits = ["nofile=1000:1000", "nproc=1000:1000"]
netns = "none"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
"""
STORAGE = '[storage]\ndriver = "vfs"\nrunroot = "{0}/run"\ngraphroot = "{0}/graph"\n'

#: What the image does.
TRAINER = """
echo '{"name": "imagesDownloaded", "at": 5}' >> "$TRAINING_PROGRESS_FILE"
echo "$TRAINING_RUN $TRAINING_IMAGES_CONTAINER $GPUS $HOME"
until [ -e /taskgraph-workers/go ]; do sleep 0.1; done
exit 3
"""


def image() -> bytes:
    """The files of an image with a shell in it: busybox, and what it is linked to."""
    busybox = needs("busybox")
    linked = subprocess.run(["ldd", busybox], capture_output=True, text=True, check=False).stdout
    libraries = [word for word in linked.split() if word.startswith("/")]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for library in libraries:
            tar.add(os.path.realpath(library), library)
        for name in ("sh", "sleep"):
            tar.add(os.path.realpath(busybox), f"bin/{name}")
    return packed.getvalue()


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Return the environment of a podman of its own, with the image in it."""
    tmp_path = tmp_path_factory.mktemp("podman")
    podman = needs("podman")
    needs("runc")
    (tmp_path / "engine.conf").write_text(ENGINE)
    (tmp_path / "storage.conf").write_text(STORAGE.format(tmp_path / "podman"))
    env = {
        **os.environ,
        "CONTAINERS_CONF": str(tmp_path / "engine.conf"),
        "CONTAINERS_STORAGE_CONF": str(tmp_path / "storage.conf"),
    }
    change = f"CMD {json.dumps(['/bin/sh', '-c', TRAINER])}"
    subprocess.run([podman, "import", "-c", change, "-", IMAGE], env=env, input=image(), check=True)
    tried = [podman, "run", "--rm", IMAGE, "/bin/sh", "-c", "exit 42"]
    run = subprocess.run(tried, env=env, capture_output=True, text=True, check=False)
    if run.returncode != 42:
        lacking(f"podman can run no container here: {run.stderr.strip()}")
    yield env
    subprocess.run([podman, "rm", "--all", "--force"], env=env, check=True, capture_output=True)


@pytest.mark.service
def test_a_real_container(bench: Bench, environ: dict[str, str]):
    """It is told its values, tells progress, outlives its supervisor, and tells how it ended."""
    executor = LocalExecutor(bench.state, Dispatch(engine="podman"), environ)
    env = {"TRAINING_IMAGES_CONTAINER": "a 'b' $(c)", "GPUS": "", "HOME": "/elsewhere"}
    executor.submit(job(image=IMAGE, env=env))
    progress = Path(bench.at().at("progress"))
    bench.until((progress / "run-0.jsonl").exists)
    bench.kill_supervisor()
    assert executor.poll([KEY])[KEY].phase == "running"
    (progress / "go").touch()
    ended = bench.ended(executor)
    assert (ended.phase, ended.run, ended.exit_code) == ("failed", 0, 3)
    assert ("imagesDownloaded", 5.0) in [(f.name, f.at) for f in executor.progress(KEY)]
    assert Path(bench.at().at("output.log")).read_text() == "0 a 'b' $(c)  /elsewhere\n"


@pytest.mark.service
def test_a_real_container_is_canceled(bench: Bench, environ: dict[str, str]):
    """It is stopped and removed."""
    executor = LocalExecutor(bench.state, Dispatch(engine="podman"), environ, grace_s=1)
    executor.submit(job(image=IMAGE))
    bench.until(lambda: Path(bench.at().at("progress/run-0.jsonl")).exists())
    executor.cancel(KEY)
    assert bench.ended(executor).phase == "canceled"
    left = [needs("podman"), "ps", "--all", "--quiet"]
    assert subprocess.run(left, env=environ, capture_output=True, check=True).stdout == b""


@pytest.mark.service
def test_a_real_image_that_can_not_be_had(bench: Bench, environ: dict[str, str]):
    """Podman's own words say why it waits; a training that ends with its 125 has failed."""
    executor = LocalExecutor(bench.state, Dispatch(engine="podman"), environ)
    executor.submit(job(image="localhost:1/tw-test/none:1"))
    bench.until(lambda: bench.at().has("trouble.json"))
    status = executor.poll([KEY])[KEY]
    assert (status.phase, status.run) == ("queued", 0)
    assert "podman could not start it: Error: " in status.reason
    assert "localhost:1/tw-test/none:1" in status.reason
    executor.cancel(KEY)
    assert bench.ended(executor).phase == "canceled"
    gone = Dispatch(engine="podman", engine_options=("--rm", "--entrypoint", "/no"))
    executor = LocalExecutor(bench.state, gone, environ)
    executor.submit(job(3, image=IMAGE))
    ended = bench.ended(executor, 3)
    assert (ended.phase, ended.exit_code) == ("failed", 127)
    assert ended.reason.startswith("it ended with exit code 127: Error: ")
    options = ("--entrypoint", '["/bin/sh", "-c", "exit 125"]')
    executor = LocalExecutor(
        bench.state, Dispatch(engine="podman", engine_options=options), environ
    )
    executor.submit(job(2, image=IMAGE))
    ended = bench.ended(executor, 2)
    assert (ended.phase, ended.exit_code) == ("failed", 125)
    assert ended.reason == "it ended with exit code 125"
