"""The durable record of requests: what came in, what runs, what was told.

``open_ledger`` in ``database`` gives a :class:`Ledger`; the operations are functions over one of
its connections, in ``queue``, ``dead``, ``receipt``, ``attempts``, ``progress``, ``machines``,
``outbox``, ``steps``, ``recall`` and ``queries``. ``ledger.do(operation, ...)`` is one write
transaction and ``ledger.see(operation, ...)`` one that only reads.
"""

from taskgraph_workers.errors import Problem, WorkersError


class NotInstalled(WorkersError, ImportError):
    """What the ledger is built on is not installed."""


try:
    import sqlalchemy  # noqa: F401
except ModuleNotFoundError:
    raise NotInstalled(
        Problem(
            "dispatch needs SQLAlchemy, which is not installed",
            hint="pip install 'taskgraph-workers[dispatch]'",
        )
    ) from None
