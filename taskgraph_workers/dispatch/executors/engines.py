"""What runs an image on this machine: a container engine that works, else a command of the site's.

A client alone is no engine: ``docker`` without its daemon can run nothing, so each is asked. The
name of an image is only ever one word in the argv of an engine, behind all options; it is never
executed. Values of env are in no argv, where every user of the machine could read them: an engine
is told their names, and takes the values from its own environment.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Callable

from taskgraph_workers.dispatch.executors.base import Impossible, NotNow, trainer_env
from taskgraph_workers.dispatch.executors.call import Answer, call
from taskgraph_workers.dispatch.images import name_of, start_of
from taskgraph_workers.dispatch.model import Job, Start
from taskgraph_workers.model import ENGINES, Dispatch

# What an engine is asked for its version. The others have no daemon to be without.
_QUESTIONS = {
    "podman": ("info", "--format", "{{.Version.Version}}"),
    "docker": ("info", "--format", "{{.ServerVersion}}"),
}
_PLAIN_QUESTION = ("version",)
_PROBE_S = 10.0
_VERSION = re.compile(r"\d+\.\d")

#: Where a container finds its folder of progress.
INSIDE = "/taskgraph-workers"

# Variables that the engine's client itself goes by: a container's get there by a file.
_CLIENTS = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|TERM|TMPDIR|TZ|LANG|LC_\w*|LD_\w*|GO\w*|SSL_\w*|SSH_\w*|XDG_\w*"
    r"|DBUS_\w*|DOCKER_\w*|BUILDKIT_\w*|BUILDX_\w*|PODMAN_\w*|CONTAINERS?_\w*|STORAGE_\w*"
    r"|REGISTRY_\w*|REGISTRIES_\w*|\w*_PROXY|_\w*|TASKGRAPH_WORKERS_\w*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Way:
    """How a job's trainer is started, and what ends it and tells of it where that is a container.

    ``env`` are variables of the process that is started, each with ``prefix`` before its name;
    ``file`` are lines for an env file at ``env_file``. ``progress_at`` is where the trainer sees
    the folder of progress. ``fetch`` has the image fetched where that is a step of its own;
    ``remove`` removes a container whatever it does, ``discard`` only where it does nothing.
    """

    argv: tuple[str, ...]
    progress_at: str
    engine: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""
    file: str = ""
    fetch: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    discard: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    exists: tuple[str, ...] = ()
    inspect: tuple[str, ...] = ()
    wait: tuple[str, ...] = ()
    top: tuple[str, ...] = ()


@dataclass(frozen=True)
class Place:
    """Where a job's files are: its folder of progress, and where others would be.

    ``env_file`` is for variables, ``id_file`` for what the engine writes once there is a container,
    ``image`` for an image that is a file.
    """

    progress: str
    env_file: str
    id_file: str
    image: str
    grace_s: int = 30


Ask = Callable[[tuple[str, ...]], Answer]


class Engines:
    """The engines of this machine.

    One that works, or hangs, is asked again after a while, and not with each job.
    """

    def __init__(
        self, environ: Mapping[str, str], clock: Callable[[], float], ask: Ask | None = None
    ):
        self.environ = environ
        self.clock = clock
        self.ask = ask or (lambda argv: call(argv, environ, _PROBE_S))
        self._known: dict[str, tuple[float, str, str]] = {}

    def first(self, wanted: str | None) -> tuple[str, str]:
        """Name and program of the engine that is wanted, or of the first; empty for ``none``.

        Raises NotNow where one is installed and does not work, Impossible where none is.
        """
        if wanted == "none":
            return "", ""
        if wanted not in (None, *ENGINES):
            raise Impossible(f"{wanted!r} is no engine")
        broken = []
        for name in [wanted] if wanted else ENGINES:
            program = shutil.which(name, path=self.environ.get("PATH"))
            if program is None:
                continue
            told = self._fault(name, program)
            if not told:
                return name, program
            broken.append(f"{name} does not work here ({told})")
        if broken:
            raise NotNow("; ".join(broken))
        raise Impossible(f"there is no {wanted or ', '.join(ENGINES[:-1])} here")

    def _fault(self, name: str, program: str) -> str:
        """Why an engine does not work; empty where it does."""
        until, known, told = self._known.get(name, (0.0, "", ""))
        if known == program and self.clock() < until:
            return told
        answer = self.ask((program, *_QUESTIONS.get(name, _PLAIN_QUESTION)))
        told = answer.told() if answer.code != 0 else ""
        if answer.code == 0 and not _VERSION.search(answer.out):
            told = "it tells no version"
        if not told or answer.code is None:
            self._known[name] = (self.clock() + 60.0, program, told)
        return told


def way_of(job: Job, dispatch: Dispatch, place: Place, engines: Engines) -> Way:
    """How a job runs here: as the configuration said that it was accepted with, else as this one.

    So whoever of several dispatchers comes to start it can, and what was mended since counts where
    nothing else works. Raises Impossible where it never can, and NotNow where the engine that could
    does not work now: both say what to do.
    """
    if name_of(job.image) is None:
        raise Impossible("the image's name is none")
    here = start_of(dispatch, job.image)
    failed: list[Exception] = []
    for start in dict.fromkeys((job.start or here, here)):
        try:
            return _way(job, start, place, engines)
        except (Impossible, NotNow) as error:
            failed.append(error)
    raise next((each for each in failed if isinstance(each, NotNow)), failed[-1])


def _way(job: Job, start: Start, place: Place, engines: Engines) -> Way:
    try:
        engine, program = engines.first(start.engine)
    except (Impossible, NotNow) as error:
        if not start.command or start.engine is not None:
            raise type(error)(f"{error}{_remedy(job, start, error)}") from None
        engine = program = ""
    if engine in ("podman", "docker"):
        return _container(job, start, place, engine, program)
    if engine:
        return _apptainer(job, start, place, engines.environ, (engine, program))
    if not start.command:
        raise Impossible(
            f"the image {job.image} has no command, and no engine may run it"
            " (dispatch.local.engine is none): give it one in dispatch.local.commands"
        )
    return Way(start.command, place.progress, env=trainer_env(job))


def _remedy(job: Job, start: Start, error: Exception) -> str:
    """What to do where no engine can run an image: what is installed has but to work."""
    is_there = isinstance(error, NotNow)
    if start.engine not in (None, *ENGINES):
        return ""
    if start.engine is not None:
        do = "have it work" if is_there else "install it"
        return f", and dispatch.local.engine allows no other: {do}, or allow another"
    do = "have it work" if is_there else "install podman, docker or apptainer"
    return (
        f", and the image {job.image} has no command: give it one in dispatch.local.commands,"
        f" or {do}"
    )


def wants_gpus(job: Job) -> bool:
    """Whether a job's machine is meant to have GPUs."""
    found = any(str(each.get("detect")).startswith("gpu-") for each in job.detect.values())
    return bool(job.resources.get("gpus")) or found or bool(job.env.get("GPUS"))


def container_name(key: str, place: Place) -> str:
    """What a key's container is called: another folder of state may have the same request."""
    of = hashlib.sha256(os.fsencode(place.id_file)).hexdigest()[:8]
    return f"tw-{key}-{of}"


def _container(job: Job, start: Start, place: Place, engine: str, program: str) -> Way:
    """Podman and Docker, whose clients take the same words.

    All GPUs are handed over: which of them is for GPUS, or CUDA_VISIBLE_DEVICES, to say, and both
    count as on the host.
    """
    env = trainer_env(job)
    by_file = {name: value for name, value in env.items() if _CLIENTS.fullmatch(name)}
    names = [
        *(n for n in env if n not in by_file),
        *job.detect,
        "TRAINING_RUN",
        "TRAINING_PROGRESS_FILE",
    ]
    named = container_name(job.key, place)
    words = ["--name", named, "--cidfile", place.id_file, "--pull", "missing"]
    words += ["--label", f"taskgraph-workers={job.key}"]
    words += ["--volume", f"{_plain(place.progress)}:{INSIDE}:Z"]
    if wants_gpus(job):
        gpus = {"docker": ["--gpus", "all"], "podman": ["--device", "nvidia.com/gpu=all"]}
        words += gpus[engine]
        names.append("CUDA_VISIBLE_DEVICES")
    words += [word for name in sorted(set(names)) for word in ("--env", name)]
    words += ["--env-file", place.env_file] if by_file else []
    state = "{{.State.Status}} {{.State.ExitCode}}"
    return Way(
        argv=(program, "run", *words, *start.options, job.image),
        progress_at=INSIDE,
        engine=engine,
        env={name: value for name, value in env.items() if name not in by_file},
        file=_env_file(by_file),
        stop=(program, "stop", "-t", str(place.grace_s), named),
        discard=(program, "rm", "--volumes", named),
        remove=(program, "rm", "--force", "--volumes", named),
        exists=(program, "ps", "--all", "--quiet", "--filter", f"name={named}"),
        inspect=(program, "inspect", "--type", "container", "--format", state, named),
        wait=(program, "wait", named),
        top=(program, "top", named),
    )


def _apptainer(
    job: Job, start: Start, place: Place, environ: Mapping[str, str], found: tuple[str, str]
) -> Way:
    """Apptainer and Singularity: plain processes, so that ending these ends the container.

    A variable with this prefix is in the container without it, and no other one is. The image is
    pulled before, since ``run`` ends with the same code where that fails as some trainers do.
    """
    engine, program = found
    words = ["--containall", "--writable-tmpfs", "--bind", f"{_plain(place.progress)}:{INSIDE}"]
    env = trainer_env(job)
    if wants_gpus(job):
        words.append("--nv")
        if "CUDA_VISIBLE_DEVICES" in environ:
            env.setdefault("CUDA_VISIBLE_DEVICES", environ["CUDA_VISIBLE_DEVICES"])
    return Way(
        argv=(program, "run", *words, *start.options, place.image),
        progress_at=INSIDE,
        engine=engine,
        env=env,
        prefix=f"{engine.upper()}ENV_",
        fetch=(program, "pull", "--force", place.image, f"docker://{job.image}"),
    )


def _plain(path: str) -> str:
    """A path that an engine can take for a volume."""
    if re.search(r"[:,\s]", path):
        raise Impossible(
            f"the folder of the state, {path!r}, has a colon, comma or blank in its name"
        )
    return path


def _env_file(env: Mapping[str, str]) -> str:
    for name, value in env.items():
        if "\n" in value or "\r" in value:
            raise Impossible(f"{name} can't have a line break in a container")
    return "".join(f"{name}={value}\n" for name, value in env.items())
