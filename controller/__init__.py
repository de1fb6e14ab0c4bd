"""Pure replica of Kafka's ZooKeeper-mode controller: znodes in, transitions and requests out.

Records come in and rows go out by the shapes in `contract`; the one entrance is `step.step`. There is no IO, clock,
randomness, logging, Spark or ZooKeeper client in this package.
"""
