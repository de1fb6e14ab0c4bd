"""Partition and replica state machines."""
