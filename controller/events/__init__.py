"""What the controller does about each of its events, a file for each, by Kafka's names."""
