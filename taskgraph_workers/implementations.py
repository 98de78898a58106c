"""What differs between the worker implementations: env, and the shape of a task's command.

docker-worker's ``command`` is one argv, whose words are text or Taskgraph's reference mappings
(``{"artifact-reference": ...}``). generic-worker's is a list of such argvs on Linux and macOS, each
a process of its own; on Windows a list of lines for cmd.exe. Every other implementation is a
service without a command and without env (scriptworker and its kin).

The prelude goes before an argv as ``/bin/sh -c 'PRELUDE; exec "$@"' taskgraph-workers ARGV...``. No
word is quoted, joined or looked into, so arguments and references come out as they went in;
``exec`` leaves the process, hence its exit code, signals and standard input, to the task's program.

A command of Taskgraph's own ``run-task`` gets it after the ``--``, before the program that run-task
starts. The first word has to stay: Taskgraph knows by it that a task may use run-task's caches
(``verify_run_task_caches`` refuses the graph otherwise), names them, and adds the exit code for a
broken one. So detection runs as the user the task runs as, after the checkout and the fetches.

What can't be seen from here: an image's ENTRYPOINT, which is given these words as arguments (one
that runs what it is given works), whether the image has ``/bin/sh``, and variables whose names
are no shell names (``a.b``), which dash and busybox do not hand on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Union

#: One word of an argv: text, or one of Taskgraph's reference mappings.
Word = Union[str, Mapping[str, object]]

#: The implementations whose tasks have env; both have a command too.
WITH_ENV = frozenset({"docker-worker", "generic-worker"})
#: The prelude's shell. ``$0`` names it in the shell's own messages, and to :func:`preludes_in`.
SHELL = ("/bin/sh", "-c")
MARK = "taskgraph-workers"

# What Taskgraph's run-task puts before the real command on generic-worker: it needs no env.
_CHMOD = ["chmod", "+x", "run-task"]


class Unwrappable(ValueError):
    """There is no command here that a prelude could be put before; the message says why."""


def has_env(implementation: str) -> bool:
    """Whether a task of this implementation can be given environment variables."""
    return implementation in WITH_ENV


def put_before(implementation: str, os: str, command: object, prelude: str) -> object:
    """The command, with the prelude run before it; a prelude that is there already is replaced.

    ``command`` itself is not changed. An empty ``prelude`` gives the bare command.

    :raises Unwrappable: where the platform can't, or there is no command.
    """
    processes = [
        argv if argv == _CHMOD else _wrap(argv, prelude)
        for argv in _processes(implementation, os, command)
    ]
    return processes[0] if implementation == "docker-worker" else processes


def words_before(prelude: str) -> list[str]:
    """The words before those of a program that run a prelude, and then it; none without one."""
    return [*SHELL, prelude + 'exec "$@"', MARK] if prelude else []


def preludes_in(command: object) -> Iterator[str]:
    """The shell text of each prelude that :func:`put_before` put into a command."""
    words = command if isinstance(command, (list, tuple)) else ()
    for at, word in enumerate(words):
        if isinstance(word, (list, tuple)):
            yield from preludes_in(word)
        elif word == MARK and tuple(words[at - 3 : at - 1]) == SHELL:
            yield str(words[at - 1])


def _processes(implementation: str, os: str, command: object) -> list[list[Word]]:
    """The argvs of a command, one for each process that the worker starts."""
    if not has_env(implementation):
        raise Unwrappable(f"a task of {implementation} has no command to detect anything before")
    if os.startswith("win"):
        raise Unwrappable(f"detection needs a POSIX shell, and this worker runs {os}")
    if implementation == "docker-worker":
        return [_argv(command)]
    if not isinstance(command, (list, tuple)):
        raise Unwrappable("the task has no command to detect anything before")
    processes = [_argv(argv) for argv in command]
    if all(argv == _CHMOD for argv in processes):
        raise Unwrappable("the task has no command to detect anything before")
    return processes


def _argv(command: object) -> list[Word]:
    """The words of one process, if they are an argv."""
    if not command:
        raise Unwrappable(
            "the task has no command of its own (what its image starts can't be seen from here)"
        )
    if not isinstance(command, (list, tuple)):
        raise Unwrappable(f"this command is no list of words: {command!r}")
    words = list(command)
    for word in words:
        if not isinstance(word, (str, Mapping)):
            raise Unwrappable(f"this word of the command is no text: {word!r}")
    if isinstance(words[0], str) and (not words[0] or words[0].startswith("-")):
        raise Unwrappable(f"the command begins with {words[0]!r}, which is no program")
    return words


def _wrap(argv: list[Word], prelude: str) -> list[Word]:
    at = _start(argv)
    before, program = argv[:at], argv[at:]
    if tuple(program[:2]) == SHELL and program[3:4] == [MARK] and len(program) > 4:
        program = program[4:]
    if not program:
        raise Unwrappable("run-task is given no command after its '--'")
    return [*before, *words_before(prelude), *program]


def _start(argv: list[Word]) -> int:
    """Where the task's own program begins: after run-task's own arguments, if it is run-task."""
    first = argv[0]
    if not (isinstance(first, str) and first.rsplit("/", 1)[-1].startswith("run-task")):
        return 0
    if "--" not in argv:
        raise Unwrappable("run-task is given no command: there is no '--' among its arguments")
    return argv.index("--") + 1
