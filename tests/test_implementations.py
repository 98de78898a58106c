from __future__ import annotations

import copy
import signal
import subprocess
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from needs import needs
from taskgraph_workers.implementations import Unwrappable, has_env, preludes_in, put_before

# Stands in for the real prelude, which test_detect_sh.py runs; like it, it ends in a newline.
PRELUDE = "FOUND='0 1'\nexport FOUND\n"
SHELL = ["/bin/sh", "-c", PRELUDE + 'exec "$@"', "taskgraph-workers"]


@pytest.fixture(params=["dash", "bash", "busybox"], scope="module")
def shell(request: pytest.FixtureRequest) -> str:
    return needs(request.param)


def run(shell: str, argv: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a command as a worker would, with this program in the place of /bin/sh."""
    wrapped = put_before("docker-worker", "linux", argv, PRELUDE)
    assert isinstance(wrapped, list)
    assert wrapped[0] == "/bin/sh"
    return subprocess.run(
        ["sh", *wrapped[1:]], executable=shell, capture_output=True, check=False, **options
    )


# Text without what no argument can hold: NUL, and halves of surrogate pairs.
WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(words=st.lists(WORDS, min_size=1))
def test_every_word_arrives_as_it_was(shell: str, words: list[str]):
    """Whatever the words of a command are, its program gets just these."""
    done = run(shell, ["/usr/bin/printf", r"%s\0", *words])
    assert done.stdout.decode() == "".join(f"{word}\0" for word in words)


@pytest.mark.parametrize(
    "words",
    [
        ["", "", ""],
        ["-n", "-e", "--", "-"],
        ["a\nb", "\n", "c\n"],
        ["'", '"', "`id`", "$(id)", "$x", "${FOUND}", "\\", "\\n", "*", "?", "~", "!", "#"],
        ["é", "日本", "\U0001f600", "\x01\x7f"],
        ["{foo}", "<build/public/x>", "<<>", "%s", "exec", "exit 3;"],
        ["x" * 100_000],
    ],
)
def test_odd_words_arrive_as_they_were(shell: str, words: list[str]):
    """Empty words, options, quotes, line ends, expansions and long words are left alone."""
    done = run(shell, ["/usr/bin/printf", r"%s\0", *words])
    assert done.stdout.decode() == "".join(f"{word}\0" for word in words)


def test_exit_codes_are_kept(shell: str):
    """Each of the 256 exit codes of a command comes out of the wrapped one."""
    codes = [run(shell, ["/bin/sh", "-c", f"exit {code}"]).returncode for code in range(256)]
    assert codes == list(range(256))


@pytest.mark.parametrize("number", ["TERM", "KILL", "INT", "SEGV", "USR1"])
def test_a_death_by_signal_is_kept(shell: str, number: str):
    """A command that a signal ends has ended by that signal."""
    done = run(shell, ["/bin/sh", "-c", f"kill -{number} $$; sleep 9"])
    assert done.returncode == -getattr(signal, f"SIG{number}")


def test_the_command_has_the_process_and_its_input(shell: str):
    """No shell stays between worker and program: same process, same standard input, own name."""
    wrapped: Any = put_before("docker-worker", "linux", ["/bin/sh", "-c", "echo $$; cat"], PRELUDE)
    with subprocess.Popen(
        ["sh", *wrapped[1:]], executable=shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        out, _ = process.communicate(b"one\ntwo")
    assert out.decode() == f"{process.pid}\none\ntwo"


def test_the_prelude_comes_first_and_can_stop_it(shell: str):
    """What the prelude exports is there for the command, which does not start if it fails."""
    assert run(shell, ["/bin/sh", "-c", 'printf %s "$FOUND"']).stdout == b"0 1"
    wrapped: Any = put_before("docker-worker", "linux", ["echo", "started"], "exit 69\n")
    done = subprocess.run(["sh", *wrapped[1:]], executable=shell, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (69, b"")


def test_a_missing_program_is_told_as_shells_do(shell: str):
    """A program that doesn't exist ends with 127, and a message that names the project."""
    done = run(shell, ["/no/such/program"])
    assert done.returncode == 127
    assert b"taskgraph-workers: " in done.stderr


ARTIFACT = {"artifact-reference": "<build/public/x>"}
TASK = {"task-reference": "echo <build> {x}"}
CHMOD = ["chmod", "+x", "run-task"]
RUN_TASK = ["./run-task", "--checkout=/c", "--task-cwd", "/c", "--"]

# (implementation, os, command, the command with the prelude)
COMMANDS: list[tuple[str, str, list[Any], list[Any]]] = [
    ("docker-worker", "linux", ["make", ARTIFACT, "x"], [*SHELL, "make", ARTIFACT, "x"]),
    ("docker-worker", "linux", [TASK], [*SHELL, TASK]),
    (
        "docker-worker",
        "linux",
        ["/usr/local/bin/run-task", "--a=1", "--", "bash", "-cx", TASK],
        ["/usr/local/bin/run-task", "--a=1", "--", *SHELL, "bash", "-cx", TASK],
    ),
    (
        "docker-worker",
        "linux",
        ["/x/run-task-hg", ARTIFACT, "--", "tool", "--", "x"],
        ["/x/run-task-hg", ARTIFACT, "--", *SHELL, "tool", "--", "x"],
    ),
    (
        "docker-worker",
        "linux",
        ["python3", "/x/run-task", "--", "tool"],
        [*SHELL, "python3", "/x/run-task", "--", "tool"],
    ),
    (
        "generic-worker",
        "linux",
        [CHMOD, [*RUN_TASK, "bash", "-cx", TASK]],
        [CHMOD, [*RUN_TASK, *SHELL, "bash", "-cx", TASK]],
    ),
    (
        "generic-worker",
        "macosx",
        [["a", ARTIFACT], ["b"], ["chmod", "+x", "other"]],
        [[*SHELL, "a", ARTIFACT], [*SHELL, "b"], [*SHELL, "chmod", "+x", "other"]],
    ),
    ("generic-worker", "linux-bitbar", [["a"]], [[*SHELL, "a"]]),
    ("docker-worker", "linux", ["/bin/sh", "-c", "x"], [*SHELL, "/bin/sh", "-c", "x"]),
]
commands = pytest.mark.parametrize(("implementation", "os", "command", "wrapped"), COMMANDS)


@commands
def test_each_shape_of_command_has_its_place(
    implementation: str, os: str, command: list[Any], wrapped: list[Any]
):
    """The prelude goes before the task's own program, after run-task's part, once per process."""
    before = copy.deepcopy(command)
    assert put_before(implementation, os, command, PRELUDE) == wrapped
    assert command == before


@commands
def test_putting_it_there_twice_is_putting_it_there_once(
    implementation: str, os: str, command: list[Any], wrapped: list[Any]
):
    """A transform may run twice: a prelude is known again, replaced by the next, and removable."""
    assert list(preludes_in(command)) == []
    assert set(preludes_in(wrapped)) == {SHELL[2]}
    assert put_before(implementation, os, wrapped, PRELUDE) == wrapped
    other = put_before(implementation, os, command, "true\n")
    assert other != wrapped
    assert put_before(implementation, os, wrapped, "true\n") == other
    assert put_before(implementation, os, wrapped, "") == command
    assert put_before(implementation, os, command, "") == command


def test_each_process_has_its_own():
    """A generic-worker task whose second process lacks the prelude still needs it."""
    command: list[Any] = [[*SHELL, "a"], ["b"]]
    assert list(preludes_in(command)) == [SHELL[2]]
    both = put_before("generic-worker", "linux", command, PRELUDE)
    assert both == [[*SHELL, "a"], [*SHELL, "b"]]


@pytest.mark.parametrize(
    ("implementation", "os", "command", "fault"),
    [
        ("scriptworker-signing", "scriptworker", None, "a task of scriptworker-signing has no"),
        ("always-optimized", "invalid", ["x"], "a task of always-optimized has no command"),
        (
            "generic-worker",
            "windows",
            ["echo"],
            "needs a POSIX shell, and this worker runs windows",
        ),
        ("docker-worker", "linux", None, "has no command of its own"),
        ("docker-worker", "linux", [], "has no command of its own"),
        ("docker-worker", "linux", "make all", "is no list of words: 'make all'"),
        ("docker-worker", "linux", [["make"]], r"is no text: \['make'\]"),
        ("docker-worker", "linux", ["--verbose"], "begins with '--verbose', which is no program"),
        ("docker-worker", "linux", ["", "x"], "begins with '', which is no program"),
        ("docker-worker", "linux", ["run-task", "--a"], "there is no '--' among its arguments"),
        ("docker-worker", "linux", ["run-task", "--"], "no command after its '--'"),
        ("generic-worker", "linux", None, "has no command"),
        ("generic-worker", "linux", [], "has no command"),
        ("generic-worker", "linux", [["a"], []], "has no command of its own"),
        ("generic-worker", "linux", ["make"], "is no list of words: 'make'"),
        ("generic-worker", "linux", [CHMOD], "has no command"),
    ],
)
def test_what_has_no_place_is_refused(implementation: str, os: str, command: object, fault: str):
    """Where a prelude can't be put, one sentence says why, and none is seen there."""
    with pytest.raises(Unwrappable, match=fault) as caught:
        put_before(implementation, os, command, PRELUDE)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)
    assert list(preludes_in(command)) == []


@pytest.mark.parametrize(
    ("implementation", "has"),
    [
        ("docker-worker", True),
        ("generic-worker", True),
        ("scriptworker-signing", False),
        ("beetmover", False),
        ("always-optimized", False),
        ("succeed", False),
        ("invalid", False),
    ],
)
def test_env_goes_to_workers_with_a_command(implementation: str, has: bool):
    """Only docker-worker and generic-worker give their tasks env."""
    assert has_env(implementation) is has
