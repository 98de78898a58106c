"""Files that lie beside the modules. :mod:`importlib.resources` would load twenty modules more."""

from __future__ import annotations

import os


def beside(module: str, name: str) -> str:
    """The text of a file in the folder of a module, whose ``__file__`` is given."""
    with open(os.path.join(os.path.dirname(module), name), encoding="utf-8") as opened:
        return opened.read()
