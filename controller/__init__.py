"""Pure replica of Kafka's ZooKeeper-mode controller, which turns znodes into transitions and requests.

Records come in and rows go out by the shapes in `contract`. The one entrance is `step.step`. This package has no IO,
clock, randomness, logging, Spark or ZooKeeper client.
"""
