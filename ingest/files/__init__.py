"""Reader of the transaction logs and snapshot files of a ZooKeeper server's data directory."""
