"""Probe that compares each live broker's metadata with ZooKeeper, at long intervals and read-only."""
