"""The door ``dispatch``: a start message becomes one training, once, and its end is told.

``message`` reads what comes in, ``place`` finds out where it runs, ``ledger/`` remembers it,
``executors/`` run it, ``brokers/`` carry messages, and ``loop`` moves everything forward.
"""
