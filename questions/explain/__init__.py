"""Why something is as it is: a partition, a topic, a broker, the controller."""
