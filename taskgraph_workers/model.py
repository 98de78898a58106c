"""The values everything else is made of: what a configuration says, and what became of a name.

All of them are frozen. ``config/`` makes a :class:`Config` out of YAML, once;
:mod:`taskgraph_workers.resolve` makes a :class:`Placement` out of a :class:`Config`, a worker
name, a :class:`Choice` and a :class:`Context`. Nothing here knows YAML, Taskgraph or a scheduler.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from taskgraph_workers.errors import TOP, Path
from taskgraph_workers.machines import Cluster

#: The four fields of an alias in Taskgraph's ``workers.aliases``.
ALIAS_FIELDS = ("provisioner", "worker-type", "implementation", "os")

#: Those of them that make up the pool.
POOL_FIELDS = ("provisioner", "worker-type")

#: What the name of an environment variable looks like: as POSIX shells take it.
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

#: Worker types that Taskgraph builds in (taskgraph.util.workertypes): no alias, no machine.
BUILT_IN = frozenset({"always-optimized", "succeed"})

#: What a value of ``workers-config`` may be keyed by, as in ``by-level``.
KEYED_BY = ("level", "project", "tasks-for", "kind", "profile")

#: The executor that is this machine.
LOCAL = "local"

#: Container engines of this machine, in the order in which they are asked.
ENGINES = ("podman", "docker", "apptainer", "singularity")


@dataclass(frozen=True)
class Context:
    """What a placement depends on besides the name and the choice.

    ``level`` is Taskcluster's SCM level as text ("1", "3"), ``tasks_for`` what the decision task
    was made for ("github-push"). ``profile`` is filled in from the choice: see :meth:`under`.
    """

    level: str = "1"
    project: str = ""
    tasks_for: str = ""
    kind: str = ""
    trust_domain: str = ""
    profile: str | None = None

    def get(self, by: str) -> str | None:
        """The value that ``by-<by>`` looks at; None where it is unknown."""
        value: str | None = getattr(self, by.replace("-", "_"))
        return value or None

    def under(self, choice: Choice) -> Context:
        """The same, with the profile that was chosen."""
        return replace(self, profile=choice.profile)


@dataclass(frozen=True)
class Keyed:
    """A value that differs by one field of the context: ``{by-level: {"3": a, default: b}}``."""

    by: str
    choices: Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    """What one entry says of the names it matches.

    An entry of ``workers`` says ``env`` and ``resources``. One of a profile, or of a run's
    overrides, may also send the name on (``to``), replace alias fields (``fields``), and lay
    values over the task's own ``worker`` (None removes). Every value may be :class:`Keyed`.
    """

    path: Path
    to: str | Keyed | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    env: Any = field(default_factory=dict)
    resources: Any = field(default_factory=dict)
    worker: Any = field(default_factory=dict)


@dataclass(frozen=True)
class Layer:
    """Entries that are matched together. An entry is a Change, a Keyed one, or None (dropped).

    ``source`` names it to people: ``profile onprem``, ``parameter workers``.
    """

    source: str
    entries: Mapping[str, Change | Keyed | None]


@dataclass(frozen=True)
class Profile:
    """A named layer, the profile it builds on, and the levels it may be used at."""

    name: str
    path: Path
    layer: Layer
    extends: str | None = None
    levels: frozenset[str] | None = None


@dataclass(frozen=True)
class Requirement:
    """Env that tasks must end up with when a name of their chain matches ``workers``."""

    path: Path
    workers: tuple[str, ...]
    env: tuple[str, ...]


@dataclass(frozen=True)
class Selection:
    """What one source says about the choice: a profile by kind (or ``default``), overrides.

    ``source`` names it to people (``TASKGRAPH_WORKERS_PROFILE``, ``select.default``).
    """

    source: str
    path: Path = ()
    profiles: Mapping[str, str] = field(default_factory=dict)
    overrides: Layer | None = None


@dataclass(frozen=True)
class Select:
    """Where the choice comes from when nobody says: a default, and the parameter to look at."""

    default: Selection | Keyed | None = None
    parameter: str | None = None


@dataclass(frozen=True)
class Action:
    """The action "run on other workers": who may start it, where, and its place in menus.

    ``permission`` is the last part of the role that an action task of this kind has. ``levels``
    of None are all.
    """

    permission: str = "generic"
    levels: frozenset[str] | None = None
    order: int = 250


@dataclass(frozen=True)
class Decision:
    """What decision tasks do besides: ``plan`` among their artifacts, and the action, if any."""

    plan: bool = True
    action: Action | None = Action()


@dataclass(frozen=True)
class Config:
    """A whole, valid configuration.

    ``aliases`` is Taskgraph's table, each alias a Change that gives all of ``fields``.
    ``trace`` finds the line of a key path when something is printed; it is no part of the value.
    """

    aliases: Mapping[str, Change] = field(default_factory=dict)
    workers: Layer = Layer("workers", {})
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    select: Select = Select()
    require: tuple[Requirement, ...] = ()
    protected_workers: tuple[str, ...] = ()
    protected_kinds: tuple[str, ...] = ()
    decision: Decision = Decision()
    clusters: Mapping[str, Cluster] = field(default_factory=dict)
    dispatch: Dispatch | None = None
    trace: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Choice:
    """What one run picked for one kind: a profile, and overrides, nearest first.

    ``source`` says who picked the profile; it is empty where nobody did.
    """

    profile: str | None = None
    source: str = ""
    overrides: tuple[Layer, ...] = ()


@dataclass(frozen=True)
class Value:
    """A value, who said it (``source``) and where, and the value it overrode.

    A ``value`` of None says that the key is removed.
    """

    value: Any
    source: str
    path: Path
    overrode: Value | None = None


@dataclass(frozen=True)
class Placement:
    """Where a task that asks for one name runs, and what it is told.

    ``chain`` leads from the asked name to the alias. ``fields`` holds the four alias fields as
    Taskgraph will use them (``{level}`` and the like replaced). The task's own env lies between
    ``env``, which is weaker, and ``env_override``; see :func:`taskgraph_workers.resolve.task_env`.
    ``worker`` is laid over the task's own ``worker``. Memory in ``resources`` is in MiB.
    """

    chain: tuple[str, ...]
    choice: Choice
    fields: Mapping[str, Value]
    moved: bool
    env: Mapping[str, Value] = field(default_factory=dict)
    env_override: Mapping[str, Value] = field(default_factory=dict)
    resources: Mapping[str, Value] = field(default_factory=dict)
    worker: Mapping[str, Value] = field(default_factory=dict)
    require: tuple[Requirement, ...] = ()

    @property
    def asked(self) -> str:
        """The worker name that the task asked for."""
        return self.chain[0]

    @property
    def alias(self) -> str:
        """The last name of the chain: what ``{alias}`` stands for."""
        return self.chain[-1]

    @property
    def pool(self) -> str:
        """``provisioner/worker-type``, Taskcluster's taskQueueId."""
        return f"{self.fields['provisioner'].value}/{self.fields['worker-type'].value}"

    @property
    def implementation(self) -> str:
        """The worker implementation, such as ``docker-worker``."""
        return str(self.fields["implementation"].value)

    @property
    def os(self) -> str:
        """The operating system of the worker's host, such as ``linux``."""
        return str(self.fields["os"].value)

    @property
    def silent(self) -> bool:
        """Whether a task that asks for this name stays as it is (rule 7).

        What is said of ``resources`` alone changes no task.
        """
        said = self.env or self.env_override or self.worker or self.require
        return not (self.moved or said)


# --- What a message may ask for ---------------------------------------------------------------


@dataclass(frozen=True)
class RequestTask:
    """What the task of a request is like. Every value may be keyed by image or sku."""

    max_run_time_s: Any = None
    retries: Any = None
    scopes: Any = ()
    env: Any = field(default_factory=dict)


@dataclass(frozen=True)
class Commands:
    """A site's own commands, as words, by which jobs run elsewhere.

    Words may hold placeholders, such as ``{key}``. ``release`` is empty where nothing has to be let
    go of once a job has ended. Each command is given ``timeout_s``.
    """

    name: str
    path: Path = ()
    submit: tuple[str, ...] = ()
    find: tuple[str, ...] = ()
    poll: tuple[str, ...] = ()
    cancel: tuple[str, ...] = ()
    release: tuple[str, ...] = ()
    timeout_s: int = 60


@dataclass(frozen=True)
class Dispatch:
    """What may be asked for.

    ``level``, ``project`` and ``kind`` are the context of its placements. ``skus`` leads from a
    machine type to a worker name; ``images`` are whole-name patterns. ``executor`` names what runs
    requests: ``local``, one of ``executors``, or one that another package has. On this machine
    ``engine`` runs images (None: the first that works), with ``engine_options`` as they are;
    ``commands`` are words to run, by image, where none does; so many run ``at_once``.
    """

    path: Path = (*TOP, "dispatch")
    level: str = "1"
    project: str = ""
    kind: str = ""
    skus: Mapping[str, str] = field(default_factory=dict)
    images: tuple[str, ...] = ()
    task: RequestTask = RequestTask()
    executor: str = LOCAL
    executors: Mapping[str, Commands] = field(default_factory=dict)
    engine: str | None = None
    engine_options: tuple[str, ...] = ()
    commands: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    at_once: int = 1
