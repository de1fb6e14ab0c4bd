"""Observe ZooKeeper, order the observations and forward them.

Never interpret them, and never write to the watched ensemble.
"""
