"""Events of the controller, a file for each, by Kafka's names."""
