"""Scripts: which of their commands run, and which at the same time."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgraph_workers.launch.merlin.lexer import tokens
from taskgraph_workers.launch.merlin.shell import Call, Many, Par, Part, expand, parse


def shown(script: str, env: dict[str, str] | None = None) -> str:
    """The tree of what runs of ``run``: ``;`` one after another, ``&`` at the same time."""
    return show(parse(script, lambda words: words[:1] == ("run",), env or {}))


def show(part: Part) -> str:
    if isinstance(part, Call):
        return " ".join(part.words[1:2])
    if isinstance(part, Many):
        return f"{show(part.part)}*"
    sign = " & " if isinstance(part, Par) else " ; "
    return "(" + sign.join(map(show, part.parts)) + ")"


@pytest.mark.parametrize(
    ("script", "tree"),
    [
        ("run a\nrun b", "(a ; b)"),
        ("run a; run b && run c || run d", "(a ; b ; c ; d)"),
        ("other; run a", "a"),
        ("run a & run b & wait", "(a & b)"),
        ("run a & run b; run c; wait", "((a & b) ; (a & c) ; a)"),
        ("run a & wait; run b", "(a ; b)"),
        ("run a | run b | other", "(a & b)"),
        ("run a |\n run b", "(a & b)"),
        ("(run a; run b) & run c; wait", "(((a ; b) & c) ; (a ; b))"),
        ("{ run a; } & run b", "((a & b) ; a)"),
        ("if run a; then run b; else run c; fi", "(a ; b ; c)"),
        ("while x; do run a; done", "a"),
        ("while x; do run a & done", "a*"),
        ("for i in 1 2 3; do run a & done; wait", "(a & a & a)"),
        ("for i in {1..3}; do run a & done; wait", "(a & a & a)"),
        ("for i in $(seq 3); do run a & done; wait", "(a & a & a)"),
        ("for i in $(seq 2 3); do\nrun a &\ndone\nwait", "(a & a)"),
        ("for i in *; do run a & done; wait", "a*"),
        ("for i in $L; do run a & wait; done", "a"),
        ("for i in $L; do run a; done & run b", "((a & b) ; a)"),
        ("for i in $L; do run a & if x; then wait; fi; done; wait", "a*"),
        ("for i in $L; do run a & x && wait; done; wait", "a*"),
        ("run a & A=$!; run b & wait $A $!; run c", "((a & b) ; c)"),
        ("run a & run b & wait -n; run c", "((a & b & c) ; (a & b))"),
        ("run a & wait $!; run b", "(a ; b)"),
        ("if x; then y; fi; run a & wait; run b", "(a ; b)"),
        ("run a & other | wait; run b & wait &", "(a & b)"),
        ("case $x in a) run a;; b) run b & ;; esac; wait", "(a ; b)"),
        ("f() {\n run a\n}\nf", "a"),
        ("x=$(run a) other; run b", "(a ; b)"),
        ("other `run a`", "a"),
        ('other "$(run a | other)"', "a"),
        ("bash -c 'run a & run b & wait'", "(a & b)"),
        ("run 'a b'", "a b"),
        ("run \\\n  a", "a"),
        ("run a > log 2>&1 &\nrun b &> log &\nwait", "(a & b)"),
        ("run a 2>/dev/null < in >& log | other", "a"),
        ("cat > x <<EOF\nrun a\nEOF\nrun b", "b"),
        ("cat <<EOF\nrun a", "()"),
        ("cat <<-EOF > x\n\trun a\n\tEOF\nrun b", "b"),
        ("cat <<< run; run b", "b"),
        ("# run a\nrun b # run c", "b"),
        ("echo 'run a; run b'; echo \"; run c\"", "()"),
        ("X=1 Y=2 run a", "a"),
        ("! run a", "a"),
        ("run a & fi done } ) esac", "a"),
    ],
)
def test_what_runs(script: str, tree: str):
    """One after another, at the same time, or nobody knows how often."""
    assert shown(script) == tree


def test_what_variables_hold():
    """A command knows what was assigned before it, and of itself; a loop's variable is unknown."""
    part = parse(
        "A=1; export B=2\nset C=3; for D in 1 2; do :; done; read E; E2=$A run x",
        lambda words: words[0] == "run",
        {"E": "9"},
    )
    assert isinstance(part, Call)
    assert part.env == {"A": "1", "B": "2", "C": "3", "E2": "$A"}
    assert expand("$A${B}$D$(x)", part.env) == "12$D$(x)"


def test_tokens_of_merlin_stay():
    """``$(NAME)`` is Merlin's, and no command of the shell's."""
    assert shown("run $(NAME) $(step.workspace)") == "$(NAME)"
    assert [each.text for each in tokens("a$(NAME)b")] == ["a$(NAME)b"]


def test_deep_scripts_come_to_an_end():
    """Brackets without number make nothing fail, and take no time."""
    assert shown("(" * 100_000 + "run a") == "a"
    assert shown("bash -c '" * 3 + "run a") == "()"
    assert shown("run a & " * 2000).endswith("*")
    assert shown("for i in {1..999999}; do run a & done") == "a*"


SCRIPT = st.lists(
    st.sampled_from(
        [
            *"(){}|&;<>'\"`$#\n\\",
            "$(",
            "$((",
            "))",
            "<<E\n",
            "E\n",
            "&&",
            "for i in 1 2;",
            "do ",
            "done ",
            "if ",
            "then ",
            "fi ",
            "case x in a)",
            "esac ",
            ";;",
            "run a ",
            "wait ",
            "x=1 ",
            "while x;",
            "bash -c ",
            "wait $! ",
            "{1..3} ",
            "$(seq 2) ",
            "function f ",
        ]
    ),
    max_size=40,
).map("".join)


@given(SCRIPT)
def test_whatever_stands_there(script: str):
    """No script makes it fail, be it balanced or not."""
    shown(script)


PLAIN = st.lists(
    st.sampled_from(
        ["a", "b1", "-n", "'x y'", '"x y"', "a\\ b", "'$(X)'", "x=1", '""', "#", "c#d", "'e'#f"]
    ),
    min_size=1,
    max_size=6,
)


@given(PLAIN)
def test_words_as_a_shell_has_them(words: list[str]):
    """A command's words are those that a real shell hands to it."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    script = " ".join(["printf", r"'%s\n'", *words])
    said = subprocess.run([bash, "-c", script], capture_output=True, text=True, check=True).stdout
    found = [token.text for token in tokens(script)][2:]
    assert "".join(f"{word}\n" for word in found or [""]) == said
