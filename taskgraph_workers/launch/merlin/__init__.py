"""Merlin specs (LLNL/merlin 1.13), read without importing Merlin.

``document`` to ``steps`` make a :class:`~taskgraph_workers.launch.merlin.model.Spec` of a file;
``workers``, ``queues`` and ``stages`` make an :class:`~taskgraph_workers.launch.model.Ask` of it.
"""
