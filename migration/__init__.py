"""Migration to KRaft: obstacles, modes of the nodes, and agreement of ZooKeeper with the quorum."""
