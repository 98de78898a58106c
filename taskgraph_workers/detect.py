"""Values that only the machine knows: ``{detect: ...}`` as a value of ``env``.

A value of ``env`` is one of three things:

- **declared**: ``GPUS: "0 1"``. It stands in the task's payload. Right where every machine of a
  pool is the same.
- **detected**: ``GPUS: {detect: gpu-indices}``. The machine works it out when the task runs, in a
  short POSIX shell prelude before the task's command (``detect.sh``; where it is put:
  :mod:`taskgraph_workers.implementations`). Right where the machines of a pool differ.
- **inherited**: ``WORKSPACE: {detect: inherited}``. The worker itself gives it. It stays out of the
  payload; the prelude only checks that it is there, and not empty.

What can be detected:

- ``gpu-indices``: the GPUs as the task's programs will count them, ``0 1 2 3``.
- ``gpu-count``: how many these are.
- ``gpu-memory``: whole MiB, rounded down: ``share`` (1 unless said) of one GPU's memory, the
  ``smallest`` (unless ``of`` says ``largest``) of those the programs see, or of their ``sum``.

``at-least`` is the least value that is good enough: GPUs, or for ``gpu-memory`` the MiB that come
out. One GPU, or one MiB, is always wanted. With less, or where nothing can be found out, the task
fails with exit code 69 (EX_UNAVAILABLE of sysexits.h) before its command starts, and says what it
looked at and what to do; a task can name that code in ``retry-exit-status``. Otherwise one line on
standard error says what was found and from where. A detected value replaces one that the machine's
own environment may hold already: ``inherited`` is the way to keep that.

Where it looks:

1. ``CUDA_VISIBLE_DEVICES``, whenever it is set, since CUDA obeys it: indices, UUIDs or the
   beginning of one, MIG devices. Programs then count from 0. CUDA cuts the list at the first entry
   that is no GPU, and has none at all if one is named twice. Schedulers (Slurm, Flux, LSF, PBS) set
   it. Where no nvidia-smi is in PATH, its entries are taken at their word and only memory stays
   unknown.
2. ``SLURM_STEP_GPUS``, else ``SLURM_JOB_GPUS``, where CUDA_VISIBLE_DEVICES is not set. They count
   the GPUs of the node, so they say something only where nvidia-smi shows more GPUs than they name;
   elsewhere a cgroup or a container has limited the set already.
3. ``nvidia-smi``. A container sees just the GPUs it was given there, so ``NVIDIA_VISIBLE_DEVICES``
   (``all``, ``none``, ``void``) need not be read: it is an order to the container's runtime, and
   images set it whether or not there is a GPU. ``GPU_DEVICE_ORDINAL`` is not for CUDA.

A process sees one MIG device at most, so these count as one GPU; nvidia-smi's query doesn't tell
their memory, so ``gpu-memory`` fails on them. These variables have to reach the task: docker-worker
and generic-worker with a user per task pass none of the worker's own on.

Nothing needs to be installed but ``/bin/sh`` (dash, bash and busybox are tested) and nvidia-smi.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import gcd

from taskgraph_workers.errors import did_you_mean, listed, unglued
from taskgraph_workers.model import ENV_NAME
from taskgraph_workers.texts import beside

#: What ``detect`` may say.
KINDS = ("gpu-indices", "gpu-count", "gpu-memory", "inherited")
#: Which memory ``gpu-memory`` takes its share of.
OF = ("smallest", "largest", "sum")
#: The keys of a ``{detect: ...}`` value.
KEYS = ("detect", "share", "of", "at-least")
#: The exit code of a task that finds nothing, or less than ``at-least``.
NOT_FOUND = 69
#: A share is counted in parts of this, since a shell calculates in whole numbers only.
WHOLE = 10**6

# The calls at the end of a prelude, as `_call` writes them.
_CALL = re.compile(
    r"^tw_(?:"
    r'put (?P<gpus>\w+) "\$tw_(?P<what>ids|n)" "\$tw_what" "\$tw_n" (?P<gpus_least>\d+) GPUs'
    r"|memory (?P<memory>\w+) (?P<part>\d+) (?P<whole>\d+) (?P<of>\w+) (?P<memory_least>\d+)"
    r'|inherited (?P<inherited>\w+) "\$\{\w+-\}"'
    r")$",
    re.MULTILINE,
)
_SAID = re.compile(r"taskgraph-workers: (?P<text>.*)")
_SAID_VALUE = re.compile(r"\w+='.*' \((?P<why>.*)\)")


@dataclass(frozen=True)
class Detect:
    """A valid ``{detect: ...}`` value.

    ``share`` (over 0, 1 at most) and ``of`` matter to ``gpu-memory`` only. ``at_least`` counts
    GPUs, or MiB for ``gpu-memory``.
    """

    what: str
    share: float = 1.0
    of: str = "smallest"
    at_least: int | None = None


@dataclass(frozen=True)
class Found:
    """What this machine says of one name: the value and its source, or None and the fault.

    ``notes`` is what else it said, such as that GPUs differ.
    """

    name: str
    value: str | None
    said: str
    notes: tuple[str, ...] = ()


def parse(raw: Mapping[str, object]) -> Detect:
    """A ``{detect: ...}`` mapping as YAML gives it.

    :raises ValueError: with one sentence that says what is wrong and what would be right.
    """
    for key in raw:
        if key not in KEYS:
            hint = unglued(key, raw[key]) or did_you_mean(str(key), KEYS)
            raise ValueError(f"{key!r} is no key of a detect value; {hint}")
    what = _one_of("detect", raw.get("detect"), KINDS)
    for key in ("share", "of"):
        if key in raw and what != "gpu-memory":
            raise ValueError(f"'{key}' goes with 'detect: gpu-memory' only, not with {what!r}")
    if "at-least" in raw and what == "inherited":
        raise ValueError("'at-least' can't be checked for 'detect: inherited'")
    return Detect(
        what=what,
        share=_share(raw.get("share", 1.0)),
        of=_one_of("of", raw.get("of", "smallest"), OF),
        at_least=_at_least(raw["at-least"]) if "at-least" in raw else None,
    )


def _one_of(key: str, value: object, known: tuple[str, ...]) -> str:
    if isinstance(value, str) and value in known:
        return value
    if isinstance(value, str):
        raise ValueError(f"'{key}' can't be {value!r}; {did_you_mean(value, known)}")
    raise ValueError(f"'{key}' has to be one of {listed(known)}, not {value!r}")


def _share(value: object) -> float:
    if isinstance(value, (int, float)) and value is not True and 1 / WHOLE <= value <= 1:
        return float(value)
    raise ValueError(f"'share' has to be a number over 0, 1 at most, such as 0.75, not {value!r}")


def _at_least(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise ValueError(f"'at-least' has to be a whole number from 1, not {value!r}")


def render(detect: Detect) -> dict[str, object]:
    """The YAML form: what :func:`parse` reads, without what goes without saying."""
    raw: dict[str, object] = {"detect": detect.what}
    if detect.share != 1:
        raw["share"] = detect.share
    if detect.of != "smallest":
        raw["of"] = detect.of
    if detect.at_least is not None:
        raw["at-least"] = detect.at_least
    return raw


def prelude(values: Mapping[str, Detect]) -> str:
    """Shell text that exports each name, in a fixed order, or ends the shell with 69.

    Empty for no values. It reads no argument and no input, and leaves ``"$@"`` as it was.

    :raises ValueError: for a name that no shell could hold.
    """
    if not values:
        return ""
    for name in values:
        if not ENV_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name for an environment variable")
    kinds = {detect.what for detect in values.values()}
    gpus = sorted(name for name in values if values[name].what != "inherited")
    parts = ["# What only this machine knows (taskgraph-workers)\n", _sections()["say"]]
    if "inherited" in kinds:
        parts.append(_sections()["inherited"])
    if gpus:
        parts.append(_sections()["gpus"])
    if "gpu-memory" in kinds:
        parts.append(_sections()["memory"])
    if gpus:
        parts.append(f"tw_look '{', '.join(gpus)}'\n")
    parts.extend(_call(name, values[name]) for name in sorted(values))
    if gpus:
        parts.append(_sections()["end"])
    return "".join(parts)


def _call(name: str, detect: Detect) -> str:
    least = detect.at_least or 1
    if detect.what == "inherited":
        return f'tw_inherited {name} "${{{name}-}}"\n'
    if detect.what == "gpu-memory":
        part = round(detect.share * WHOLE)
        divisor = gcd(part, WHOLE)
        return f"tw_memory {name} {part // divisor} {WHOLE // divisor} {detect.of} {least}\n"
    value = "$tw_ids" if detect.what == "gpu-indices" else "$tw_n"
    return f'tw_put {name} "{value}" "$tw_what" "$tw_n" {least} GPUs\n'


def read_prelude(text: str) -> dict[str, Detect]:
    """What a prelude exports: :func:`prelude` backwards."""
    return dict(map(_called, _CALL.finditer(text)))


def _called(found: re.Match[str]) -> tuple[str, Detect]:
    if found["inherited"]:
        return found["inherited"], Detect("inherited")
    least = int(found["memory_least"] or found["gpus_least"])
    at_least = least if least > 1 else None
    if found["memory"]:
        share = int(found["part"]) / int(found["whole"])
        return found["memory"], Detect("gpu-memory", share, found["of"], at_least)
    what = "gpu-indices" if found["what"] == "ids" else "gpu-count"
    return found["gpus"], Detect(what, at_least=at_least)


@lru_cache(maxsize=1)
def _sections() -> Mapping[str, str]:
    """``detect.sh`` by its ``#:`` headings: a task gets the sections that its values need."""
    text = beside(__file__, "detect.sh")
    parts = re.split(r"^#: (\w+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def detect_here(values: Mapping[str, Detect], environ: Mapping[str, str]) -> tuple[Found, ...]:
    """What this machine would give a task that runs in ``environ``, by the same shell text.

    Each name is looked at on its own, so that one fault doesn't hide another.

    :raises OSError: where there is no ``/bin/sh``.
    """
    return tuple(_found(name, values[name], environ) for name in sorted(values))


def _found(name: str, detect: Detect, environ: Mapping[str, str]) -> Found:
    import subprocess

    program = prelude({name: detect}) + f'printf %s "${name}"'
    run = subprocess.run(
        ["/bin/sh", "-c", program],
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        encoding="utf-8",
        errors="replace",
    )
    # The value, or the fault, is what it says last.
    *notes, said = _SAID.findall(run.stderr) or [run.stderr.strip()]
    if run.returncode:
        return Found(name, None, said, tuple(notes))
    why = _SAID_VALUE.fullmatch(said)
    return Found(name, run.stdout, why["why"] if why else "inherited from the worker", tuple(notes))
