"""The partition and replica state machines."""
