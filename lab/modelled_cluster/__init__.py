"""Histories of a modelled cluster with ZooKeeper, brokers, and a controller that works in its own time.

The model shares no code with `controller/`. It follows Kafka's behaviour by release, and `checks.py` compares the core
with it after every record. A history is a list of operations that plain seeded random draws. Hypothesis draws and
shrinks about ten times as slowly here, because each draw of its state machines passes through its own bookkeeping.
Sessions, processes, log directories and controllers end at any moment, also in a gap of the watcher, and a KRaft
controller comes and goes. A seed replays a history. `histories.py` removes operations greedily until all remaining ones
are necessary.
"""
