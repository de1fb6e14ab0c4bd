"""Histories of a cluster that exists only as a model: ZooKeeper, brokers, and a controller that works in its own time.

The model shares no code with `controller/`: it follows Kafka's behaviour by release. `checks.py` compares the core with
it after every record. A history is a list of operations that plain seeded random draws. Hypothesis draws and shrinks
about ten times as slowly here, because each draw of its state machines passes through its own bookkeeping. A seed
replays a history, and `shrinking.py` removes operations greedily until none can go.
"""
