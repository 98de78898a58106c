"""What runs an image on this machine, and how."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from local_jobs import job

from taskgraph_workers.dispatch.executors.base import Impossible, NotNow, Unreachable
from taskgraph_workers.dispatch.executors.call import Answer
from taskgraph_workers.dispatch.executors.engines import (
    Engines,
    Place,
    Way,
    container_name,
    way_of,
)
from taskgraph_workers.dispatch.message import key_of
from taskgraph_workers.dispatch.model import Job, Start
from taskgraph_workers.model import Dispatch

KEY = key_of("r", 1)
PLACE = Place("/state/jobs/k/progress", "/j/k/env", "/j/k/container", "/j/k/image.sif", 7)
NAME = container_name(KEY, PLACE)
DOWN = Answer(1, "", "Cannot connect to the Docker daemon. Is the docker daemon running?\n")
WORKS = Answer(0, "28.2.2\n")


class Clients:
    """Clients of engines that are installed, and what each answers."""

    def __init__(self, folder: Path, **answers: Answer) -> None:
        self.answers, self.asked, self.now = answers, [], 0.0
        folder.mkdir(exist_ok=True)
        for name in answers:
            (folder / name).write_text("#!/bin/sh\n")
            (folder / name).chmod(0o755)
        self.engines = Engines({"PATH": str(folder)}, lambda: self.now, self.ask)

    def ask(self, argv: tuple[str, ...]) -> Answer:
        name = os.path.basename(argv[0])
        self.asked.append(name)
        return self.answers[name]

    def way(self, of: Job | None = None, **dispatch: Any) -> Way:
        return way_of(of or job(), Dispatch(**dispatch), PLACE, self.engines)


def after(argv: tuple[str, ...], option: str) -> list[str]:
    return [argv[at + 1] for at, word in enumerate(argv) if word == option]


def test_the_first_that_works(tmp_path: Path):
    """A client that can't reach its daemon is none; who works is not asked each time."""
    clients = Clients(tmp_path, podman=DOWN, docker=WORKS, apptainer=WORKS)
    assert clients.way().engine == "docker"
    assert clients.asked == ["podman", "docker"]
    clients.way()
    assert clients.asked == ["podman", "docker", "podman"]
    clients.now = 61.0
    clients.way()
    assert clients.asked[3:] == ["podman", "docker"]


def test_one_that_hangs(tmp_path: Path):
    """It is waited for once a minute, and not with each job."""
    clients = Clients(tmp_path, podman=Answer(None, why="no answer within 10 s"))
    commands = {"a/b": ("train",)}
    for _ in range(3):
        assert clients.way(commands=commands).argv == ("train",)
        with pytest.raises(NotNow, match=r"podman does not work here \(no answer within 10 s\)"):
            clients.way()
    assert clients.asked == ["podman"]
    clients.now = 61.0
    clients.answers["podman"] = WORKS
    assert clients.way().engine == "podman"


@pytest.mark.parametrize("answer", [Answer(0, ""), Answer(0, "<html>"), Answer(125, "1.2\n", "x")])
def test_one_that_answers_anything(tmp_path: Path, answer: Answer):
    """What tells no version, or fails, is no engine that works."""
    with pytest.raises(NotNow, match="podman does not work here"):
        Clients(tmp_path, podman=answer).way()


def test_a_job_of_another_configuration(tmp_path: Path):
    """It is started as it was accepted, by whoever comes to it; what is said here comes second."""
    clients = Clients(tmp_path, docker=DOWN)
    theirs = job(start=Start("none", (), ("theirs",)))
    assert clients.way(theirs, engine="none").argv == ("theirs",)
    assert clients.way(theirs, engine="none", commands={"a/b": ("ours",)}).argv == ("theirs",)
    waiting = job(start=Start("docker"))
    with pytest.raises(NotNow):
        clients.way(waiting, engine="none")
    assert clients.way(waiting, engine="none", commands={"a/b": ("ours",)}).argv == ("ours",)
    clients.answers["docker"] = WORKS
    way = clients.way(job(start=Start("docker", ("--shm-size", "8g"))), engine="none")
    assert way.argv[-3:] == ("--shm-size", "8g", "a/b")


def test_what_is_no_engine_is_not_run(tmp_path: Path):
    """Whatever the job says."""
    clients = Clients(tmp_path, rm=WORKS)
    with pytest.raises(Impossible, match=r"dispatch\.local\.commands"):
        clients.way(job(start=Start("rm")), engine="none")
    assert clients.asked == []


def test_which_one_may_be_said(tmp_path: Path):
    """Then there is no other, and no command instead."""
    clients = Clients(tmp_path, podman=WORKS, docker=DOWN)
    assert clients.way(engine="podman").engine == "podman"
    commands = {"a/b": ("train",)}
    assert clients.way(engine="none", commands=commands).argv == ("train",)
    with pytest.raises(Unreachable, match=r"docker does not work here \(exit code 1: Cannot"):
        clients.way(engine="docker", commands=commands)
    with pytest.raises(Impossible, match="there is no apptainer here"):
        clients.way(engine="apptainer", commands=commands)


def test_a_command_where_no_engine_works(tmp_path: Path):
    """That of the image, else of the image without tag and digest; never the image itself."""
    clients = Clients(tmp_path, docker=DOWN)
    commands = {"a/b": ("any",), "a/b:2": ("two",)}
    for image, argv in (("a/b", "any"), ("a/b:1", "any"), ("a/b:2", "two")):
        way = clients.way(job(image=image), commands=commands)
        assert (way.argv, way.engine, way.progress_at) == ((argv,), "", PLACE.progress)
    with pytest.raises(Unreachable):
        clients.way(job(image="a/bc"), commands=commands)


def test_nothing_at_all(tmp_path: Path):
    """Without any client it can never run, with one that is down later."""
    none, down = Clients(tmp_path / "none"), Clients(tmp_path / "down", docker=DOWN)
    command = "the image a/b has no command: give it one in dispatch.local.commands"
    with pytest.raises(Impossible) as never:
        none.way()
    gone = "there is no podman, docker, apptainer here"
    assert str(never.value) == f"{gone}, and {command}, or install podman, docker or apptainer"
    with pytest.raises(Unreachable, match="docker does not work here") as later:
        down.way()
    assert str(later.value).endswith(f", and {command}, or have it work")


def test_nothing_but_what_the_configuration_allows(tmp_path: Path):
    """What to do is what it allows: no engine where that is none, no command elsewhere."""
    none, down = Clients(tmp_path / "none"), Clients(tmp_path / "down", docker=DOWN)
    with pytest.raises(Impossible) as never:
        down.way(engine="none")
    assert str(never.value) == (
        "the image a/b has no command, and no engine may run it (dispatch.local.engine is none):"
        " give it one in dispatch.local.commands"
    )
    other = ", and dispatch.local.engine allows no other"
    for commands in ({}, {"a/b": ("x",)}):
        with pytest.raises(Impossible) as never:
            none.way(engine="docker", commands=commands)
        assert str(never.value) == f"there is no docker here{other}: install it, or allow another"
        with pytest.raises(Unreachable, match="docker does not work here") as later:
            down.way(engine="docker", commands=commands)
        assert str(later.value).endswith(f"{other}: have it work, or allow another")


@pytest.mark.parametrize("image", ["-v/:/host", "a b", "../a", "a;b", "", "A"])
def test_what_is_no_image_never_gets_there(tmp_path: Path, image: str):
    """Whoever made the job."""
    with pytest.raises(Impossible, match="name is none"):
        Clients(tmp_path, podman=WORKS).way(job(image=image), commands={image: ("x",)})


@pytest.mark.parametrize("engine", ["podman", "docker"])
def test_a_container(tmp_path: Path, engine: str):
    """Named by its key, with the names of its variables, not their values; the image is last."""
    env = {"TRAINING_IMAGES_CONTAINER": "sssecret", "PATH": "/opt/bin", "DOCKER_HOST": "x"}
    of = job(env=env, detect={"WORKSPACE": {"detect": "inherited"}})
    way = Clients(tmp_path, **{engine: WORKS}).way(of, engine_options=("--shm-size", "8g"))
    assert way.argv[:2] == (str(tmp_path / engine), "run")
    assert way.argv[-3:] == ("--shm-size", "8g", "a/b")
    assert after(way.argv, "--name") == [NAME]
    assert after(way.argv, "--env") == [
        "TRAINING_ATTEMPT",
        "TRAINING_IMAGES_CONTAINER",
        "TRAINING_PROGRESS_FILE",
        "TRAINING_RUN",
        "WORKSPACE",
    ]
    assert "sssecret" not in str(way.argv)
    assert way.env == {"TRAINING_IMAGES_CONTAINER": "sssecret", "TRAINING_ATTEMPT": "1"}
    assert (after(way.argv, "--env-file"), way.file) == (
        [PLACE.env_file],
        "PATH=/opt/bin\nDOCKER_HOST=x\n",
    )
    assert after(way.argv, "--volume") == [f"{PLACE.progress}:/taskgraph-workers:Z"]
    assert "--gpus" not in way.argv
    assert "--device" not in way.argv
    assert after(way.argv, "--cidfile") == ["/j/k/container"]
    assert way.stop[1:] == ("stop", "-t", "7", NAME)


@pytest.mark.parametrize(
    "asked",
    [
        {"resources": {"gpus": 4}},
        {"env": {"GPUS": "0 1"}},
        {"detect": {"GPUS": {"detect": "gpu-indices"}}},
    ],
)
def test_gpus_of_a_container(tmp_path: Path, asked: dict[str, Any]):
    """All of them, and what says which: so that both count as on the host."""
    way = Clients(tmp_path, docker=WORKS).way(job(**asked))
    assert after(way.argv, "--gpus") == ["all"]
    assert "CUDA_VISIBLE_DEVICES" in after(way.argv, "--env")
    way = Clients(tmp_path, podman=WORKS).way(job(**asked), engine="podman")
    assert after(way.argv, "--device") == ["nvidia.com/gpu=all"]
    way = Clients(tmp_path, apptainer=WORKS).way(job(**asked), engine="apptainer")
    assert "--nv" in way.argv


@pytest.mark.parametrize("engine", ["apptainer", "singularity"])
def test_apptainer(tmp_path: Path, engine: str):
    """Variables come by its prefix, and the image from a registry."""
    way = Clients(tmp_path, **{engine: WORKS}).way(job(env={"A": "x"}))
    assert way.argv == (
        *(str(tmp_path / engine), "run", "--containall", "--writable-tmpfs"),
        *("--bind", f"{PLACE.progress}:/taskgraph-workers", "/j/k/image.sif"),
    )
    pull = (str(tmp_path / engine), "pull", "--force", "/j/k/image.sif", "docker://a/b")
    assert way.fetch == pull
    assert (way.prefix, way.env["A"]) == (f"{engine.upper()}ENV_", "x")
    assert way.remove == ()


def test_what_an_engine_cannot_take(tmp_path: Path):
    """A volume is parted by colons, and a file of variables by lines."""
    clients = Clients(tmp_path, docker=WORKS)
    odd = Place("/a:b/progress", "/a:b/env", "/a:b/container", "/a:b/image.sif")
    with pytest.raises(Impossible, match="has a colon, comma or blank"):
        way_of(job(), Dispatch(), odd, clients.engines)
    with pytest.raises(Impossible, match="PATH can't have a line break"):
        clients.way(job(env={"PATH": "a\nb"}))
    assert clients.way(job(env={"A": "a\nb"})).env["A"] == "a\nb"
