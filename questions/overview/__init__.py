"""Clusters on one screen, with incidents, groups of partitions, brokers by rack, and the last day."""
