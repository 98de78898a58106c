"""Files of text: those that lie beside the modules, and such as are written as a whole."""

from __future__ import annotations

import os
from contextlib import suppress


def beside(module: str, name: str) -> str:
    """The text of a file in the folder of a module, whose ``__file__`` is given.

    :mod:`importlib.resources` would load twenty modules more.
    """
    with open(os.path.join(os.path.dirname(module), name), encoding="utf-8") as opened:
        return opened.read()


def write_whole(file: str, text: str, program: bool = False) -> None:
    """Write a file as a whole or not at all, and onto the disk. Raises OSError."""
    part = f"{file}.part-{os.getpid()}"
    try:
        with open(part, "w", encoding="utf-8") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        if program:
            os.chmod(part, 0o755)
        os.replace(part, file)
    except OSError:
        with suppress(OSError):
            os.unlink(part)
        raise
