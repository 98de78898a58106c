"""Sphinx configuration; `make docs` builds with warnings as errors."""

from __future__ import annotations

from importlib.metadata import version as installed

project = "taskgraph-workers"
author = "the taskgraph-workers contributors"
release = version = installed(project)

extensions = ["myst_parser"]
myst_enable_extensions = ["deflist"]
# Links such as concepts/placement.md#the-choice work, here and in the repository's own view.
myst_heading_anchors = 3
# An option such as --task has two hyphens, not a dash.
smartquotes = False
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"taskgraph-workers {release}"
