"""Observe ZooKeeper, order what was seen, hand it to a sink; never interpret, never write to what is watched."""
