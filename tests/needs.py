"""Tools from outside Python that a test cannot do without."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest

# Servers and schedulers live in sbin, which a normal user's PATH leaves out.
_ALSO_IN = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def needs(tool: str) -> str:
    """Return the path of `tool`; where it is missing, skip the test, or fail it when CI=true.

    To be called in a test, in a fixture or at the top of a module. On CI a missing tool is a
    fault of `.ci/run`, and a skip would hide that part of the project is no longer tested.
    """
    path = shutil.which(tool, path=os.pathsep.join((os.environ.get("PATH", ""), *_ALSO_IN)))
    if path:
        return path
    lacking(f"{tool} is not installed", "; .ci/run has to install it")


def lacking(reason: str, on_ci: str = "") -> NoReturn:
    """Skip the test for a reason, or fail it when CI=true, which is to have everything."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason + on_ci, pytrace=False)
    pytest.skip(reason, allow_module_level=True)
