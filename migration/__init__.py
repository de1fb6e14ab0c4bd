"""The way to KRaft: what keeps a cluster from it, how far each node is, whether ZooKeeper and the quorum agree."""
