"""What the KRaft quorum says by Kafka's public APIs, against what ZooKeeper has, at an offset that both know."""
