"""Options of launchers that say how large a task is: ``srun -N 2 --gres=gpu:4``.

Options that do not concern size pass. One that does, and whose number can't be read, comes back
by its text: nobody guesses. Sources: srun(1) of Slurm 22.05, ``flux run`` of flux-core 0.88,
jsrun (LSF's Job Step Manager), mpirun(1) of Open MPI and MPICH/Hydra, aprun(1) of ALPS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from taskgraph_workers import units

#: What a launcher may be told, by the name that :mod:`.shape` knows it by.
Sizes = dict[str, int]
_Read = Callable[[str], Mapping[str, int]]

#: No real number of nodes, tasks, cores or GPUs has more digits.
_MOST_DIGITS = 9


class Whole(ValueError):
    """An option that asks for whole nodes, however large these are."""


class Options:
    """What the options said. ``unread`` are those that concern size and can't be read.

    ``program`` are the words behind them; ``whole`` tells that whole nodes are asked for.
    """

    def __init__(self) -> None:
        self.sizes: Sizes = {}
        self.unread: list[str] = []
        self.program: tuple[str, ...] = ()
        self.whole = False


class Tool(NamedTuple):
    """How a launcher is told its options.

    ``sized`` are options that concern size, and what each says. ``valued`` are short options that
    take a value, ``flags`` long ones that take none, ``pairs`` those that take two. ``single``
    tells that long options may have one dash only, as mpirun's; ``words`` are such for others.
    """

    sized: Mapping[str, _Read]
    valued: str = ""
    flags: frozenset[str] = frozenset()
    pairs: frozenset[str] = frozenset()
    single: bool = False
    words: frozenset[str] = frozenset()


def whole_number(text: str) -> int:
    """Digits alone. Raises ValueError."""
    if not (text.isascii() and text.isdigit()) or len(text) > _MOST_DIGITS:
        raise ValueError(f"{text!r} is no number")
    return int(text)


def _count(key: str, least: int = 1) -> _Read:
    def read(text: str) -> Mapping[str, int]:
        number = whole_number(text)
        if number < least:
            raise ValueError(f"{text!r} is too small")
        return {key: number}

    return read


def _gpus(key: str) -> _Read:
    """``4``, ``a100:4``, ``a100:2,v100:1``: srun's --gpus and its relatives."""

    def read(text: str) -> Mapping[str, int]:
        return {key: sum(whole_number(each.rpartition(":")[2]) for each in text.split(","))}

    return read


def _gres(text: str) -> Mapping[str, int]:
    """``gpu``, ``gpu:4``, ``gpu:a100:4``, ``none``; other resources than GPUs pass."""
    total = 0
    for each in text.split(","):
        name, *rest = each.split("(")[0].split(":")
        if name in ("gpu", "gres/gpu"):
            last = rest[-1] if rest else ""
            total += 1 if not last or last.isidentifier() else whole_number(last)
    return {"gpus_per_node": total}


def _mib(key: str) -> _Read:
    """Memory as Slurm writes it: MiB, or with K, M, G, T. 0 is all that there is."""

    def read(text: str) -> Mapping[str, int]:
        if text.isascii() and text.isdigit():
            return {key: whole_number(text)}
        return {key: units.mib_ceil(text.rstrip("bB"))}  # Slurm's GB is its G

    return read


def _of_set(text: str) -> Mapping[str, int]:
    """``--memory_per_rs`` of jsrun, which is in MiB."""
    return {"memory_per_set": whole_number(text)}


def _unreadable(text: str) -> Mapping[str, int]:
    raise ValueError(f"{text!r} says a size in a way that is not read")


def _map_by(text: str) -> Mapping[str, int]:
    """Open MPI's ``--map-by``: ``ppr:4:node:PE=2``, ``slot:PE=4``, ``node``."""
    unit, *rest = text.lower().split(":")
    said: Sizes = {}
    if unit == "ppr":
        if rest[1:2] != ["node"]:
            raise ValueError(f"{text!r}: only ppr:N:node is read")
        said["tasks_per_node"] = whole_number(rest[0])
    for each in rest:
        for part in each.split(","):
            if part.startswith("pe="):
                said["cores_per_task"] = whole_number(part[3:])
    return said


def _names(read: _Read, *names: str) -> dict[str, _Read]:
    return dict.fromkeys(names, read)


SRUN = Tool(
    sized={
        **_names(_count("nodes"), "-N", "--nodes"),
        **_names(_count("tasks"), "-n", "--ntasks"),
        **_names(_count("cores_per_task"), "-c", "--cpus-per-task"),
        **_names(_gpus("gpus"), "-G", "--gpus"),
        **_names(_gpus("gpus_per_task"), "--gpus-per-task"),
        **_names(_gpus("gpus_per_node"), "--gpus-per-node"),
        **_names(_gres, "--gres"),
        **_names(_count("tasks_per_node"), "--ntasks-per-node", "--tasks-per-node"),
        **_names(_count("cores_per_gpu"), "--cpus-per-gpu"),
        **_names(_mib("memory_per_node"), "--mem"),
        **_names(_mib("memory_per_core"), "--mem-per-cpu"),
        **_names(_mib("memory_per_gpu"), "--mem-per-gpu"),
        **_names(_unreadable, "--gpus-per-socket", "--ntasks-per-gpu", "--ntasks-per-core"),
        **_names(_unreadable, "--ntasks-per-socket", "--tres-per-task"),
    },
    valued="AbBCdDegiJLmMopPqrStTwWxa",
    flags=frozenset(
        {
            *("--contiguous", "--disable-status", "--exact", "--exclusive", "--help", "--hold"),
            *("--immediate", "--interactive", "--kill-on-bad-exit", "--label", "--multi-prog"),
            *("--nice", "--no-allocate", "--no-kill", "--overcommit", "--overlap"),
            *("--oversubscribe", "--preserve-env", "--propagate", "--pty", "--quiet", "--reboot"),
            *("--resv-ports", "--send-libs", "--spread-job", "--test-only", "--unbuffered"),
            *("--use-min-nodes", "--verbose", "--version", "--whole", "--x11", "--external"),
        }
    ),
)


def _exclusive(_: str) -> Mapping[str, int]:
    raise Whole


FLUX = Tool(
    sized={
        **_names(_count("nodes"), "-N", "--nodes"),
        **_names(_count("tasks"), "-n", "--ntasks"),
        **_names(_count("cores_per_task"), "-c", "--cores-per-task"),
        **_names(_count("gpus_per_task", 0), "-g", "--gpus-per-task"),
        **_names(_count("cores"), "--cores"),
        **_names(_count("tasks_per_node"), "--tasks-per-node"),
        **_names(_count("gpus_per_node", 0), "--gpus-per-node"),
        **_names(_unreadable, "--tasks-per-core"),
        **_names(_exclusive, "-x", "--exclusive"),
    },
    valued="BqtoST",
    flags=frozenset(
        {
            *("--unbuffered", "--label-io", "--dry-run", "--dry", "--quiet", "--list-plugins"),
            *("--exclusive", "--verbose", "--debug", "--help"),
        }
    ),
)
JSRUN = Tool(
    sized={
        **_names(_count("sets"), "-n", "--nrs"),
        **_names(_count("tasks_per_set"), "-a", "--tasks_per_rs"),
        **_names(_count("cores_per_set"), "-c", "--cpu_per_rs"),
        **_names(_count("gpus_per_set", 0), "-g", "--gpu_per_rs"),
        **_names(_count("sets_per_node"), "-r", "--rs_per_host"),
        **_names(_count("tasks"), "-p", "--np"),
        **_names(_of_set, "-m", "--memory_per_rs"),
        **_names(_unreadable, "-K", "--rs_per_socket", "-U", "--erf_input", "-f", "--appfile"),
    },
    valued="ldbXEDFhoektMPQSAZJL",
    flags=frozenset({"--immediate", "--help", "--version", "--allocate_only"}),
)
MPIRUN = Tool(
    sized={
        **_names(_count("tasks"), "-n", "-np", "--np", "--n", "-c"),
        **_names(_count("tasks_per_node"), "-ppn", "--ppn", "-perhost", "--perhost", "-N"),
        **_names(_count("tasks_per_node"), "-npernode", "--npernode"),
        **_names(_count("cores_per_task"), "--cpus-per-rank", "-cpus-per-rank", "-d", "--depth"),
        **_names(_count("cores_per_task"), "--cpus-per-proc", "-cpus-per-proc"),
        **_names(_map_by, "--map-by", "-map-by"),
        **_names(_unreadable, "-npersocket", "--npersocket", "-configfile", "--app", "-app"),
    },
    valued="fHlwx",
    flags=frozenset(
        {
            *("allow-run-as-root", "report-bindings", "oversubscribe", "nooversubscribe", "q", "v"),
            *("use-hwthread-cpus", "tag-output", "l", "prepend-rank", "genvall", "genvnone", "h"),
            *("envall", "envnone", "display-map", "bycore", "bynode", "byslot", "bind-to-core"),
            *("bind-to-none", "nolocal", "verbose", "quiet", "help", "version", "V"),
        }
    ),
    pairs=frozenset({"mca", "gmca", "genv", "env", "prtemca", "omca"}),
    single=True,
)
APRUN = Tool(
    sized={
        **_names(_count("tasks"), "-n", "--pes"),
        **_names(_count("tasks_per_node"), "-N", "--pes-per-node"),
        **_names(_count("cores_per_task"), "-d", "--cpus-per-pe"),
    },
    valued="aBceEFjLlmpPrSstw",
    flags=frozenset({"--batch-args", "--reconnect", "--debug", "-ss"}),
    words=frozenset({"-cc", "-cp", "-sn", "-sl", "-ss"}),
)
IBRUN = Tool(sized=_names(_count("tasks"), "-n", "-np"), valued="o", single=True)

#: The launchers that are read, by the name of their command.
TOOLS: Mapping[str, Tool] = {
    "srun": SRUN,
    "flux": FLUX,
    "jsrun": JSRUN,
    "mpirun": MPIRUN,
    "mpiexec": MPIRUN,
    "mpiexec.hydra": MPIRUN,
    "aprun": APRUN,
    "ibrun": IBRUN,
}


def options(tool: Tool, words: Sequence[str]) -> Options:
    """What the options in front of a program say; the last of several equal ones counts."""
    found, at = Options(), 0
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        word = words[at]
        at += 1
        if word == "--":
            break
        for name, glued, text in _split(tool, word):
            if glued is not None or not _takes_value(tool, name):
                _note(found, tool, name, glued or "", text)
                continue
            value = words[at] if at < len(words) else ""
            at += 2 if _bare(name) in tool.pairs else 1
            _note(found, tool, name, value, f"{text} {value}".rstrip())
    found.program = tuple(words[at:])
    return found


def _note(found: Options, tool: Tool, name: str, value: str, text: str) -> None:
    read = tool.sized.get(name)
    if read is None:
        return
    try:
        found.sizes.update(read(value))
    except Whole:
        found.whole = True
    except ValueError:
        found.unread.append(text)


def _bare(name: str) -> str:
    return name.lstrip("-")


def _takes_value(tool: Tool, name: str) -> bool:
    read = tool.sized.get(name)
    if read is not None:
        return read is not _exclusive
    if tool.single:
        return _bare(name) not in tool.flags
    return name[1] in tool.valued if len(name) == 2 else name not in tool.flags


def _split(tool: Tool, word: str) -> list[tuple[str, str | None, str]]:
    """A word as options: name, value where the word holds one, and the option as it is written."""
    name, equals, value = word.partition("=")
    if word.startswith("--") or word in tool.words:
        return [(name, value if equals else None, word)]
    if tool.single and (len(name) > 2 or name in tool.sized):
        return [(name, value if equals else None, word)]
    found: list[tuple[str, str | None, str]] = []
    letters = word[1:]
    for place, letter in enumerate(letters):
        rest = letters[place + 1 :]
        if _takes_value(tool, f"-{letter}"):
            # flux takes -N=2 for 2, as all argparse programs do; srun doesn't, and says so.
            glued = rest[1:] if rest.startswith("=") and tool is FLUX else rest
            return [*found, (f"-{letter}", glued or None, word)]
        found.append((f"-{letter}", None, word))
    return found
