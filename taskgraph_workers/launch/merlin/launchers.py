"""The launches of a step: ``$(LAUNCHER)``, ``$(VLAUNCHER)`` and commands written by hand.

Merlin and Maestro replace ``$(LAUNCHER)`` as text (``schedulerscriptadapter.py``), with the
step's nodes and procs, or with those in ``$(LAUNCHER)[2n, 4p]``. ``$(VLAUNCHER)`` takes them from
shell variables, ``MERLIN_NODES`` and so on (``script_adapter.setup_vlaunch``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from taskgraph_workers.launch.merlin.flags import TOOLS, Sizes, whole_number
from taskgraph_workers.launch.merlin.shell import NOTHING, Call, Part, expand, parse

#: What Merlin writes for ``$(LAUNCHER)``, by the type of the batch block, or of the step's own.
LAUNCHER_OF = {"slurm": "srun", "lsf-srun": "srun", "flux": "flux", "lsf": "jsrun"}
#: In which key of a step the raw flags for it are.
RAW_KEY = {"srun": "slurm", "flux": "flux", "jsrun": "lsf"}

#: The variables of $(VLAUNCHER), and what they say.
V_VARIABLES = {
    "MERLIN_NODES": "nodes",
    "MERLIN_PROCS": "tasks",
    "MERLIN_CORES": "cores_per_task",
    "MERLIN_GPUS": "gpus",
}

_TOKEN = re.compile(r"\$\((V?LAUNCHER)\)(\[[^\]\n]*\])?")
#: Stand for the two tokens in a script that is looked through.
_MARK = "\x02"
_MARKED = re.compile(_MARK + r"(V?LAUNCHER)(\[[^\]]*\])?")

#: What may stand in front of a launch and runs it as it is.
_BEFORE = frozenset(
    {
        *("time", "exec", "nohup", "env", "command", "nice", "stdbuf", "timeout", "sudo", "ionice"),
        *("eval", "xargs", "numactl", "taskset", "setsid", "catchsegv", "perf", "strace", "nsys"),
        *("ncu", "vtune", "parallel"),
    }
)
#: Commands that run no other, so that a launcher's name among their words is none.
_HARMLESS = frozenset(
    {
        *("echo", "printf", "which", "type", "command", "module", "ml", "man", "alias", "export"),
        *("ls", "cat", "grep", "egrep", "sed", "awk", "rm", "cp", "mv", "mkdir", "ln", "test"),
        *("[", "[[", "hash", "whereis", "set", "unset", "spack", "conda", "pip", "touch", "flux"),
    }
)
_FLUX_RUNS = (("run",), ("mini", "run"), ("wreckrun",))
_FLUX_OTHERS = (("submit",), ("mini", "submit"), ("bulksubmit",), ("mini", "bulksubmit"))


class Launch(NamedTuple):
    """A launch: ``tool`` is a command, ``LAUNCHER`` or ``VLAUNCHER``; ``words`` come behind it.

    ``alloc`` is what stands in brackets behind ``$(LAUNCHER)``. ``detached`` tells that it does
    not wait for its end, ``wrapper`` what starts many of it at the same time.
    """

    tool: str
    words: tuple[str, ...]
    alloc: str = ""
    detached: bool = False
    wrapper: str = ""


def launch(words: tuple[str, ...]) -> Launch | None:
    """The launch that a command is; None where it is none."""
    for place, word in enumerate(words):
        marked = _MARKED.search(word)
        if marked:
            return Launch(marked[1], words[place + 1 :], (marked[2] or "")[1:-1])
    for place, word in enumerate(words):
        name = word.rpartition("/")[2]
        if name in TOOLS and (place == 0 or words[0].rpartition("/")[2] in _BEFORE):
            return _by_hand(name, words[place + 1 :], words[:place])
    return None


def _by_hand(name: str, rest: tuple[str, ...], before: tuple[str, ...]) -> Launch | None:
    if before[:1] == ("command",) and before[1:2] in (("-v",), ("-V",)):
        return None
    many = before[:1] == ("parallel",) or any(word.startswith("-P") for word in before)
    wrapper = before[0] if many else ""
    if name != "flux":
        return Launch(name, rest, wrapper=wrapper)
    for verbs in (*_FLUX_RUNS, *_FLUX_OTHERS):
        if rest[: len(verbs)] == verbs:
            return Launch(name, rest[len(verbs) :], detached=verbs in _FLUX_OTHERS, wrapper=wrapper)
    return None


def launches(script: str) -> tuple[Part, tuple[str, ...]]:
    """The launches of a script (see :mod:`.shell`), and commands that are handed a launcher."""
    others: dict[str, None] = {}

    def keep(words: tuple[str, ...]) -> bool:
        if launch(words) is not None:
            return True
        handed = {word.rpartition("/")[2] for word in words[1:]} & TOOLS.keys() - {"flux"}
        if handed and words[0].rpartition("/")[2] not in _HARMLESS:
            others[words[0]] = None
        return False

    tree = parse(_TOKEN.sub(_marked, script), keep, {})
    return tree, tuple(others)


def token_alone(script: str) -> Part:
    """``$(LAUNCHER)`` where no command of a shell has it: Maestro replaces it all the same."""
    for line in script.splitlines():
        found = _TOKEN.search(line)
        if found and not line.lstrip().startswith("#"):
            return Call((_marked(found),), {})
    return NOTHING


def _marked(found: re.Match[str]) -> str:
    alloc = found[2] or ""
    return f"{_MARK}{found[1]}{''.join(alloc.split())}"


def mentions(script: str) -> bool:
    """Whether a script may have a launch at all: a quick look, before a careful one."""
    return "LAUNCHER)" in script or any(name in script for name in TOOLS)


def allocation(alloc: str) -> Sizes:
    """``2n,4p``, ``4p`` or, nodes first, ``2,4``. Raises ValueError for what Maestro refuses.

    >>> allocation("2n,4p"), allocation("4p"), allocation("2,4")
    ({'nodes': 2, 'tasks': 4}, {'tasks': 4}, {'nodes': 2, 'tasks': 4})
    """
    parts = alloc.split(",")
    if len(parts) == 2 and all(part.isdigit() for part in parts):
        parts = [f"{parts[0]}n", f"{parts[1]}p"]
    names = {"n": "nodes", "p": "tasks"}
    found = {names[part[-1:]]: whole_number(part[:-1]) for part in parts if part[-1:] in names}
    if len(found) != len(parts) or "tasks" not in found or not all(found.values()):
        raise ValueError(
            f"[{alloc}] is none of the forms that Maestro reads: [2n, 4p], [4p], [2, 4]"
        )
    return {key: found[key] for key in ("nodes", "tasks") if key in found}


def v_sizes(env: Mapping[str, str]) -> Sizes:
    """What the variables of $(VLAUNCHER) say. Raises ValueError for what is no number."""
    found: Sizes = {}
    for name, key in V_VARIABLES.items():
        if name not in env:
            continue
        try:
            found[key] = whole_number(expand(env[name], env))
        except ValueError:
            raise ValueError(f"{name}={env[name]} holds no number that can be read") from None
    return found
