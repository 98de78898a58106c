"""Every benchmark, one after the other: ``python -m benchmarks``."""

from __future__ import annotations

from benchmarks import placement

if __name__ == "__main__":
    placement.main()
