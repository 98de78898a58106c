"""What besides the spec decides what is launched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from taskgraph_workers.machines import Node

#: What Merlin puts before the name of every queue, unless its app.yaml says otherwise.
QUEUE_TAG = "[merlin]_"


class Options(NamedTuple):
    """What the command line and this machine say.

    ``nodes`` and ``walltime_s`` are those given for the allocation, ``node`` what one node has.
    ``groups`` are those chosen, all where it is empty. ``setup`` are lines that the script runs
    before anything else. ``host`` is this machine's name, which
    ``machines`` is held against. ``scheduler`` is the one that will get the job, where that is
    known, else the spec's counts. ``folder`` is where the command ``merlin`` is; without it it is
    looked for. ``variables`` are those of ``--vars``, ``environ`` is what ``$NAME`` in a worker's
    arguments stands for where a number is needed. ``monitor_s`` is how long ``merlin monitor``
    waits before each look.
    """

    nodes: int | None = None
    node: Node | None = None
    groups: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    host: str = ""
    scheduler: str | None = None
    walltime_s: int | None = None
    folder: str | None = None
    variables: Mapping[str, str] = {}
    environ: Mapping[str, str] = {}
    queue_tag: str = QUEUE_TAG
    monitor_s: int = 60
