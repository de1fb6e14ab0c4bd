"""Comparison of two sides of a cluster: controller, brokers and partitions."""
