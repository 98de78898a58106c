"""``schema``: the JSON Schema of ``workers-config``, for editors and other programs."""

from __future__ import annotations

import argparse
import json
from typing import Any

from taskgraph_workers.cli import options
from taskgraph_workers.cli.output import Output


def add_parser(subparsers: Any) -> None:
    """Add ``schema`` to the command."""
    parser = options.add_command(
        subparsers,
        run,
        "Print the JSON Schema of a config.yml with workers-config.",
        "taskgraph-workers schema > taskcluster/workers-config.schema.json",
    )
    options.add_output(parser, json=False)


def run(args: argparse.Namespace, output: Output) -> int:
    """Print the schema, made from what reads the configuration."""
    from taskgraph_workers.config.export import json_schema

    output.text(json.dumps(json_schema(), indent=2) + "\n")
    return 0
