"""Explanations of a partition, a topic, a broker or the controller."""
