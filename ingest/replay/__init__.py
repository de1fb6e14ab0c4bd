"""Publish the past of a cluster, from ZooKeeper's files, into a stream of its own."""
