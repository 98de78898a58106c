"""From what a Merlin spec says to what is to be launched."""

from __future__ import annotations

import os
import re

from taskgraph_workers.launch.merlin.cautions import Case, caution, no_merlin
from taskgraph_workers.launch.merlin.chains import chains
from taskgraph_workers.launch.merlin.corrected import corrected
from taskgraph_workers.launch.merlin.model import Spec
from taskgraph_workers.launch.merlin.notes import Notes
from taskgraph_workers.launch.merlin.options import Options
from taskgraph_workers.launch.merlin.parts import Part, part
from taskgraph_workers.launch.merlin.queues import Group, groups
from taskgraph_workers.launch.merlin.runtime import celery_version, merlin_folder, setup, until
from taskgraph_workers.launch.merlin.stages import stages
from taskgraph_workers.launch.merlin.workers import worker_group
from taskgraph_workers.launch.model import Ask, WorkerGroup
from taskgraph_workers.machines import Header
from taskgraph_workers.schedulers.base import ID

#: What the originating issue's script is called, and where its output goes.
NAME = "Merlin"
OUTPUT = f"merlin_workers_{ID}.out"

#: How schedulers write a job's id in the name of its output file.
_IDS = re.compile(r"%[jJ]|\{\{id\}\}")


def ask(spec: Spec, options: Options | None = None) -> Ask:
    """What a spec asks for: its groups of workers, the header, the stages of its study.

    Raises LaunchError with everything that makes it impossible, and all warnings.
    """
    options = options or Options()
    notes = Notes(spec.file, spec.notes)
    found = groups(spec, options.environ, notes)
    chosen = part(spec, found, options, notes)
    made = {group.name: _made(group, chosen, options, notes) for group in found}
    workers = tuple(made[group.name] for group in chosen.groups)
    folder = merlin_folder(options.folder)
    lines, done = _runtime(spec, (folder, chosen.batch.flux_path), options, notes)
    tasks = chains(spec)
    caution(Case(spec, chosen, workers, tasks, options, celery_version(folder)), notes)
    notes.check()
    return Ask(
        title=spec.name,
        groups=workers,
        header=_header(chosen.batch.header),
        scheduler=chosen.batch.scheduler,
        setup=(*options.setup, *lines),
        stages=stages(tasks, workers),
        others=chosen.others,
        until=done,
        corrected=corrected(spec, chosen, made),
        notes=notes.all(),
        file=os.path.abspath(spec.file),
    )


def _made(group: Group, chosen: Part, options: Options, notes: Notes) -> WorkerGroup:
    """A group as it is launched, or as it would be: of one that is not, its faults alone count."""
    if group in chosen.groups:
        return worker_group(group, chosen.batch, options, notes)
    quiet = Notes(notes.file)
    made = worker_group(group, group.worker.batch or chosen.batch, options, quiet)
    notes.take(quiet.errors())
    return made


def _header(said: Header) -> Header:
    output = _IDS.sub(ID, said.output) if said.output else OUTPUT
    return said._replace(name=said.name or NAME, output=output)


def _runtime(
    spec: Spec, folders: tuple[str | None, str | None], options: Options, notes: Notes
) -> tuple[tuple[str, ...], str | None]:
    """The lines that set Merlin up, and the command that tells when the work is done."""
    if folders[0] is None:
        no_merlin(notes)
    try:
        return setup(*folders), until(spec.file, options.variables, options.monitor_s)
    except ValueError as error:
        notes.error(str(error))
        return (), None
