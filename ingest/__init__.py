"""Observe ZooKeeper, order the observations and forward them.

The ingest never interprets observations, and never writes to the watched ensemble.
"""
