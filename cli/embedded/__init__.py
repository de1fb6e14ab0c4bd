"""Real ZooKeeper servers and Kafka brokers as child processes on loopback, for the demo and the tests alone."""
