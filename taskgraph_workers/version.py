"""The version of this package, apart from it so that every part may say it."""

from __future__ import annotations

VERSION = "0.1.0"
