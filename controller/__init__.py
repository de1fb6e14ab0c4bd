"""The pure replica of Kafka's ZooKeeper-mode controller: znodes in, transitions and requests out.

Here belong the state machines, the choices they make and the vocabulary of what goes in (`records`) and comes out
(`outputs`). Not here: IO, clocks, randomness, logging, Spark, ZooKeeper's client. The one entrance is `step.step`.
"""
