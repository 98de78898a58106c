"""``completion``: what a shell needs to complete the command, made from its parser."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from taskgraph_workers.cli import options
from taskgraph_workers.cli.output import Output

#: Where to put it, by shell.
SHELLS = {
    "bash": 'eval "$(taskgraph-workers completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(taskgraph-workers completion zsh)" in ~/.zshrc, after compinit',
    "fish": "taskgraph-workers completion fish > ~/.config/fish/completions/taskgraph-workers.fish",
}


def add_parser(subparsers: Any) -> None:
    """Add ``completion`` to the command."""
    parser = options.add_command(
        subparsers,
        run,
        "Print what a shell needs to complete this command.",
        "\n  ".join(SHELLS.values()),
    )
    parser.add_argument("shell", choices=tuple(SHELLS), metavar="{bash,zsh,fish}")
    options.add_output(parser, json=False)


def run(args: argparse.Namespace, output: Output) -> int:
    """Print the script for a shell."""
    from taskgraph_workers.cli import make_parser

    words = list(words_of(make_parser()))
    output.text({"bash": bash, "zsh": zsh, "fish": fish}[args.shell](words))
    return 0


@dataclass(frozen=True)
class Word:
    """A word that may stand after the subcommands of ``path``.

    ``command`` says that it is one more of these. ``short`` is the other spelling of an option.
    ``values`` are what may follow it: empty where nothing does, None for a file or a free text.
    """

    path: tuple[str, ...]
    text: str
    help: str = ""
    command: bool = False
    short: str = ""
    values: tuple[str, ...] | None = ()


def words_of(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[Word]:
    """Every word that a parser and its subcommands know."""
    for action in parser._actions:
        told = str(action.help or "")
        if isinstance(action, argparse._SubParsersAction):
            helped = {each.dest: str(each.help or "") for each in action._choices_actions}
            for name, below in action.choices.items():
                yield Word(path, name, helped.get(name, ""), command=True)
                yield from words_of(below, (*path, name))
        elif action.option_strings:
            values = () if action.nargs == 0 else tuple(action.choices) if action.choices else None
            short = next((each for each in action.option_strings if each[1] != "-"), "")
            for text in action.option_strings:
                if text != short:
                    yield Word(path, text, told, short=short, values=values)
        else:
            yield from (Word(path, str(each)) for each in action.choices or ())
    for name, verb in getattr(parser, "verbs", {}).items():
        yield Word(path, name, str(verb.description), command=True)
        yield from words_of(verb, (*path, name))


def bash(words: list[Word]) -> str:
    """A completion for bash; where it has nothing to say, bash completes file names."""
    commands = "|".join(_key((*word.path, word.text)) for word in words if word.command)
    lines = [
        "_taskgraph_workers() {",
        "    local path='' word words=''",
        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}",
        '    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
        f'        case "$path $word" in {commands}) path="$path $word" ;; esac',
        "    done",
        '    case "$path $prev" in',
    ]
    for word in words:
        if word.values != ():
            spelled = [_key((*word.path, text)) for text in (word.text, word.short) if text]
            lines.append(f'        {"|".join(spelled)}) words="{" ".join(word.values or ())}" ;;')
    lines += ["        *)", '            case "$path" in']
    for path in sorted({word.path for word in words}):
        here = " ".join(word.text for word in words if word.path == path)
        lines.append(f'                {_key(path)}) words="{here}" ;;')
    lines += [
        "            esac",
        "    esac",
        "    # shellcheck disable=SC2207",
        '    COMPREPLY=($(compgen -W "$words" -- "$cur"))',
        "}",
        "complete -o default -F _taskgraph_workers taskgraph-workers",
    ]
    return "\n".join([*lines, ""])


def _key(path: tuple[str, ...]) -> str:
    """How the function above spells a path: each word after a blank."""
    return '"' + "".join(f" {word}" for word in path) + '"'


def zsh(words: list[Word]) -> str:
    """That of bash, which zsh can read."""
    return "autoload -U +X bashcompinit && bashcompinit\n" + bash(words)


def fish(words: list[Word]) -> str:
    """A completion for fish, with descriptions."""
    lines = ["complete -c taskgraph-workers -f"]
    for word in words:
        seen = [f"__fish_seen_subcommand_from {name}" for name in word.path]
        here = "; and ".join(seen) or "__fish_use_subcommand"
        parts = [f"complete -c taskgraph-workers -n {_quoted(here)}"]
        if not word.text.startswith("-"):
            parts.append(f"-a {_quoted(word.text)}")
        else:
            parts.append(f"-l {word.text.lstrip('-')}")
            parts += [f"-s {word.short.lstrip('-')}"] if word.short else []
            if word.values is None:
                parts.append("-r -F")
            elif word.values:
                parts.append(f"-x -a {_quoted(' '.join(word.values))}")
        parts += [f"-d {_quoted(word.help)}"] if word.help else []
        lines.append(" ".join(parts))
    return "\n".join([*lines, ""])


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
