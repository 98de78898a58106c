"""What can go wrong with a ledger."""

from __future__ import annotations

from taskgraph_workers.errors import WorkersError


class LedgerError(WorkersError):
    """The ledger can't be used: somebody has to mend something."""


class LedgerUnavailable(LedgerError):
    """The ledger can't be used now: locked, full, read-only, or down.

    What was to be written is not; what was written before is there. Try again later.
    """
