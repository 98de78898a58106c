"""What the script needs of Merlin where it runs: its commands, and when the work is done."""

from __future__ import annotations

import glob
import os
import re
import shutil
import sys
from collections.abc import Mapping

from taskgraph_workers.schedulers.quoting import word, words


def merlin_folder(given: str | None = None) -> str | None:
    """The folder of the command ``merlin``: the one given, that of this Python, that on PATH."""
    if given is not None:
        return os.path.abspath(given)
    own = os.path.dirname(sys.executable)
    if own and os.access(os.path.join(own, "merlin"), os.X_OK):
        return own
    found = shutil.which("merlin")
    return os.path.dirname(os.path.abspath(found)) if found else None


def setup(*folders: str | None) -> tuple[str, ...]:
    """A shell line that puts folders on PATH: Merlin's own, in which its celery is, and flux's.

    Raises ValueError for a folder whose name can't stand in a script.
    """
    found = ":".join(word(folder) for folder in folders if folder)
    return (f'export PATH={found}:"$PATH"',) if found else ()


def until(file: str, variables: Mapping[str, str], seconds: int) -> str:
    """The command that returns once a study is done: ``merlin monitor``.

    What it does (Merlin 1.13, ``cli/commands/monitor.py``, ``router.check_merlin_status``): it
    waits ``seconds``, and looks; while tasks are in the spec's queues or a worker has one, it
    waits and looks again; else it ends well. If there is no worker for ten such waits it fails,
    as it does when the broker is not there: then the script asks again, and workers stay.

    So a study that was not queued (``merlin run``) ``seconds`` after the workers have started
    counts as done, and the job ends: queue the study first, then submit. That is Merlin's own
    rule, and kept, since the other one (an allocation without a study waits) is paid for by the
    node and hour. Whoever wants to wait gives more seconds.

    Raises ValueError for a name or a value that can't stand in a script.
    """
    command = ["merlin", "monitor", os.path.abspath(file), "--sleep", str(seconds)]
    if variables:
        command += ["--vars", *(f"{name}={value}" for name, value in variables.items())]
    return words(command)


def celery_version(folder: str | None) -> str | None:
    """The version of the celery that is installed beside Merlin, if that can be told."""
    if folder is None:
        return None
    above = glob.escape(os.path.dirname(folder))
    packages = glob.iglob(f"{above}/lib*/python3*/site-packages/celery-*.dist-info")
    names = map(os.path.basename, packages)
    found = (re.fullmatch(r"celery-([\d.]+\w*)\.dist-info", name) for name in names)
    return next((match[1] for match in found if match), None)
