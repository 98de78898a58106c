"""``workers-config`` out of a config.yml that says the same by hand; pure.

:mod:`.hand` reads what was written by hand, :mod:`.compose` says it in ``workers-config``, and
:mod:`.verify` holds that against :mod:`.by_hand`, which works out placements the way hand-written
transforms do and knows nothing of the rules of placement.
"""

from __future__ import annotations
