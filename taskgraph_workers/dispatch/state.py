"""Where a dispatcher keeps its state, and what it works with: from options and the environment.

Whatever is not said is on this machine: a folder with a ledger in SQLite, and the local executor.
A password is taken from the environment only, since a command line can be read by everyone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from taskgraph_workers.errors import Problem, WorkersError, did_you_mean
from taskgraph_workers.offered import load, offered

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from taskgraph_workers.dispatch.brokers.base import Broker
    from taskgraph_workers.dispatch.brokers.transport import Transport
    from taskgraph_workers.dispatch.executors.base import Executor
    from taskgraph_workers.dispatch.ledger.database import Ledger
    from taskgraph_workers.dispatch.means import Means
    from taskgraph_workers.model import Dispatch

#: The environment variables, by what they say.
STATE, DATABASE = "TASKGRAPH_WORKERS_STATE", "TASKGRAPH_WORKERS_DATABASE"
BROKER, EXECUTOR = "TASKGRAPH_WORKERS_BROKER", "TASKGRAPH_WORKERS_EXECUTOR"

#: Where other packages offer theirs.
BROKERS = "taskgraph_workers.brokers"

#: The scheme of URLs that name a folder of this machine's.
_FOLDER = "sqlite"

_SECRET = re.compile(r"pass|pwd|secret|token|key|sig|credential", re.IGNORECASE)
_HIDDEN = "***"

#: The host's part of a URL that names no user.
_PORT = re.compile(r"^([^:]*|\[[^]]*\])(:\d*)?$")

#: A name and its value, in a query or, as in connection strings of Azure, behind a semicolon.
_PAIR = re.compile(r"(?:^|[?&;])([^&;=?/]+)=([^&;#]*)")


@dataclass(frozen=True)
class State:
    """Where everything is. ``database`` and ``broker`` are URLs; None: embedded, in ``folder``.

    ``executor`` is None where the configuration decides.
    """

    folder: Path
    database: str | None = None
    broker: str | None = None
    executor: str | None = None


def state_of(options: Mapping[str, str | None], environ: Mapping[str, str] = os.environ) -> State:
    """What options say, else the environment, else None.

    ``options`` are ``state``, ``database``, ``broker`` and ``executor``, None where not given.
    Raises WorkersError for a password among them, and for a URL that is none.
    """
    for name in ("database", "broker"):
        url = options.get(name)
        if url is not None and _secrets(url):
            what = f"--{name} holds a password, which everyone on this machine could read"
            raise WorkersError(Problem(what, hint=f"put the URL into {_VARIABLES[name]}"))
    said = {
        name: options.get(name) or environ.get(variable) or None
        for name, variable in _VARIABLES.items()
    }
    for name in ("database", "broker"):
        url = said[name]
        if url is not None and "://" not in url:
            what = f"{_source(name, options)} is no URL: {masked(url)}"
            hint = f"{_FOLDER}:///{masked(url) if url.startswith('/') else '/FOLDER'}"
            raise WorkersError(Problem(what, hint=hint))
    folder = Path(said["state"]) if said["state"] else _usual(environ)
    return State(folder.absolute(), said["database"], said["broker"], said["executor"])


_VARIABLES = {"state": STATE, "database": DATABASE, "broker": BROKER, "executor": EXECUTOR}


def _source(name: str, options: Mapping[str, str | None]) -> str:
    return f"--{name}" if options.get(name) else _VARIABLES[name]


def _usual(environ: Mapping[str, str]) -> Path:
    """As the XDG Base Directory Specification has it: a path that is not absolute is ignored."""
    base = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        home = environ.get("HOME") or os.path.expanduser("~")
        base = os.path.join(home, ".local", "state")
    return Path(base) / "taskgraph-workers"


# --- URLs -----------------------------------------------------------------------------------


def masked(url: str) -> str:
    """A URL as it may be shown: without what is secret in it.

    >>> masked("amqp://me:x@queue.example.com/vhost?heartbeat=5&api_key=x")
    'amqp://me:***@queue.example.com/vhost?heartbeat=5&api_key=***'
    """
    secrets = _secrets(url)
    if url in secrets:
        return _HIDDEN
    for secret in sorted(secrets, key=len, reverse=True):
        url = re.sub(rf"([:=]){re.escape(secret)}(?=[@&#;]|$)", rf"\1{_HIDDEN}", url)
    return url


def _secrets(url: str) -> list[str]:
    """What is secret in a URL, as it is written there."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return [url]
    if "@" in url and "@" not in parts.netloc and not _PORT.search(parts.netloc):
        return [url]  # a password with a / ? or # in it, which ends the host's part of a URL
    # The last @ parts it from the host, and the first : from the user.
    user, at, _ = parts.netloc.rpartition("@")
    found = [user.partition(":")[2]] if at else []
    found += [value for name, value in _PAIR.findall(url) if _SECRET.search(name)]
    return [each for each in found if each]


# --- what is opened -------------------------------------------------------------------------


def ledger(state: State, create: bool = True) -> Ledger:
    """Open the ledger. Raises LedgerError, and WorkersError for a database nobody knows."""
    from taskgraph_workers.dispatch.ledger.database import Settings, open_ledger

    if state.database is None:
        return open_ledger(state.folder, Settings(create=create))
    if urlsplit(state.database).scheme != _FOLDER:
        what = f"{masked(state.database)} is no database that this version keeps a ledger in"
        raise WorkersError(Problem(what, hint="sqlite:////FOLDER, or leave it out and say --state"))
    return open_ledger(_folder(state.database), Settings(create=create))


def has_queue(state: State) -> bool:
    """Whether messages wait in a database of their own."""
    return state.broker is not None and urlsplit(state.broker).scheme == _FOLDER


def messages(state: State, create: bool) -> Ledger:
    """Open the database in which start messages wait: the ledger, or one of their own.

    Raises LedgerError, and WorkersError where another program's broker has them.
    """
    from taskgraph_workers.dispatch.ledger.database import Settings, open_ledger
    from taskgraph_workers.dispatch.ledger.files import QUEUE

    if state.broker is None:
        return ledger(state, create)
    if has_queue(state):
        return open_ledger(_folder(state.broker), Settings(create=create, kind=QUEUE))
    what = f"messages for the broker {_offered(state.broker).name} are sent by its own tools"
    raise WorkersError(Problem(what, hint="leave out --broker"))


def transport(state: State, means: Means) -> Transport:
    """What carries messages: the ledger, unless a URL says otherwise. Raises WorkersError."""
    from taskgraph_workers.dispatch.brokers.embedded import Embedded
    from taskgraph_workers.dispatch.brokers.external import External

    if state.broker is None:
        return Embedded(means.ledger, means.clock)
    return External(means, _broker(state, state.broker))


def _broker(state: State, url: str) -> Broker:
    from taskgraph_workers.dispatch.brokers.sql import SqlBroker

    if has_queue(state):
        queue = SqlBroker(_folder(url))
        queue.check()
        return queue
    made: Broker = load("broker", _offered(url), url, shown=masked(url))
    return made


def _offered(url: str) -> EntryPoint:
    """The broker of another package that a URL names. Raises WorkersError where nobody has it."""
    scheme, found = urlsplit(url).scheme, offered(BROKERS)
    for each in found:
        if each.name == scheme:
            return each
    what = f"nobody here knows a broker {scheme!r}: {masked(url)}"
    known = [_FOLDER, *(each.name for each in found)]
    instead = f"{_FOLDER}:////FOLDER, or leave it out: the ledger"
    raise WorkersError(Problem(what, hint=did_you_mean(scheme, known, instead)))


def _folder(url: str) -> Path:
    """The folder that a URL names, as it is written there. Raises WorkersError."""
    rest = url.partition("://")[2]
    if len(rest) < 2 or rest[0] != "/":
        what = f"{masked(url)} names no folder of this machine"
        raise WorkersError(Problem(what, hint=f"{_FOLDER}:////FOLDER, with four slashes"))
    return Path(rest[1:]).absolute()


class Executors:
    """What runs requests, by name; each is made when it is first asked for.

    Requests may be under way at one that new ones no longer go to.
    """

    def __init__(self, state: State, dispatch: Dispatch) -> None:
        from taskgraph_workers.dispatch.executors import Setting

        self._setting = Setting(dispatch, str(state.folder))
        self._made: dict[str, Executor | None] = {}

    def get(self, name: str) -> Executor | None:
        """The executor of this name; None where there is none."""
        if name not in self._made:
            try:
                self._made[name] = self.find(name)
            except WorkersError:
                self._made[name] = None
        return self._made[name]

    def find(self, name: str) -> Executor:
        """The executor of this name. Raises WorkersError where there is none."""
        from taskgraph_workers.dispatch.executors import find

        self._made[name] = made = find(name, self._setting)
        return made


def executor_name(state: State, dispatch: Dispatch) -> str:
    """What new requests go to."""
    return state.executor or dispatch.executor
