"""The version of the schema: made new, or taken forward from what an earlier release made."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import Connection, insert, inspect, select, text, update

from taskgraph_workers.dispatch.failpoints import reach
from taskgraph_workers.dispatch.ledger.errors import LedgerError
from taskgraph_workers.dispatch.ledger.tables import metadata, schema_version
from taskgraph_workers.errors import Problem

Migration = Callable[[Connection], None]


def _to_2(conn: Connection) -> None:
    """Dead letters are counted, and it is known which attempts a machine served.

    Failures of attempts are counted, and what ended ones hold is let go of; earlier ones held none.
    """
    conn.execute(text("ALTER TABLE dead_letters ADD COLUMN times INTEGER NOT NULL DEFAULT 1"))
    conn.execute(
        text(
            "CREATE TABLE uses (machine TEXT NOT NULL, request_id VARCHAR(200) NOT NULL,"
            " attempt INTEGER NOT NULL, run INTEGER NOT NULL,"
            " PRIMARY KEY (machine, request_id, attempt, run))"
        )
    )
    conn.execute(text("ALTER TABLE attempts ADD COLUMN failures INTEGER NOT NULL DEFAULT 0"))
    conn.execute(text("ALTER TABLE attempts ADD COLUMN released_at FLOAT"))
    conn.execute(text("UPDATE attempts SET released_at = ended_at"))
    conn.execute(
        text(
            "CREATE INDEX attempts_held ON attempts (next_look)"
            " WHERE ended_at IS NOT NULL AND released_at IS NULL"
        )
    )


#: What takes a schema to each version from the one before. A step that was released is never
#: changed, and never uses ``tables``, which are those of the newest version.
MIGRATIONS: Mapping[int, Migration] = {2: _to_2}

#: The version that this release makes and knows.
VERSION = max(MIGRATIONS)


def brought_up(conn: Connection, called: str) -> int:
    """Make the tables, or take them forward, in this one transaction; the version before.

    0 is the version of a database without tables. Raises LedgerError where the schema is newer,
    or the database is another program's.
    """
    before = version_of(conn, called)
    if before == 0:
        metadata.create_all(conn)
        conn.execute(insert(schema_version).values(version=VERSION))
    for version in range(before + 1, VERSION + 1) if before else ():
        MIGRATIONS[version](conn)
        reach("during-migration")
        conn.execute(update(schema_version).values(version=version))
    return before


def version_of(conn: Connection, called: str) -> int:
    """The version of a ledger's schema; 0 if there is nothing in it. Raises LedgerError."""
    tables = inspect(conn).get_table_names()
    if schema_version.name not in tables:
        if tables:
            raise LedgerError(Problem(f"{called} is another program's database"))
        return 0
    version = int(conn.execute(select(schema_version.c.version)).scalar_one())
    if version > VERSION:
        raise LedgerError(
            Problem(
                f"{called} is of version {version}: a newer taskgraph-workers made it;"
                f" this one knows versions up to {VERSION}",
                hint="upgrade taskgraph-workers here, or use another folder",
            )
        )
    return version
