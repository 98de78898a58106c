"""``python -m taskgraph_workers``: the command."""

from __future__ import annotations

import sys

from taskgraph_workers.cli import main

if __name__ == "__main__":
    sys.exit(main())
