"""Flux's own parser of directives, from the wheel flux-python.

That module alone is pure Python: the rest of the package wants Flux's library.
"""

from __future__ import annotations

import importlib.util
import io
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from needs import lacking


def options(script: str) -> list[str]:
    """All words of a script's directives, in their order. Raises ValueError as Flux refuses it."""
    found = _module().DirectiveParser(io.StringIO(script)).directives
    return [word for directive in found for word in directive.args]


@lru_cache(maxsize=1)
def _module() -> ModuleType:
    package = importlib.util.find_spec("flux")
    folders = package.submodule_search_locations if package else None
    if not folders:
        lacking("flux-python is not installed; it is built for Linux on x86_64")
    spec = importlib.util.spec_from_file_location(
        "flux_directives", Path(folders[0]) / "job" / "directives.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
