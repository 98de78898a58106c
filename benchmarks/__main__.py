"""Every benchmark, one after the other: ``python -m benchmarks``; or one: ``... NAME --help``."""

from __future__ import annotations

import sys
from importlib import import_module

NAMES = (
    *("placement", "widths", "sizing", "launch"),
    *("dispatch", "dispatch_latency", "dispatch_rows"),
)

if __name__ == "__main__":
    if len(sys.argv) > 1:
        if sys.argv[1] not in NAMES:
            sys.exit(f"there is no benchmark {sys.argv[1]!r}; there is: {', '.join(NAMES)}")
        import_module(f"benchmarks.{sys.argv[1]}").main(sys.argv[2:])
    else:
        for name in NAMES:
            import_module(f"benchmarks.{name}").main([])
            print(flush=True)
