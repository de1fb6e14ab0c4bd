"""Real ZooKeeper and Kafka brokers as child processes on loopback, for the demo and the tests.

What is watched in production is never started by Kontrast: nothing here is used outside the demo and the tests.
"""
