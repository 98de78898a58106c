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
from taskgraph_workers.offered import offered

if TYPE_CHECKING:
    from taskgraph_workers.dispatch.brokers.base import Broker
    from taskgraph_workers.dispatch.executors.base import Executor
    from taskgraph_workers.dispatch.ledger.database import Ledger
    from taskgraph_workers.model import Dispatch

#: The environment variables, by what they say.
STATE, DATABASE = "TASKGRAPH_WORKERS_STATE", "TASKGRAPH_WORKERS_DATABASE"
BROKER, EXECUTOR = "TASKGRAPH_WORKERS_BROKER", "TASKGRAPH_WORKERS_EXECUTOR"

#: Where other packages offer theirs.
BROKERS = "taskgraph_workers.brokers"

_SECRET = re.compile(r"pass|pwd|secret|token|key|sig|credential", re.IGNORECASE)
_HIDDEN = "***"


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
    """What options say, else the environment, else nobody.

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
            raise WorkersError(Problem(what, hint="SCHEME://HOST/NAME"))
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
    # The last @ parts it from the host, and the first : from the user.
    user, at, _ = parts.netloc.rpartition("@")
    found = [user.partition(":")[2]] if at else []
    query = re.findall(r"([^&;=?]+)=([^&;#]*)", parts.query)
    found += [value for name, value in query if _SECRET.search(name)]
    return [each for each in found if each]


# --- what is opened -------------------------------------------------------------------------


def ledger(state: State, create: bool = True) -> Ledger:
    """Open the ledger. Raises LedgerError, and WorkersError for a database nobody knows."""
    from taskgraph_workers.dispatch.ledger.database import Settings, open_ledger

    if state.database is None:
        return open_ledger(state.folder, Settings(create=create))
    scheme = urlsplit(state.database).scheme
    if scheme != "sqlite":
        what = f"{masked(state.database)} is no database that this version keeps a ledger in"
        raise WorkersError(Problem(what, hint="sqlite:////FOLDER, or leave it out and say --state"))
    return open_ledger(urlsplit(state.database).path[1:] or ".", Settings(create=create))


def broker(state: State, opened: Ledger) -> Broker:
    """What carries messages: the ledger itself, unless a URL says otherwise."""
    from taskgraph_workers.dispatch.brokers.sql import SqlBroker

    if state.broker is None:
        return SqlBroker(opened)
    scheme = urlsplit(state.broker).scheme
    found = offered(BROKERS)
    for each in found:
        if each.name == scheme:
            try:
                made: Broker = each.load()(state.broker)
            except Exception as error:
                # Somebody else's code, whose words may hold the password.
                why = f"broker {scheme!r} ({each.value}) can't be loaded: {type(error).__name__}"
                raise WorkersError(Problem(f"{why}, for {masked(state.broker)}")) from error
            return made
    what = f"nobody here knows a broker {scheme!r}: {masked(state.broker)}"
    hint = did_you_mean(scheme, [each.name for each in found], "leave it out: the ledger")
    raise WorkersError(Problem(what, hint=hint))


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
