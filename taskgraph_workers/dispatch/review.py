"""What ``check`` says of a configuration's ``dispatch``, besides what the loader finds.

It is looked at without a choice of profile: that is for whoever runs the dispatcher to make.
"""

from __future__ import annotations

from collections.abc import Iterator

from taskgraph_workers.config.names import is_plain
from taskgraph_workers.dispatch import executors
from taskgraph_workers.dispatch.images import start_of
from taskgraph_workers.dispatch.place import nothing_allowed
from taskgraph_workers.errors import Problem
from taskgraph_workers.model import LOCAL, Config, Dispatch

#: What every trainer is told, whatever ``dispatch.task.env`` says.
CONTRACT = (
    *("TRAINING_REQUEST_ID", "TRAINING_IMAGE", "TRAINING_IMAGES_CONTAINER"),
    *("TRAINING_BASE_MODEL_BLOB_ID", "TRAINING_ATTEMPT", "TRAINING_RUN"),
    "TRAINING_PROGRESS_FILE",
)


def review(config: Config) -> list[Problem]:
    """What a dispatcher would refuse to run by, and what trainings would fail by."""
    dispatch = config.dispatch
    if dispatch is None:
        return []
    found = [
        *nothing_allowed(dispatch),
        *executors.problems(dispatch),
        *_nothing_runs(dispatch),
        *_overruled(dispatch),
    ]
    return found if config.trace is None else config.trace.locate(found)


def _nothing_runs(dispatch: Dispatch) -> Iterator[Problem]:
    """Images without a command, where commands alone run them. A pattern may stand for any."""
    if dispatch.executor != LOCAL or dispatch.engine != "none":
        return
    hint = "give it one in dispatch.local.commands, or name an engine"
    if not dispatch.commands:
        what = "no engine runs images, and no image has a command: every request would fail"
        yield Problem(what, (*dispatch.path, "local", "engine"), hint, "warning")
        return
    for index, image in enumerate(dispatch.images):
        if is_plain(image) and not start_of(dispatch, image).command:
            what = f"no engine runs images, and {image!r} has no command: its requests would fail"
            yield Problem(what, (*dispatch.path, "images", index), hint, "warning")


def _overruled(dispatch: Dispatch) -> Iterator[Problem]:
    """Variables that say something else to every trainer."""
    for name in dispatch.task.env:
        if name in CONTRACT:
            what = f"every trainer is told {name} by the dispatcher, so this is never used"
            at = (*dispatch.path, "task", "env", name)
            yield Problem(what, at, "take another name, or leave it out", "warning")
