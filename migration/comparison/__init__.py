"""Comparison of the KRaft quorum, by Kafka's public APIs, with ZooKeeper at an offset that both know."""
