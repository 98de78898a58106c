"""The tables of the ledger. Times are seconds since the epoch, JSON is text.

An attempt is alive or held, and an end message unsent, as long as its time column is null: partial
indexes are on that, since SQLite takes one only where the query says the same, without parameters.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    and_,
)

metadata = MetaData()

# A row id that is never given twice, also after its row is gone.
_ID = BigInteger().with_variant(Integer, "sqlite")
_TIME = Float(53)


def _time(name: str) -> Column[Any]:
    return Column(name, _TIME)


def _when(name: str, *columns: Column[Any], null: Column[Any]) -> Index:
    """A partial index: of rows whose time column is null."""
    return Index(name, *columns, sqlite_where=null.is_(None), postgresql_where=null.is_(None))


schema_version = Table("schema_version", metadata, Column("version", Integer, nullable=False))

messages = Table(
    "messages",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("queue", String(50), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("dedup", Text),
    Column("visible_at", _TIME, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("lease", String(40)),
    UniqueConstraint("queue", "dedup", name="messages_dedup"),
    sqlite_autoincrement=True,
)
Index("messages_next", messages.c.queue, messages.c.visible_at, messages.c.id)

dead_letters = Table(
    "dead_letters",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("queue", String(50), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("code", String(50), nullable=False),
    Column("reason", Text, nullable=False),
    Column("request_id", String(200)),
    Column("first_at", _TIME, nullable=False),
    Column("last_at", _TIME, nullable=False),
    Column("times", Integer, nullable=False, server_default="1"),
    UniqueConstraint("queue", "digest", "code", name="dead_letters_content"),
    sqlite_autoincrement=True,
)

requests = Table(
    "requests",
    metadata,
    Column("request_id", String(200), primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("sku", Text),
    Column("image", Text),
    Column("attempt", Integer, nullable=False),
    Column("state", String(20), nullable=False),
    Column("reason", Text, nullable=False),
    Column("received_at", _TIME, nullable=False),
    _time("ended_at"),
)
Index("requests_newest", requests.c.received_at, requests.c.request_id)
_when("requests_alive", requests.c.received_at, null=requests.c.ended_at)

attempts = Table(
    "attempts",
    metadata,
    Column("request_id", String(200), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("key", String(40), nullable=False, unique=True),
    Column("executor", String(100), nullable=False),
    Column("job", Text, nullable=False),
    Column("handle", Text),
    Column("state", String(20), nullable=False),
    Column("reason", Text, nullable=False),
    Column("exit_code", Integer),
    _time("cancel_asked_at"),
    Column("tries", Integer, nullable=False),
    Column("failures", Integer, nullable=False, server_default="0"),
    Column("next_look", _TIME, nullable=False),
    Column("owner", Text),
    Column("owned_until", _TIME, nullable=False),
    Column("run", Integer, nullable=False),
    Column("machine", Text),
    _time("unheard_since"),
    Column("created_at", _TIME, nullable=False),
    _time("started_at"),
    _time("ended_at"),
    _time("released_at"),
)
#: An attempt that has not ended, and one that has and holds something.
ALIVE = attempts.c.ended_at.is_(None)
HELD = and_(attempts.c.ended_at.is_not(None), attempts.c.released_at.is_(None))

_when("attempts_due", attempts.c.next_look, null=attempts.c.ended_at)
Index("attempts_held", attempts.c.next_look, sqlite_where=HELD, postgresql_where=HELD)

progress = Table(
    "progress",
    metadata,
    Column("request_id", String(200), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("run", Integer, primary_key=True),
    Column("name", String(200), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("at", _TIME, nullable=False),
    Column("data", Text, nullable=False),
)

machines = Table(
    "machines",
    metadata,
    Column("id", Text, primary_key=True),
    Column("pool", Text, nullable=False),
    Column("ephemeral", Boolean, nullable=False),
    _time("created_at"),
    _time("stop_asked_at"),
    _time("gone_at"),
)
_when("machines_there", machines.c.id, null=machines.c.gone_at)

outbox = Table(
    "outbox",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("message_id", Text, nullable=False, unique=True),
    Column("body", Text, nullable=False),
    Column("created_at", _TIME, nullable=False),
    Column("next_try", _TIME, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("lease", String(40)),
    _time("sent_at"),
    sqlite_autoincrement=True,
)
_when("outbox_unsent", outbox.c.next_try, outbox.c.id, null=outbox.c.sent_at)

uses = Table(
    "uses",
    metadata,
    Column("machine", Text, primary_key=True),
    Column("request_id", String(200), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("run", Integer, primary_key=True),
)
