"""The door ``graph``: placement inside Taskgraph. The only part that imports taskgraph."""
