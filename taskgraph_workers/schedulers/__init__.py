"""Batch schedulers, one file each, found by name.

Others add theirs by an entry point of the group ``taskgraph_workers.schedulers`` that leads to an
object with all of :class:`~taskgraph_workers.schedulers.base.Scheduler`; it is looked up only for
a name that is none of ours.
"""
